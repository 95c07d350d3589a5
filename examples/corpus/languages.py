"""Projects in each language: the lane, the other files, and the tests, written from groups of cases."""

import json
import re
import shlex

LANGUAGES = {}


def language(**facts):
    """Registers a writer of tests with its facts: `tool` and `run` (of the lane), `ignored`, and other keys of the lane."""

    def enter(writer):
        LANGUAGES[writer.__name__] = {**facts, "writer": writer}
        return writer

    return enter


def tests(project, cases):
    """Returns the files beside the sources, by path."""
    return LANGUAGES[project["language"]]["writer"](project, cases)


def text(value):
    return json.dumps(value, ensure_ascii=False)


def rows(cases, write):
    """Returns a line for each case, joined."""
    return "\n".join(write(*case) for case in cases)


@language(tool="python3", run="python3 -m unittest discover -s tests -t .", ignored="__pycache__/")
def python(project, cases):
    module = project["sources"][0].removesuffix(".py")
    groups = "\n\n".join(
        f"    def test_{name}(self):\n"
        + rows(group, lambda args, right: f"        self.assertEqual({project['call']}({', '.join(map(repr, args))}), {right!r})")
        for name, group in cases.items()
    )
    suite = f"import unittest\n\nfrom {module} import {project['call']}\n\n\nclass Tests(unittest.TestCase):\n{groups}\n"
    return {f"tests/test_{module}.py": suite, "tests/__init__.py": ""}


@language(tool="node", run="node --test", canary="node-test")
def node(project, cases):
    source = project["sources"][0]
    groups = "\n".join(
        f"test({text(name.replace('_', ' '))}, () => {{\n"
        + rows(group, lambda args, right: f"  assert.deepStrictEqual({project['call']}({', '.join(map(text, args))}), {text(right)});")
        + "\n});\n"
        for name, group in cases.items()
    )
    head = f'import assert from "node:assert";\nimport test from "node:test";\nimport {{ {project["call"]} }} from "../{source}";\n\n'
    package = {"name": project["name"], "version": "1.0.0", "private": True, "type": "module", "scripts": {"test": "node --test"}}
    name = source.removeprefix("src/").removesuffix(".js")
    return {f"test/{name}.test.js": head + groups, "package.json": json.dumps(package, indent=2) + "\n"}


def go_value(value):
    if not isinstance(value, list):
        return text(value)
    deep = any(isinstance(item, list) for item in value)
    kind = "[][]int" if deep else "[]string" if any(isinstance(item, str) for item in value) else "[]int"
    inner = ", ".join("{%s}" % ", ".join(map(text, item)) if deep else text(item) for item in value)
    return f"{kind}{{{inner}}}"


def go_args(project, args):
    empty = {"Merge": "[][]int{}"}.get(project["call"])
    return ", ".join(empty if value == [] else go_value(value) for value in args)


@language(tool="go", run="go test ./...", canary="go-test")
def go(project, cases):
    package = project["sources"][0].removesuffix(".go")
    groups = "\n".join(
        f"func Test{name.title().replace('_', '')}(t *testing.T) {{\n"
        + rows(group, lambda args, right: f"\tcheck(t, {project['call']}({go_args(project, args)}), {go_value(right)})")
        + "\n}\n"
        for name, group in cases.items()
    )
    check = (
        "// check compares as people read.\nfunc check(t *testing.T, got, want interface{}) {\n\tt.Helper()\n"
        '\tif fmt.Sprint(got) != fmt.Sprint(want) {\n\t\tt.Errorf("got %v, want %v", got, want)\n\t}\n}\n'
    )
    head = f'package {package}\n\nimport (\n\t"fmt"\n\t"testing"\n)\n\n{check}\n'
    return {f"{package}_test.go": head + groups, "go.mod": f"module example.org/{project['name']}\n\ngo 1.18\n"}


def rust_value(value):
    if isinstance(value, list):
        return f"[{', '.join(map(rust_value, value))}]"
    return text(value)


def rust_result(project, value):
    if project.get("optional"):
        return "None" if value is None else f"Some({rust_value(value)})"
    return f"vec!{rust_value(value)}" if isinstance(value, list) else rust_value(value)


@language(tool="cargo", run="cargo test --offline --quiet", cache="target", ignored="/target", canary_for_some="cargo-test")
def rust(project, cases):
    crate = project["name"].replace("-", "_")

    def call(args, right):
        given = ", ".join(f"&{rust_value(value)}" if isinstance(value, list) else rust_value(value) for value in args)
        if isinstance(right, bool):
            return f"    assert!({'' if right else '!'}{project['call']}({given}), {text(given)});".replace("{}", "{{}}")
        return f"    assert_eq!({project['call']}({given}), {rust_result(project, right)});"

    groups = "\n".join(f"#[test]\nfn {name}() {{\n{rows(group, call)}\n}}\n" for name, group in cases.items())
    package = f'[package]\nname = "{project["name"]}"\nversion = "1.0.0"\nedition = "2021"\npublish = false\n'
    lock = f'version = 3\n\n[[package]]\nname = "{project["name"]}"\nversion = "1.0.0"\n'
    return {
        "tests/cases.rs": f"use {crate}::{project['call']};\n\n{groups}",
        "Cargo.toml": package,
        "Cargo.lock": f"# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\n{lock}",
    }


@language(tool="sh", run="sh tests/run.sh")
def shell(project, cases):
    def check(args, right):
        return "check " + " ".join(shlex.quote(word) for word in [right, *args])

    groups = "\n".join(f"\necho {shlex.quote(name.replace('_', ' '))}\n{rows(group, check)}" for name, group in cases.items())
    head = f"""#!/bin/sh
# What {project['call']} must say. check WANTED INPUT ARGUMENT…
cd "$(dirname "$0")/.." || exit 2
passed=0 failed=0

check() {{
    wanted=$1 input=$2
    shift 2
    got=$(printf '%s' "$input" | sh {project['call']} "$@" 2>&1)
    if [ "$got" = "$wanted" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED %s\\n    wanted: %s\\n    got:    %s\\n' "$*" "$wanted" "$got"
    fi
}}
"""
    return {"tests/run.sh": f'{head}{groups}\n\necho "$passed passed, $failed failed"\n[ "$failed" -eq 0 ]\n'}


def c_value(value):
    if isinstance(value, list):
        return f"(const long long[]){{{', '.join(f'{item}LL' for item in value)}}}, {len(value)}" if value else "NULL, 0"
    return text(value)


@language(tool="cc", run="make -s check", ignored="/build")
def c(project, cases):
    header = project["sources"][1]
    words = any(isinstance(right, str) for group in cases.values() for _, right in group)
    kind = "text" if words else "number"

    def check(args, right):
        wanted = text(right) if words else f"{right}LL"
        return f"    check_{kind}(__LINE__, {project['call']}({', '.join(map(c_value, args))}), {wanted});"

    groups = "\n".join(f"static void {name}(void) {{\n{rows(group, check)}\n}}\n" for name, group in cases.items())
    calls = "\n".join(f"    {name}();" for name in cases)
    checks = {
        "text": 'static void check_text(int line, char *got, const char *wanted) {\n    if (got == NULL || strcmp(got, wanted) != 0) {\n'
        '        printf("tests/test_all.c:%d: got \\"%s\\", wanted \\"%s\\"\\n", line, got ? got : "nothing", wanted);\n        failed++;\n'
        "    }\n    free(got);\n}\n",
        "number": "static void check_number(int line, long long got, long long wanted) {\n    if (got != wanted) {\n"
        '        printf("tests/test_all.c:%d: got %lld, wanted %lld\\n", line, got, wanted);\n        failed++;\n    }\n}\n',
    }[kind]
    includes = f'#include "../{header}"\n\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\nstatic int failed;\n\n'
    make = (
        "CFLAGS ?= -std=c99 -Wall -Wextra -O1\n\n.PHONY: check\ncheck: build/tests\n\t./build/tests\n\n"
        f"build/tests: {project['sources'][0]} {header} tests/test_all.c\n\t@mkdir -p build\n"
        f"\t$(CC) $(CFLAGS) -o $@ {project['sources'][0]} tests/test_all.c\n"
    )
    main = f'int main(void) {{\n{calls}\n    printf("%d failed\\n", failed);\n    return failed != 0;\n}}\n'
    return {"tests/test_all.c": f"{includes}{checks}\n{groups}\n{main}", "Makefile": make}


def perl_value(value):
    if isinstance(value, list):
        return f"[{', '.join(map(perl_value, value))}]"
    return "'" + re.sub(r"(['\\])", r"\\\1", value) + "'" if isinstance(value, str) else str(value)


@language(tool="prove", run="prove -Ilib t")
def perl(project, cases):
    module = project["sources"][0].removeprefix("lib/").removesuffix(".pm")

    def check(args, right):
        given = ", ".join(map(perl_value, args))
        return f"    is_deeply({project['call']}({given}), {perl_value(right)}, {perl_value(given)});"

    groups = "\n".join(f"subtest {perl_value(name.replace('_', ' '))} => sub {{\n{rows(group, check)}\n}};\n" for name, group in cases.items())
    return {f"t/{module.lower()}.t": f"use strict;\nuse warnings;\nuse Test::More;\nuse {module} '{project['call']}';\n\n{groups}\ndone_testing;\n"}
