stack='Node, yarn 1, jest and flow'
repository=graphql/dataloader
commit=b70dea3cc72a7e8f941133b0f486aa1840e3f927
needs=yarn
install() { yarn install --frozen-lockfile --silent; }
check() { npm test; }
honest() {
    echo '// more' >>src/index.js
    printf "test('real', () => {});\n" >src/__tests__/real.test.js
}
broken() { sed -i 's/cacheMap.set((cacheKey: any), promise);//' src/index.js; }
dependency() {
    yarn add --silent escape-html@1.0.3
    printf "module.exports = require('escape-html');\n" >src/escape.js
    printf "const escape = require('../escape');\n\ntest('escape', () => expect(escape('<')).toBe('&lt;'));\n" >src/__tests__/escape.test.js
}
