stack='Node, pnpm workspaces, TypeScript with vitest'
repository=tinyhttp/tinyhttp
commit=b8b1181f35639f90c8ddb963be0556a67f60855d
needs=pnpm
install() { pnpm install --silent && pnpm build; }
check() { CI=1 pnpm test; }
honest() {
    echo '// more' >>packages/dotenv/src/index.ts
    printf "import { it } from 'vitest'\n\nit('real', () => {})\n" >tests/modules/real.test.ts
}
broken() { sed -i "s/let val = keyValueArr\[2\] || ''/let val = ''/" packages/dotenv/src/index.ts; }
dependency() {
    pnpm add --silent -w escape-goat@4.0.0
    printf "export { htmlEscape } from 'escape-goat'\n" >packages/dotenv/src/escape.ts
    printf "import { expect, it } from 'vitest'\nimport { htmlEscape } from '../../packages/dotenv/src/escape'\n\nit('escapes', () => expect(htmlEscape('<')).toBe('&lt;'))\n" >tests/modules/escape.test.ts
}
