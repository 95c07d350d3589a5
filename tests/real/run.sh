#!/usr/bin/env bash
# Tries fledge on public projects that nobody here wrote, with nothing configured by hand: run.sh [NAME…]
#
# Each project is cloned, installed as its maintainers say, and checked by its own command. Then: `fledge init`, its lane by hand and in a
# clean room, and three scripted agents: an empty line in the README, honest work with a test, and work that breaks a test. Wanted are
# passed, passed, verified, verified, not verified. Needs a network, git and the project's own tools.
#
# FLEDGE is the program; REAL_FROM is where repositories are cloned from; REAL_DIR is where they go.
set -u
here=$(cd "$(dirname "$0")" && pwd)
FLEDGE=${FLEDGE:-$here/../../target/release/fledge}
from=${REAL_FROM:-https://github.com}
work=${REAL_DIR:-$(mktemp -d)}
page=$here/../../specs/generated/real-projects.md
export FLEDGE_STATE_DIR=$work/state FLEDGE_NON_INTERACTIVE=1
unset NO_COLOR CI

seconds() { # Runs a command. $took is its time in tenths of a second.
    local begun status
    begun=$(date +%s%N)
    "$@" >>"$log" 2>&1 </dev/null
    status=$?
    took=$((($(date +%s%N) - begun) / 100000000))
    return $status
}

time_of() { echo "$((took / 10)).$((took % 10)) s"; }

agent() { # Runs an agent that runs a command. $1 is its name.
    printf 'name: real\nturns:\n  - text: "I change it."\n    tools:\n      - { name: shell-exec, input: { command: %s } }\n  - text: "Done."\n' \
        "$(printf '%s' "$2" | python3 -c 'import json, sys; print(json.dumps(sys.stdin.read()))')" >"$work/$1.yaml"
    printf -- '---\nmodel: cassette/%s\nmax_retries: 0\n---\n# %s\n\nChange the project.\n' "$work/$1.yaml" "$1" >"$work/$1.md"
    seconds "$FLEDGE" run "$work/$1.md"
    local status=$?
    git checkout -q . && git clean -qfd
    return $status
}

row() {
    local name=$1 stack=$2 repository=$3 commit=$4 install=$5 check=$6 honest=$7 broken=$8 cells=() right=true readme
    log=$work/$name.log
    : >"$log"
    rm -rf "${work:?}/$name"
    git clone -q "$from/$repository" "$work/$name" 2>>"$log" && cd "$work/$name" && git checkout -q "$commit" 2>>"$log" ||
        { echo "| $name | $stack | cannot be cloned | | | | | |"; return 1; }
    printf '.venv/\nnode_modules/\n' >>.git/info/exclude
    git config user.name real && git config user.email real@localhost
    seconds sh -c "$install" || { echo "| $name | $stack | cannot be installed | | | | | |"; return 1; }
    seconds sh -c "$check" || { echo "| $name | $stack | its own check fails | | | | | |"; return 1; }
    cells+=("$(time_of)")
    seconds "$FLEDGE" init --no-check
    git add -A >>"$log" 2>&1 && git commit -qm lanes >>"$log" 2>&1
    ok() { if seconds "$@"; then cells+=("passed, $(time_of)"); else cells+=("failed, $(time_of)"); right=false; fi; }
    ok "$FLEDGE" lanes run verify
    ok "$FLEDGE" lanes run verify --clean
    readme=$(ls | grep -i '^readme' | head -1)
    verified() { # $1 is whether it should be.
        local wanted=$1 status
        shift
        agent "$@"
        status=$?
        case $status in 0) cells+=("verified, $(time_of)") ;; 1) cells+=("not verified, $(time_of)") ;; *) cells+=("exit code $status") ;; esac
        if [ $wanted = yes ]; then [ $status = 0 ]; else [ $status = 1 ]; fi || right=false
    }
    verified yes readme "echo >> $readme"
    verified yes honest "$honest"
    verified no broken "$broken"
    printf '| %s | %s |' "$name" "$stack"
    printf ' %s |' "${cells[@]}"
    echo
    $right
}

all=0 held=0 rows=()
while IFS= read -r line; do
    case $line in '#'* | '') continue ;; esac
    mapfile -t fields < <(printf '%s\n' "$line" | sed 's/ | /\n/g')
    if [ $# -gt 0 ] && ! printf '%s\n' "$@" | grep -qxF "${fields[0]}"; then continue; fi
    all=$((all + 1))
    if told=$(row "${fields[@]}"); then held=$((held + 1)); fi
    echo "$told"
    rows+=("$told")
done <"$here/projects"
echo "$held of $all hold"
if [ $# -eq 0 ]; then
    {
        printf '# fledge on real projects\n\nPrinted by `tests/real/run.sh`, which says what is done; nothing is configured by hand. %s of %s hold.\n\n' "$held" "$all"
        printf '| project | stack | its own check | lane by hand | in a clean room | README | honest work | a broken test |\n|---|---|---|---|---|---|---|---|\n'
        printf '%s\n' "${rows[@]}"
    } >"$page"
fi
[ $held = $all ]
