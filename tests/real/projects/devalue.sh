stack='Node, pnpm, uvu'
repository=Rich-Harris/devalue
commit=f3fd2aa93d79f21746555671f955a897335edb1b
needs=pnpm
install() { pnpm install --silent --frozen-lockfile; }
check() { pnpm test; }
honest() { echo '// more' >>src/parse.js; }
broken() { sed -i 's/if (index === NAN) return NaN;/if (index === NAN) return 0;/' src/parse.js; }
dependency() {
    pnpm add --silent escape-goat@4.0.0
    printf "export { htmlEscape } from 'escape-goat';\n" >src/escape.js
    printf "import * as assert from 'uvu/assert';\nimport * as uvu from 'uvu';\nimport { htmlEscape } from '../src/escape.js';\n\nuvu.test('escape', () => assert.is(htmlEscape('<'), '&lt;'));\nuvu.test.run();\n" >test/escape.js
}
