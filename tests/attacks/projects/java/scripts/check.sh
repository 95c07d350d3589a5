# Compiles everything, and runs each test.
set -eu
javac -d build $(find src test -name '*.java')
for test in $(cd test && find . -name '*Test.java' | sort); do
    java -cp build "$(echo "$test" | sed 's,^\./,,; s,\.java$,,; s,/,.,g')"
done
