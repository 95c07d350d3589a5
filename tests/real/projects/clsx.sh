stack='Node, uvu, a build'
repository=lukeed/clsx
commit=684509c3860a71e9e301b8c33f67e98ad5990c62
install() { npm install --silent --no-audit --no-fund; }
check() { npm test; }
honest() {
    echo '// more' >>src/lite.js
    printf "import { test } from 'uvu';\ntest('real', () => {});\ntest.run();\n" >test/real.js
}
broken() { sed -i 's/str += /str = /' src/index.js; }
dependency() {
    npm install --silent --no-audit --no-fund escape-html@1.0.3
    printf "import escape from 'escape-html';\nexport default escape;\n" >src/escape.js
    printf "import { test } from 'uvu';\nimport * as assert from 'uvu/assert';\nimport escape from '../src/escape';\ntest('escape', () => assert.is(escape('<'), '&lt;'));\ntest.run();\n" >test/escape.js
}
