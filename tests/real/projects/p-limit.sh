stack='Node, ava and types'
repository=sindresorhus/p-limit
commit=df476048d023ff868cd45b35ee47f5fb0ca2b25a
install() { npm install --silent --no-audit --no-fund; }
check() { npm test; }
honest() { printf '\n' >>readme.md; }
broken() { sed -i 's/activeCount--/activeCount++/' index.js; }
