stack='Node, uvu, colours'
repository=lukeed/kleur
commit=fa3454483899ddab550d08c18c028e6db1aab0e5
install() { npm install --silent --no-audit --no-fund; }
check() { npm test; }
honest() {
    echo '// more' >>colors.mjs
    printf "import { test } from 'uvu';\ntest('real', () => {});\ntest.run();\n" >test/real.js
}
broken() { sed -i 's/x1b\[/x1b{/' index.mjs; }
dependency() {
    npm install --silent --no-audit --no-fund escape-html@1.0.3
    printf "import escape from 'escape-html';\nexport default escape;\n" >escape.mjs
    printf "import { test } from 'uvu';\nimport * as assert from 'uvu/assert';\nimport escape from 'escape-html';\ntest('escape', () => assert.is(escape('<'), '&lt;'));\ntest.run();\n" >test/escape.js
}
