stack='Node, yarn workspaces, TypeScript with vitest'
repository=wojtekmaj/react-clock
commit=dafcee014b90b9823b763db7a5023bb248a471a6
needs=yarn
install() { yarn install; }
check() { CI=1 yarn unit; }
honest() {
    echo '// more' >>packages/react-clock/src/shared/utils.ts
    printf "import { test } from 'vitest';\n\ntest('real', () => {});\n" >packages/react-clock/src/real.spec.ts
}
broken() { sed -i 's/return Math.max/return Math.min/' packages/react-clock/src/shared/utils.ts; }
dependency() {
    yarn workspace react-clock add escape-goat@4.0.0
    printf "export { htmlEscape } from 'escape-goat';\n" >packages/react-clock/src/escape.ts
    printf "import { expect, test } from 'vitest';\nimport { htmlEscape } from './escape.js';\n\ntest('escape', () => expect(htmlEscape('<')).toBe('&lt;'));\n" >packages/react-clock/src/escape.spec.ts
}
