#!/usr/bin/env bash
# Plays the first hour of a user in a terminal: walks.sh [NAME…]
#
# Each walk begins in an empty folder. The tools of a language make a project, the walk adds a bug and
# a test that fails, and then types the commands of the README up to a committed fix. Written answers
# play the model. A walk fails if
#   - a command of fledge is not in the README or the tutorials;
#   - a command ends with another exit code than expected, or prints an error or a refusal;
#   - the commit is not the tree that fledge judged, or a file is left uncommitted;
#   - the screen of 80x24 has control characters, two status lines, or a live line after the command;
#   - it takes two minutes or more.
# The walk `rust` also compares its last screen with the one in the README.
#
# Without names, all walks run. A walk is skipped with a line if its tools, or the registry of its
# packages, cannot be reached. FLEDGE is the program. WALKS_DIR keeps projects and captures.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
FLEDGE=$(realpath -e "${FLEDGE:-$here/target/debug/fledge}") || exit 2
work=${WALKS_DIR:-$(mktemp -d)}
mkdir -p "$work/bin" && work=$(cd "$work" && pwd) || exit 2
ln -sf "$FLEDGE" "$work/bin/fledge"
export PATH=$work/bin:$PATH FLEDGE_STATE_DIR=$work/state
export GIT_CONFIG_GLOBAL=$work/gitconfig GIT_CONFIG_NOSYSTEM=1 PIP_DISABLE_PIP_VERSION_CHECK=1 npm_config_update_notifier=false
printf '[user]\n\tname = Walker\n\temail = walker@localhost\n[init]\n\tdefaultBranch = main\n' >"$work/gitconfig"
unset ANTHROPIC_API_KEY OPENAI_API_KEY FLEDGE FLEDGE_MODEL FLEDGE_NON_INTERACTIVE NO_COLOR CI TMUX VIRTUAL_ENV
key=sk-ant-of-a-walk-5f1d7c20b9
spinner='⠋|⠙|⠹|⠸|⠼|⠴|⠦|⠧|⠇|⠏'

terminal() { tmux -L "walks-$$" -f /dev/null "$@"; }
trap 'terminal kill-server 2>/dev/null' EXIT

# Opens a terminal in an empty folder.
open_terminal() {
    folder=$work/$walk
    rm -rf "$folder" "$work/$walk".* && mkdir "$folder"
    terminal new-session -d -s "$walk" -x 80 -y 24 -c "$folder" \
        "exec env PS1='$ ' PROMPT_COMMAND='echo \$? >$work/$walk.code; pwd >$work/$walk.pwd; tmux -L walks-$$ wait-for -S $walk' bash --norc --noprofile"
    terminal set-option -t "$walk" history-limit 10000
    timeout 10 tmux -L "walks-$$" wait-for "$walk"
}

wrong() { reasons+=("$1"); }

# Returns whether the live lines of a screen are one block at its end, with at most one status line.
is_drawn_well() {
    awk -v live="^ ?($spinner) " '
        $0 ~ live { count += / turn [0-9]+\/[0-9]+ /; begun = 1; next }
        begun && NF { broken = 1 }
        END { exit broken || count > 1 }' "$1"
}

# Looks at the screen while a command runs. A single bad look may be in the middle of a write.
watch_screen() {
    local bad=0
    while terminal capture-pane -p -t "$walk" >"$work/$walk.now"; do
        if is_drawn_well "$work/$walk.now"; then bad=0; else bad=$((bad + 1)); fi
        [ $bad -lt 2 ] || cp "$work/$walk.now" "$work/$walk.garbled"
        sleep 0.1
    done
}

# Types a command, and waits for its end. $2 is the expected exit code. What it printed is in $screen.
run() {
    local line=$1 wanted=${2:-0} watcher code
    commands=$((commands + 1))
    screen=$work/$walk.$(printf '%02d' $commands).screen
    case $line in
        fledge* | *'Add fledge'* | export*)
            grep -qF -- "${line/$key/…}" "$here/README.md" "$here"/docs/tutorial/*.md || wrong "no page has \`$line\`" ;;
    esac
    terminal clear-history -t "$walk"
    terminal send-keys -t "$walk" -l -- "clear; $line"
    watch_screen & watcher=$!
    terminal send-keys -t "$walk" Enter
    timeout 120 tmux -L "walks-$$" wait-for "$walk" || wrong "\`$line\` did not end"
    kill $watcher && wait $watcher 2>/dev/null
    code=$(cat "$work/$walk.code")
    terminal capture-pane -p -J -S - -t "$walk" | sed '/^\$ *$/d; s/ *$//' | cat -s >"$screen"
    [ "$code" = "$wanted" ] || wrong "\`$line\` ended with $code"
    if [[ $line == fledge* ]]; then judge_screen "$line"; fi
}

# Insists that the screen of a command of fledge has no error and no garble.
judge_screen() {
    local found
    found=$(grep -vE '^(    \||! (lane |failed before any change))' "$screen" | grep -Ei '^(error|warning|! )|^  warnings|panicked|refuse|cannot ' | head -1)
    [ -z "$found" ] || wrong "\`$1\` printed: $found"
    if grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xef\xbf\xbd|\[[0-9;]+m' "$screen"; then wrong "\`$1\` left control characters"; fi
    if grep -qE "^ ?($spinner) " "$screen"; then wrong "\`$1\` left a live line"; fi
    if [ -e "$work/$walk.garbled" ]; then mv "$work/$walk.garbled" "$screen.garbled" && wrong "\`$1\` drew $screen.garbled"; fi
}

# Writes a file, as the user's editor does. The text comes from standard input.
file() { mkdir -p "$(dirname "$(cat "$work/$walk.pwd")/$1")" && cat >"$(cat "$work/$walk.pwd")/$1"; }

# Writes the task, with a model, and its answers: $1 is the title, $2 the file with the bug, $3 the
# wrong text, $4 the right one.
task() {
    printf -- '---\nmodel: cassette/answers.yaml\n---\n# %s\n\n`%s` multiplies hours by 6. Find out why the test fails, and repair it.\n' "$1" "$2" | file tasks/first.md
    file tasks/answers.yaml <<ANSWERS
name: $walk
turns:
  - text: "I'll read the parser."
    tools: [{ name: files-read, input: { path: $2 } }]
  - text: "An hour has 60 minutes, not 6."
    tools: [{ name: files-edit, input: { path: $2, old: "$3", new: "$4" } }]
  - text: "Hours were multiplied by 6. They are multiplied by 60 now."
ANSWERS
}

# Types what the README says, from a committed project with a bug to a committed fix. The arguments are
# those of `task`.
repair() {
    local tree
    run "fledge init"
    task "$@"
    run "git add -A && git commit -m 'Add fledge'"
    run "export ANTHROPIC_API_KEY=$key" # written answers play the model
    run "fledge doctor"
    grep -q '^Ready' "$screen" || wrong "\`fledge doctor\` does not say that all is ready"
    run "fledge lanes run verify" 1
    run "fledge run tasks/first.md --commit on-success"
    grep -q '^✓ Verified in ' "$screen" || wrong "the fix is not verified"
    tree=$(sed -n 's/^  proof    tree \([0-9a-f]*\) .*/\1/p' "$screen")
    [ "$walk" != rust ] || compare_with_readme
    folder=$(cat "$work/$walk.pwd")
    case $(git -C "$folder" rev-parse 'HEAD^{tree}') in "${tree:-none}"*) ;; *) wrong "the commit is not the judged tree ${tree:-}" ;; esac
    [ "$(git -C "$folder" log -1 --format=%s)" = "$1" ] || wrong "the commit is not named by the task"
    [ -z "$(git -C "$folder" status --porcelain)" ] || wrong "the workspace has uncommitted files"
    run "fledge runs diff last"
    run "fledge runs show last"
}

# Replaces what differs from run to run: times, hashes, the sandbox, the branch, and the place of the
# verdict on the base.
stable() { sed -E '/^! failed before/d; s/[0-9]+m?[0-9.]*s\b/TIME/g; s/[0-9a-f]{12}/HASH/g; s/behind [a-z]+/SANDBOX/; s/ on (main|master)$/ on BRANCH/'; }

# Insists that the README shows what the last command printed.
compare_with_readme() {
    sed -n '/^```text$/,/^```$/p' "$here/README.md" | sed '/^```/d; /^\$ /d' | stable >"$work/readme"
    diff <(sed '1,/^●/{/^●/!d}; /^  attempts/,$d' "$screen" | stable) "$work/readme" >"$work/readme.diff" ||
        wrong "the README shows another screen: $work/readme.diff"
}

needs() { # Returns whether the programs are here. Prints a line if one is missing.
    local program
    for program; do command -v "$program" >/dev/null || { echo "skipped: $walk: $program is missing"; return 1; }; done
}

reaches() { # Returns whether a command that asks a registry succeeds. Prints a line if it does not.
    timeout "${patience:-20}" "$@" >/dev/null 2>&1 || { echo "skipped: $walk: \`$*\` fails here"; return 1; }
}

installs() { # Returns whether npm installs packages here, and the first of them starts. Prints a line if not.
    local folder=$work/npm
    mkdir -p "$folder" && patience=90 reaches npm install --prefix "$folder" --no-save --no-fund --no-audit "$@" &&
        reaches "$folder/node_modules/.bin/$1" --version
}

rust() {
    needs cargo || return
    open_terminal
    run "cargo new --lib hours && cd hours"
    file src/lib.rs <<'RS'
/// Converts a time such as `1:30` to minutes.
pub fn minutes(text: &str) -> Option<u32> {
    let (hours, minutes) = text.split_once(':')?;
    Some(hours.parse::<u32>().ok()? * 6 + minutes.parse::<u32>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::minutes;

    #[test]
    fn an_hour_has_sixty_minutes() {
        assert_eq!(minutes("1:30"), Some(90));
    }
}
RS
    run "cargo test" 101
    run "git add -A && git commit -qm 'A parser with a bug'"
    repair "Repair the time parser" src/lib.rs "* 6 +" "* 60 +"
}

python() {
    needs python3 && reaches python3 -m pip download -q --no-deps -d "$work/pip" pytest || return
    open_terminal
    run "git init -q && python3 -m venv .venv && .venv/bin/pip install -q pytest"
    printf '.venv/\n__pycache__/\n' | file .gitignore
    printf '[project]\nname = "hours"\nversion = "0.1.0"\n\n[tool.pytest.ini_options]\npythonpath = ["."]\n' | file pyproject.toml
    file hours.py <<'PY'
def minutes(text):
    """Converts a time such as `1:30` to minutes."""
    hours, _, minutes = text.partition(":")
    return int(hours) * 6 + int(minutes)
PY
    file tests/test_hours.py <<'PY'
from hours import minutes


def test_an_hour_has_sixty_minutes():
    assert minutes("1:30") == 90
PY
    run ".venv/bin/pytest -q" 1
    run "git add -A && git commit -qm 'A parser with a bug'"
    repair "Repair the time parser" hours.py "* 6 +" "* 60 +"
}

typescript() {
    needs node npm && reaches npm view vitest version && installs vitest typescript || return
    open_terminal
    run "git init -q && npm init -y"
    run "npm install --save-dev --no-fund --no-audit typescript vitest"
    run "npm pkg set type=module scripts.test='vitest run'"
    echo node_modules/ | file .gitignore
    printf '{ "compilerOptions": { "strict": true, "module": "nodenext", "noEmit": true } }\n' | file tsconfig.json
    file src/hours.ts <<'TS'
/** Converts a time such as `1:30` to minutes. */
export function minutes(text: string): number {
  const [hours, minutes] = text.split(':').map(Number);
  return hours! * 6 + minutes!;
}
TS
    file src/hours.test.ts <<'TS'
import { expect, test } from 'vitest';
import { minutes } from './hours.js';

test('an hour has sixty minutes', () => expect(minutes('1:30')).toBe(90));
TS
    run "npm test" 1
    run "git add -A && git commit -qm 'A parser with a bug'"
    repair "Repair the time parser" src/hours.ts "* 6 +" "* 60 +"
}

go_() {
    needs go || return
    open_terminal
    run "git init -q && go mod init example.com/hours"
    file hours.go <<'GO'
// Package hours reads times.
package hours

import "fmt"

// Minutes converts a time such as 1:30 to minutes.
func Minutes(text string) (int, error) {
	var hours, minutes int
	_, err := fmt.Sscanf(text, "%d:%d", &hours, &minutes)
	return hours*6 + minutes, err
}
GO
    file hours_test.go <<'GO'
package hours

import "testing"

func TestAnHourHasSixtyMinutes(t *testing.T) {
	if got, err := Minutes("1:30"); got != 90 || err != nil {
		t.Errorf("Minutes(1:30) = %d, %v", got, err)
	}
}
GO
    run "go test ./..." 1
    run "git add -A && git commit -qm 'A parser with a bug'"
    repair "Repair the time parser" hours.go "hours*6 +" "hours*60 +"
}

c() {
    needs cmake ctest cc || return
    open_terminal
    run "git init -q"
    echo build/ | file .gitignore
    file CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(hours C)
enable_testing()
add_library(hours hours.c)
add_executable(hours_test hours_test.c)
target_link_libraries(hours_test hours)
add_test(NAME hours COMMAND hours_test)
CMAKE
    echo 'int minutes(const char *text);' | file hours.h
    file hours.c <<'C'
#include "hours.h"
#include <stdio.h>

/* Converts a time such as 1:30 to minutes, or returns -1. */
int minutes(const char *text)
{
    int hours, minutes;
    if (sscanf(text, "%d:%d", &hours, &minutes) != 2)
        return -1;
    return hours * 6 + minutes;
}
C
    file hours_test.c <<'C'
#include "hours.h"
#include <stdio.h>

int main(void)
{
    int got = minutes("1:30");
    printf("minutes(\"1:30\") is %d, expected 90\n", got);
    return got != 90;
}
C
    run "cmake -B build && cmake --build build"
    run "ctest --test-dir build" 8
    run "git add -A && git commit -qm 'A parser with a bug'"
    repair "Repair the time parser" hours.c "* 6 +" "* 60 +"
}

# Plays one walk. Prints its row.
play() {
    local reasons=() commands=0 screen begun=$SECONDS took
    case $walk in go) go_ ;; rust | python | typescript | c) "$walk" ;; *) wrong "there is no such walk" ;; esac
    [ $commands -gt 0 ] || [ ${#reasons[@]} -gt 0 ] || return 0
    took=$((SECONDS - begun))
    [ $took -lt 120 ] || wrong "it took two minutes or more"
    printf '| %-10s | %8d | %7d | ' "$walk" $commands $took
    if [ ${#reasons[@]} = 0 ]; then echo "verified and committed |"; return 0; fi
    printf '%s; ' "${reasons[@]}" | sed 's/; $/ |\n/'
    return 1
}

main() {
    local failed=0 walk
    command -v tmux >/dev/null || { echo "skipped: walks: tmux is missing (apt-get install tmux)"; return 0; }
    [ $# -gt 0 ] || set -- rust python typescript go c
    printf '| %-10s | commands | seconds | result |\n|---|---|---|---|\n' walk
    for walk; do play || failed=1; done
    if [ $failed = 1 ] || [ -n "${WALKS_DIR:-}" ]; then echo "captures: $work"; else rm -rf "$work"; fi
    return $failed
}

main "$@"; exit # on one line, so that bash has read the whole file before main runs
