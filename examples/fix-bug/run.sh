#!/bin/sh
# Builds fledge and repairs the program in this folder with it. It works on a copy, so it can be
# repeated. FLEDGE names a program that is already built.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${FLEDGE:-}" ]; then
    cargo build --manifest-path "$here/../../Cargo.toml"
    target=$(cargo metadata --format-version 1 --no-deps --manifest-path "$here/../../Cargo.toml" | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
    FLEDGE=$target/debug/fledge
fi
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -R "$here/." "$copy/"
cd "$copy"
git init --quiet .
git add --all
git -c user.name=example -c user.email=example@localhost commit --quiet --message "A duration parser with a bug"
"$FLEDGE" run task.md "$@"
git --no-pager diff --stat
