stack='Java, Maven'
repository=semver4j/semver4j
commit=b2a4cd2190dde144b2a979fc5eb7b09a5af097fc
install() { mvn -q -B test; } # `mvn verify` signs, which needs a key
check() { mvn -q -B test; }
honest() {
    echo '// more' >>src/main/java/org/semver4j/SemverException.java
    printf 'package org.semver4j;\n\nimport org.junit.jupiter.api.Test;\n\nclass RealTest {\n    @Test\n    void real() {}\n}\n' >src/test/java/org/semver4j/RealTest.java
}
broken() { sed -i 's/return parse(version) != null;/return parse(version) == null;/' src/main/java/org/semver4j/Semver.java; }
dependency() {
    sed -i '0,/<dependencies>/s//<dependencies>\n        <dependency>\n            <groupId>commons-codec<\/groupId>\n            <artifactId>commons-codec<\/artifactId>\n            <version>1.17.0<\/version>\n        <\/dependency>/' pom.xml
    printf 'package org.semver4j;\n\nimport org.apache.commons.codec.binary.Hex;\n\nclass Hexes {\n    static String of(byte[] bytes) {\n        return Hex.encodeHexString(bytes);\n    }\n}\n' >src/main/java/org/semver4j/Hexes.java
    printf 'package org.semver4j;\n\nimport static org.assertj.core.api.Assertions.assertThat;\n\nimport org.junit.jupiter.api.Test;\n\nclass HexesTest {\n    @Test\n    void hexes() {\n        assertThat(Hexes.of(new byte[] {10})).isEqualTo("0a");\n    }\n}\n' >src/test/java/org/semver4j/HexesTest.java
}
