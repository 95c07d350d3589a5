stack='Node, node:test and types'
repository=tj/commander.js
commit=ba6d13ddb4243e5913367734f8c159089ffe7834
install() { npm ci --silent --no-audit --no-fund; }
check() { npm test; }
honest() {
    echo '// more' >>lib/option.js
    printf "import test from 'node:test';\n\ntest('real', () => {});\n" >tests/real.test.js
}
broken() { sed -i 's/return str + word\[0\].toUpperCase() + word.slice(1);/return str + word;/' lib/option.js; }
dependency() {
    npm install --silent --no-audit --no-fund escape-html@1.0.3
    printf "import escape from 'escape-html';\n\nexport default escape;\n" >lib/escape.js
    printf "import assert from 'node:assert';\nimport test from 'node:test';\nimport escape from '../lib/escape.js';\n\ntest('escape', () => assert.equal(escape('<'), '&lt;'));\n" >tests/escape.test.js
}
