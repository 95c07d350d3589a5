stack='Node, yarn, TypeScript with vitest, tsup'
repository=reduxjs/redux-thunk
commit=184205d49f707c6f203269e0d39ad85824801816
needs=yarn
install() { yarn install; }
check() { yarn test; }
honest() {
    echo '// more' >>src/index.ts
    printf "import { test } from 'vitest'\n\ntest('real', () => {})\n" >test/real.test.ts
}
broken() { sed -i 's/return action(dispatch, getState, extraArgument)/return action(dispatch, getState)/' src/index.ts; }
dependency() {
    yarn add escape-goat@4.0.0
    printf "export { htmlEscape } from 'escape-goat'\n" >src/escape.ts
    printf "import { expect, test } from 'vitest'\nimport { htmlEscape } from '../src/escape'\n\ntest('escape', () => expect(htmlEscape('<')).toBe('&lt;'))\n" >test/escape.test.ts
}
