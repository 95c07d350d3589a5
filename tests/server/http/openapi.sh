#!/bin/sh
# Checks a server against its own OpenAPI document: openapi.sh [FOLDER FOR TOOLS] [FLEDGE]
#
# The script validates the document and derives valid and invalid requests from it. No answer may be
# an internal error of the server, and each must match the document. The script installs missing
# tools from PyPI, each in a fixed version.
set -eu
here=$(cd "$(dirname "$0")/../../.." && pwd)
tools=${1:-$here/target/openapi}
fledge=${2:-$here/target/debug/fledge}
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)
fledge=$(cd "$(dirname "$fledge")" && pwd)/$(basename "$fledge")
set -- openapi-spec-validator==0.9.0 schemathesis==4.32.5
if [ "$(cat "$tools/installed" 2>/dev/null)" != "$*" ]; then
    python3 -m venv --clear "$tools/venv"
    "$tools/venv/bin/pip" install --quiet --disable-pip-version-check "$@"
    echo "$*" > "$tools/installed"
fi

place=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$place"' EXIT
mkdir -p "$place/project/lanes" "$place/home"
cd "$place/project"
printf 'steps:\n  - { name: there, run: test -f a.txt }\n' > lanes/verify.yaml
printf 'turns:\n  - text: Done.\n' > answers.yaml
printf 'default_model: cassette/answers.yaml\nsandbox: auto\n' > fledge.yaml
echo one > a.txt
git init -q .
git add -A
git -c user.name=o -c user.email=o@localhost commit -qm base

export HOME="$place/home" FLEDGE_STATE_DIR="$place/state" FLEDGE_SERVE_TOKEN=t0ken-of-the-proof-0123456789
"$fledge" serve --listen 127.0.0.1:0 --no-link > "$place/said" 2> "$place/log" &
server=$!
url=
for _ in $(seq 15000); do
    url=$(sed -n 's/.* at \(http:[^ ]*\)$/\1/p' "$place/said")
    [ -z "$url" ] || break
    kill -0 "$server" || { cat "$place/log" >&2; exit 1; }
    sleep 0.02
done
bearer="Authorization: Bearer $FLEDGE_SERVE_TOKEN"
# Makes one run. In the second pass, every path with a run id gets the id of this run.
"$tools/venv/bin/python" - "$url" "$place" <<'PYTHON'
import json, os, sys, time, urllib.request

url, place = sys.argv[1:]


def ask(path, body=None):
    head = {"Authorization": "Bearer " + os.environ["FLEDGE_SERVE_TOKEN"], "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    return urllib.request.urlopen(urllib.request.Request(url + path, data=data, headers=head), timeout=300).read()


open(place + "/openapi.json", "wb").write(ask("/openapi.json"))
run = json.loads(ask("/v1/runs", {"task": "Say that it is done."}))["id"]
until = time.monotonic() + 300
while json.loads(ask("/v1/runs/" + run))["state"] != "ended":
    if time.monotonic() > until:
        raise SystemExit("the run does not end")
    time.sleep(0.02)
open(place + "/known.toml", "w").write(f'[parameters]\n"path.id" = "{run}"\n"path.name" = "report.json"\n')
open(place + "/any.toml", "w").write("")
PYTHON
"$tools/venv/bin/openapi-spec-validator" "$place/openapi.json"
for with in any known; do
    # Streams never end by themselves, and the tool waits for complete answers, so they are excluded.
    "$tools/venv/bin/schemathesis" --config-file "$place/$with.toml" run "$place/openapi.json" --url "$url" --header "$bearer" \
        --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
        --exclude-path-regex '/events$' --phases examples,coverage,fuzzing \
        --max-examples "${FLEDGE_OPENAPI_EXAMPLES:-20}" --seed "${FLEDGE_OPENAPI_SEED:-1}" --request-timeout 20 --no-color
done
kill -0 "$server" || { echo "the server is gone" >&2; cat "$place/log" >&2; exit 1; }
if grep -q 'panicked' "$place/log"; then
    cat "$place/log" >&2
    exit 1
fi
