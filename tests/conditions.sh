#!/usr/bin/env bash
# Runs the test programs in each of the conditions in which users run them, and prints a line for
# each: conditions.sh [NAME…]
#
# Filters of tests go into FILTER, for example FILTER='run:: lanes::'; without one, all tests run.
# Without names, FLEDGE_TEST_PART=2/7 chooses the second of every seven conditions (part.sh).
# The suite must pass in each condition. The ordinary user needs root; without root it is skipped
# with a line.
set -u
cd "$(dirname "$0")/.."
here=$PWD logs=$PWD/target/conditions
mkdir -p "$logs"

programs=$(cargo test --no-run --lib --test it 2>&1 | sed -n 's/^ *Executable .*(\(.*\))$/\1/p')
[ -n "$programs" ] || { echo "conditions: the tests do not build: cargo test --no-run" >&2; exit 1; }
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-8} CARGO_MANIFEST_DIR=$here CARGO=${CARGO:-$(command -v cargo)}

# Runs both programs one after the other. $1 is the log. The rest is the command that starts each
# program.
suite() {
    local log=$1 program status=0
    shift
    : >"$log"
    for program in $programs; do
        # shellcheck disable=SC2086 # a filter of several words
        "$@" "$here/${program#"$here"/}" ${FILTER:-} >>"$log" 2>&1 </dev/null || status=$?
    done
    return $status
}

ignoring() { # Runs a command with a signal ignored, as a parent that ignores it leaves it.
    local signal=$1
    shift
    (trap '' "$signal"; exec "$@")
}

plain() { suite "$1"; }
nohup_() { suite "$1" nohup; }
setsid_() { suite "$1" setsid --wait; }
sigint() { suite "$1" ignoring INT; }
sighup() { suite "$1" ignoring HUP; }
sigpipe() { suite "$1" ignoring PIPE; }
closed_stdin() { suite "$1" without_stdin; }
without_stdin() { "$@" <&-; }
umask_077() { (umask 077; suite "$1"); }
lang_c() { suite "$1" env LANG=C LC_ALL=C; }
lang_de() { suite "$1" env LANG=de_DE.UTF-8 LC_ALL=de_DE.UTF-8; }
twice() {
    suite "$1.first" & local first=$!
    suite "$1"
    local second=$?
    wait "$first" && return "$second"
}
busy() {
    local loops=() status
    for _ in 1 2 3 4; do (while :; do :; done) & loops+=($!); done
    suite "$1"
    status=$?
    kill "${loops[@]}" 2>/dev/null
    return "$status"
}
# Without TMPDIR, tests write in memory if possible.
other_file_system() {
    local place status
    place=$(mktemp -d -p /var/tmp) || return 1
    suite "$1" env TMPDIR="$place"
    status=$?
    rm -rf "$place"
    return "$status"
}
# The user has the checkout and the toolchains as their own, in a mount namespace that ends with the
# tests.
ordinary_user() {
    local home status
    home=$(mktemp -d)
    mkdir -p "$home/up" "$home/work" "$home/tmp" "$home/.cargo" "$home/.rustup"
    export home here
    suite "$1" unshare --mount bash -c '
        mount -t overlay overlay -o "lowerdir=$here,upperdir=$home/up,workdir=$home/work,metacopy=on" "$here" &&
        chown -R daemon:daemon "$here" "$home/tmp" && chown daemon:daemon "$home" && chmod 755 "$home" &&
        mount --bind "${CARGO_HOME:-$HOME/.cargo}" "$home/.cargo" &&
        { [ ! -d "${RUSTUP_HOME:-$HOME/.rustup}" ] || mount --bind "${RUSTUP_HOME:-$HOME/.rustup}" "$home/.rustup"; } &&
        cd "$here" &&
        exec setpriv --reuid daemon --regid daemon --clear-groups env HOME="$home" TMPDIR="$home/tmp" \
            PATH="$home/.cargo/bin:/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin" "$0" "$@"'
    status=$?
    rm -rf "$home"
    return "$status"
}

conditions="plain nohup_ setsid_ sigint sighup sigpipe closed_stdin umask_077 lang_c lang_de other_file_system ordinary_user twice busy"
part=${FLEDGE_TEST_PART:-1/1} index=0 failed=0
unset FLEDGE_TEST_ALL FLEDGE_TEST_PART # each condition has the samples of an ordinary run
if [ $# -eq 0 ]; then
    for condition in $conditions; do
        [ $((index++ % ${part#*/} + 1)) != "${part%/*}" ] || set -- "$@" "$condition"
    done
fi
for condition; do
    begun=$SECONDS
    why=
    case $condition in
        ordinary_user) [ "$(id -u)" = 0 ] || why="only root can become another user; run it as root" ;;
        lang_de) locale -a | grep -qi '^de_DE.utf-\?8$' || why="no locale de_DE.UTF-8; to install it: apt-get install locales, and locale-gen" ;;
    esac
    if [ -n "$why" ]; then printf '%-18s skipped: %s\n' "$condition" "$why"; continue; fi
    if "$condition" "$logs/$condition.log"; then word=passed; else word=FAILED failed=1; fi
    passed=$(sed -n 's/^test result: .* \([0-9]*\) passed; \([0-9]*\) failed.*/\1 passed, \2 failed/p' "$logs/$condition.log" | paste -sd ';')
    printf '%-18s %s in %d s (%s)\n' "${condition%_}" "$word" $((SECONDS - begun)) "$passed"
    [ "$word" = passed ] || sed -n '/^failures:$/,/^test result/p' "$logs/$condition.log" | grep '^    [a-z]' | sort -u
done
exit $failed
