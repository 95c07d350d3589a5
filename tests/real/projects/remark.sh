stack='Node, npm workspaces'
repository=remarkjs/remark
commit=6c18384e9731146a3e8dffe79d1d8e59316c6bf7
install() { npm install --silent --no-audit --no-fund && npm run build; }
check() { npm run test-api; }
honest() { printf '\n// More.\n' >>packages/remark/index.js; }
broken() { sed -i 's/use(remarkParse).use(remarkStringify)/use(remarkParse)/' packages/remark/index.js; }
dependency() {
    npm install --silent --no-audit --no-fund --workspace packages/remark mdast-util-to-string@4.0.0
    sed -i "1i import {toString} from 'mdast-util-to-string'" packages/remark/index.js
    printf "\nif (toString({type: 'text', value: 'a'}) !== 'a') throw new Error('it gives no text')\n" >>packages/remark/index.js
}
