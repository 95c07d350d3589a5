#!/usr/bin/env bash
# Tries fledge on public projects, with nothing configured by hand: run.sh [NAME…]
#
# Each file in projects/ describes one project (projects/README.md). For each project, run.sh:
#   1. clones the commit, installs the project as its maintainers describe, and runs its own check;
#   2. runs `fledge init`, then the lane by hand and in a clean room: both must pass;
#   3. runs four scripted agents: an empty line in the README, honest work, work that breaks a test,
#      and a new dependency. Expected: verified, verified, not verified, verified;
#   4. makes the same changes without fledge: the project's own check must agree, or the row is wrong.
#
# Without names, run.sh tries each available project that has no result in REAL_DIR yet. If these are
# all projects, it writes specs/generated/real-projects.md. With names, it tries these projects again.
# FLEDGE_TEST_PART=2/7 selects the second of every seven projects (tests/part.sh). run.sh needs a
# network, git, python3 and the tools in the `needs` lines of the projects.
#
# FLEDGE is the program. REAL_FROM is the source of the repositories, or `registries` for the packages
# on crates.io, PyPI or the Go proxy of projects with a `package`. REAL_DIR keeps clones, logs and
# results. REAL_WALL=landlock hides bubblewrap from fledge. With REAL_ROOM=in-place, the gate judges in
# the workspace itself.
set -u
here=$(cd "$(dirname "$0")" && pwd)
FLEDGE=$(realpath "${FLEDGE:-$here/../../target/release/fledge}")
github=https://github.com
from=${REAL_FROM:-$github}
work=${REAL_DIR:-$(mktemp -d)}
page=$here/../../specs/generated/real-projects.md
export FLEDGE_STATE_DIR=$work/state FLEDGE_NON_INTERACTIVE=1
export COREPACK_ENABLE_DOWNLOAD_PROMPT=0 # else corepack asks before it installs a package manager
unset NO_COLOR CI
if [ "$from" != $github ] && [ "$from" != registries ]; then # also redirects git dependencies
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.$from/.insteadOf" GIT_CONFIG_VALUE_0=$github/ CARGO_NET_GIT_FETCH_WITH_CLI=true
fi
mkdir -p "$work/results"
exec 9>"$work/lock"
flock -n 9 || { echo "error: another run.sh works in $work"; exit 2; }

if [ "${REAL_WALL:-}" = landlock ]; then
    printf '#!/bin/sh\nexec unshare -rm sh -c '\''mount --bind /dev/null "$(command -v bwrap)" && exec "$@"'\'' sh %q "$@"\n' "$FLEDGE" >"$work/fledge"
    chmod +x "$work/fledge"
    FLEDGE=$work/fledge
fi

# Runs a command. $took is its time in tenths of a second, $said its output.
seconds() {
    local begun status
    said=$work/said
    begun=$(date +%s%N)
    timeout 900 "$@" >"$said" 2>&1 </dev/null 9>&- # a daemon must not keep the lock
    status=$?
    took=$((($(date +%s%N) - begun) / 100000000))
    { echo "\$ $*" && cat "$said"; } >>"$log"
    return $status
}

in_seconds() { echo "$(($1 / 10)).$(($1 % 10)) s"; }

# Prints a script that runs a function of the project.
script() { printf 'set -e\n%s\n%s\n' "$(declare -f "$1")" "$1"; }

by_hand() { seconds bash -c "$(script "$1")"; }

# Prints the files that a change has changed.
changed() { git status --porcelain --untracked-files=all | sort; }

restore() { git checkout -q . && git clean -qfd; }

# Adds a reason for the failure of the project. Without $2, the reason is the end of the last output.
blame() {
    local why=${2:-$(sed 's/\x1b\[[0-9;]*m//g' "$said" | grep -v '^\s*$' | tail -3 | tr '\n' ' ' | cut -c1-300)}
    reasons+=("$1: $why")
    holds=false
}

# Prints why a run ended, from its report: its message, the failed steps, and the findings.
why() {
    python3 - "$1" <<'PY'
import json, sys
try:
    report = json.load(open(sys.argv[1]))
    attempts = report.get("attempts") or [{}]
    verdict = attempts[-1].get("verdict") or {}
    says = [report.get("message") or ""]
    failed = [step for step in verdict.get("steps", []) if step["status"] not in ("passed", "skipped")]
    says += [f"{step['lane']}/{step['step']} {step['status']}: {(step.get('excerpt') or '').strip()[-200:]} {step['note']}" for step in failed]
    says += [f"{finding['path']} {finding.get('change', '')}: {finding.get('rule', '')}" for finding in verdict.get("findings", [])]
    print("; ".join(text for text in says if text)[:400].replace("\n", " "))
except OSError:
    pass
PY
}

# Prints how long the gate judged the last attempt, in tenths of a second.
gate_time() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["attempts"][-1]["verdict"]["duration_ms"] // 100)' "$1" 2>>"$log"
}

# Runs an agent that runs a function of the project, and adds a cell. $1 is the function, $2 the
# expected exit code, and the rest are flags.
agent() {
    local name=$1 wanted=$2 status report=$work/$project.$1.json text
    shift 2
    text=$(script "$name" | python3 -c 'import json, sys; print(json.dumps(sys.stdin.read()))')
    printf 'name: real\nturns:\n  - text: "I change it."\n    tools:\n      - { name: shell-exec, input: { command: %s } }\n  - text: "Done."\n' \
        "$text" >"$work/$name.yaml"
    printf -- '---\nmodel: cassette/%s\nmax_retries: 0\n---\n# %s\n\nChange the project.\n' "$work/$name.yaml" "$name" >"$work/$name.md"
    rm -f "$report"
    seconds "$FLEDGE" run "$work/$name.md" --report "$report" "$@"
    status=$?
    changed >"$work/$project.$name.changed"
    restore
    case $status in 0) cells+=("verified, $(in_seconds $took)") ;; 1) cells+=("not verified, $(in_seconds $took)") ;; *) cells+=("exit code $status") ;; esac
    [ $status = "$wanted" ] || blame "$name" "$(why "$report")"
    "$FLEDGE" runs export last | grep '"kind":"ToolFinished"' >"$said"
    cat "$said" >>"$log"
    [ -s "$work/$project.$name.changed" ] || blame "$name" "the agent could not change anything: $(grep -o '"content":"[^"]*' "$said" | tail -c 300)"
}

# Makes a change without fledge, and prints whether the project's own check agrees. Its time is in $took.
agrees() {
    local status
    restore
    by_hand "$1" || { blame "row $1"; return; }
    if [ "$1" != broken ] && ! diff <(changed) "$work/$project.$1.changed" >>"$log"; then
        blame "$1" "the agent has not left the change that its script makes"
    fi
    if [ "$1" = dependency ]; then by_hand install || blame "row install of $1"; fi
    by_hand check
    status=$?
    if [ "$1" = broken ]; then
        [ $status != 0 ] || blame "row broken" "the project's own check passes"
    else
        [ $status = 0 ] || blame "row $1"
    fi
    restore
}

# Downloads the project into $1.
get() {
    if [ "$from" = registries ]; then
        seconds env work="$work" bash -c "$(declare -f unpack)"'; unpack "$@"' unpack "$1" $package
    else
        seconds git clone -q "$from/$repository" "$1" && seconds git -C "$1" checkout -q "$commit"
    fi
}

# Downloads a release from a registry into a folder, as a repository of one commit with the release's tag.
unpack() {
    local folder=$1 registry=$2 name=$3 version=$4 got=$work/package
    rm -rf "$got" && mkdir -p "$folder" "$got" || return
    case $registry in
        crates.io)
            curl -sSfL "https://static.crates.io/crates/$name/$name-$version.crate" | tar xz -C "$folder" --strip-components 1 &&
                mv "$folder/Cargo.toml.orig" "$folder/Cargo.toml" && rm -f "$folder/Cargo.lock" ;;
        pypi)
            python3 -m pip -q download --no-binary :all: --no-deps -d "$got" "$name==$version" &&
                tar xzf "$got"/*.tar.gz --no-same-owner -C "$folder" --strip-components 1 && rm -rf "$folder"/{,src/}*.egg-info ;;
        go)
            (cd "$got" && GOFLAGS=-modcacherw GOMODCACHE=$got go mod download "$name@$version") && cp -r "$got/$name@$version/." "$folder" && chmod -R u+w "$folder" ;;
        *) echo "no registry is called $registry" && return 2 ;;
    esac || return
    cd "$folder" && git init -q -b main && git add -A && git -c user.name=real -c user.email=real@localhost commit -qm "$name $version" &&
        git tag "v${version#v}"
}

# Tries the project whose functions are here. Prints its row.
row() {
    local cells=() reasons=() holds=true readme gate=
    log=$work/$project.log
    : >"$log"
    rm -rf "${work:?}/$project"
    finish() {
        while [ ${#cells[@]} -lt 9 ]; do cells+=(""); done
        $holds || [ -z "${mends:-}" ] || reasons+=("to mend it: $mends")
        printf '| %s | %s |' "$project" "$stack"
        printf ' %s |' "${cells[@]}"
        printf '%s; ' "${reasons[@]:-}" | sed 's/; $//; s/|/\\|/g; s/^/ /; s/$/ |\n/'
        $holds
    }
    get "$work/$project" && cd "$work/$project" || { blame "cannot be had"; finish; return; }
    printf '.venv/\nnode_modules/\n*.egg-info/\n*.so\n' >>.git/info/exclude
    git config user.name real && git config user.email real@localhost
    readme=$(ls | grep -i '^readme' | head -1)
    eval "readme() { echo >>'$readme'; }"
    by_hand install || { blame "cannot be installed"; finish; return; }
    by_hand check || { blame "its own check fails"; finish; return; }
    [ -z "$(changed)" ] || blame "row" "install or check leaves $(changed | head -2 | tr '\n' ' ')"
    seconds "$FLEDGE" init || blame init
    [ -z "${REAL_ROOM:-}" ] || sed -i "1i room: $REAL_ROOM" lanes/verify.yaml
    git add -A >>"$log" 2>&1 && git commit -qm lanes >>"$log" 2>&1
    by_hand check || blame "its own check, again"
    cells+=("$(in_seconds $took)")
    lane() { if seconds "$@"; then cells+=("passed, $(in_seconds $took)"); else cells+=("failed, $(in_seconds $took)"); blame "lanes ${*:3}"; fi; }
    lane "$FLEDGE" lanes run verify
    lane "$FLEDGE" lanes run verify --clean
    agent readme 0
    agent honest 0
    gate=$(gate_time "$work/$project.honest.json")
    agent broken 1
    if declare -F dependency >>"$log"; then agent dependency 0 --network allow; else cells+=("–"); fi
    agrees honest
    cells+=("${gate:+$(in_seconds "$gate")}" "$(in_seconds $took)")
    agrees broken
    if declare -F dependency >>"$log"; then agrees dependency; fi
    finish
}

main() {
    local all=0 held=0 index=0 part=${FLEDGE_TEST_PART:-1/1} rows=() file told result
    for file in "$here"/projects/*.sh; do
        project=$(basename "$file" .sh)
        if [ "$from" = registries ] && ! grep -q '^package=' "$file"; then continue; fi
        if [ $# -gt 0 ] && ! printf '%s\n' "$@" | grep -qxF "$project"; then continue; fi
        if [ $# -eq 0 ] && [ $((index++ % ${part#*/} + 1)) != "${part%/*}" ]; then continue; fi
        all=$((all + 1))
        result=$work/results/$project
        if [ $# -gt 0 ] || [ ! -e "$result" ]; then
            (
                source "$file"
                if told=$(row); then echo holds; else echo "does not hold"; fi >"$result.new"
                echo "$told" >>"$result.new"
            )
            mv "$result.new" "$result"
        fi
        told=$(tail -n +2 "$result")
        if [ "$(head -1 "$result")" = holds ]; then held=$((held + 1)); fi
        echo "$told"
        rows+=("$told")
    done
    echo "$held of $all hold"
    if [ $# -eq 0 ] && [ "$from" != registries ] && [ "$part" = 1/1 ] && [ -z "${REAL_WALL:-}${REAL_ROOM:-}" ]; then
        {
            printf '# fledge on real projects\n\nPrinted by `tests/real/run.sh`, which says what it does; nothing is configured by hand. %s of %s hold.\n' "$held" "$all"
            printf '"Gate" and "check" are the times of fledge'"'"'s gate and of the project'"'"'s own check on the same honest work.\n\n'
            printf '| project | stack | its own check | lane by hand | in a clean room | README | honest work | a broken test | new dependency | gate | check | why not |\n'
            printf '|---|---|---|---|---|---|---|---|---|---|---|---|\n'
            printf '%s\n' "${rows[@]}" | sed "s|$work|DIR|g; s|$from|$github|g; s|$HOME|HOME|g"
        } >"$page"
    fi
    [ $held = $all ]
}

main "$@"; exit # on one line, so that bash has read the whole file before main runs
