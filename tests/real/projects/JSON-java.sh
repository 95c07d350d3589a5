stack='Java, Maven and Gradle'
repository=stleary/JSON-java
commit=1795e8cf26229229e7ab6fe4aeab0f51ffecda5a
install() { mvn -q -B dependency:go-offline && mvn -q -B test; }
check() { mvn -q -B test; }
honest() {
    echo '// more' >>src/main/java/org/json/Cookie.java
    printf 'package org.json.junit;\n\nimport org.junit.Test;\n\npublic class RealTest {\n    @Test\n    public void real() {\n    }\n}\n' >src/test/java/org/json/junit/RealTest.java
}
broken() { sed -i "s/if (c == '+') {/if (c == '-') {/" src/main/java/org/json/Cookie.java; }
dependency() {
    sed -i '0,/<dependencies>/s//<dependencies>\n        <dependency>\n            <groupId>commons-codec<\/groupId>\n            <artifactId>commons-codec<\/artifactId>\n            <version>1.17.0<\/version>\n        <\/dependency>/' pom.xml
    printf 'package org.json;\n\nimport org.apache.commons.codec.binary.Hex;\n\nclass Hexes {\n    static String of(byte[] bytes) {\n        return Hex.encodeHexString(bytes);\n    }\n}\n' >src/main/java/org/json/Hexes.java
    printf 'package org.json;\n\nimport static org.junit.Assert.assertEquals;\n\nimport org.junit.Test;\n\npublic class HexesTest {\n    @Test\n    public void hexes() {\n        assertEquals("0a", Hexes.of(new byte[] {10}));\n    }\n}\n' >src/test/java/org/json/HexesTest.java
}
