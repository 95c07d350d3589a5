# Compiles everything, and has JUnit run each test class.
set -eu
jars=/usr/share/java/junit4.jar:/usr/share/java/hamcrest-core.jar
javac -cp "$jars" -d build $(find src test -name '*.java')
classes=$(cd test && find . -name '*Test.java' | sort | sed 's,^\./,,; s,\.java$,,; s,/,.,g')
java -cp "$jars:build" org.junit.runner.JUnitCore $classes
