stack='Node, mocha'
repository=jonschlinkert/is-number
commit=98e8ff1da1a89f93d1397a24d7413ed15421c139
install() { npm install --silent --no-audit --no-fund; }
check() { npm test; }
honest() { echo '// more' >>index.js; }
broken() { sed -i 's/num - num === 0/num - num !== 0/' index.js; }
dependency() {
    npm install --silent --no-audit --no-fund escape-html@1.0.3
    printf "\nmodule.exports.escape = require('escape-html');\n" >>index.js # mocha runs test.js only if there is no folder `test`
}
