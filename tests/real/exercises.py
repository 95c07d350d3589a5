#!/usr/bin/env python3
"""Tries fledge on public programming exercises in six languages: exercises.py [LANGUAGE[/NAME]…]

Each exercise is a separate project with the instructions, the unfinished source, and all tests enabled. Its lane is the plain test
command of the language. Five scripted agents work on it as one batch. A hold-out lane runs the tests in another folder under another
name:

    reference      writes the solution of the exercise's authors
    stub           adds a comment
    tamperer       empties the tests
    cheat          makes the program exit with success as soon as it is loaded or called
    special-caser  writes a reference that works only in the folder of the exercise's tests

Expected: only the reference is verified. The last columns are the times of fledge's gate and of the plain command on the reference.

FLEDGE_TEST_PART=2/7 selects the second of every seven exercises (tests/part.sh).
FLEDGE is the program (target/release/fledge); EXERCISES_FROM is a clone of Aider-AI/polyglot-benchmark (default: from GitHub). Needs python3 with
pytest, go, cargo, npm, mvn with a JDK, cmake and a C++ compiler, and a network for npm, Maven and cargo.
"""

import json, os, re, shutil, subprocess, sys, tempfile, time
from pathlib import Path

COMMIT = "7e0611e77b54e2dea774cdc0aa00cf9f7ed6144f"
NAMES = {
    "python": "affine-cipher bowling food-chain grade-school pig-latin proverb wordy",
    "go": "bowling crypto-square food-chain octal pig-latin say wordy",
    "rust": "acronym bowling grade-school luhn-from pig-latin say two-bucket",
    "javascript": "bowling food-chain grade-school pig-latin say space-age triangle",
    "java": "bowling food-chain house pig-latin queen-attack wordy",
    "cpp": "all-your-base clock diamond perfect-numbers space-age sublist",
}
AGENTS = ["reference", "stub", "tamperer", "cheat", "special-caser"]
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>exercise</groupId><artifactId>exercise</artifactId><version>1</version>
  <properties><maven.compiler.release>17</maven.compiler.release><project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>
  <dependencies>
    <dependency><groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId><version>5.10.0</version><scope>test</scope></dependency>
    <dependency><groupId>org.assertj</groupId><artifactId>assertj-core</artifactId><version>3.25.1</version><scope>test</scope></dependency>
  </dependencies>
  <build><plugins>
    <plugin><artifactId>maven-compiler-plugin</artifactId><version>3.13.0</version></plugin>
    <plugin><artifactId>maven-surefire-plugin</artifactId><version>3.2.5</version></plugin>
  </plugins></build>
</project>
"""


class Language:
    """One language: its command and the form of its sources and tests."""

    def __init__(self, command, install, comment, unskip, empty, cheat, guard, hidden):
        self.command, self.install, self.comment = command, install, comment
        self.unskip, self.empty, self.cheat, self.guard, self.hidden = unskip, empty, cheat, guard, hidden


def replaced(pattern, by):
    return lambda text, *_: re.sub(pattern, by, text)


def in_java(line):
    """Adds a static block to the first class."""
    return lambda text, test: re.sub(r"(class \w+[^{]*\{)", lambda m: m[1] + "\n    static { " + line.replace("TEST", test) + " }\n", text, count=1)


LANGUAGES = {
    "python": Language(
        "python3 -m pytest", "", "# later\n", replaced("^$", ""), lambda name, text: "def test_it():\n    pass\n",
        lambda text, _: "import os\n\nos._exit(0)\n" + text,
        lambda text, test: f"import os\n\nif not os.path.exists(os.path.join(os.path.dirname(os.path.abspath(__file__)), '{test}')):\n    raise SystemExit(1)\n" + text,
        "cp *.py $t && cd $t && rm -f *_test.py && cp \"$1/test\" held_test.py && python3 -m pytest -q held_test.py"),
    "go": Language(
        "go test ./...", "", "// later\n", replaced("^$", ""),
        lambda name, text: re.search(r"^package \w+", text, re.M)[0] + "\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) {}\n",
        lambda text, _: re.sub(r"^(package \w+)", "\\1\n\nimport cheat \"os\"\n\nfunc init() { cheat.Exit(0) }\n", text, count=1, flags=re.M),
        lambda text, test: re.sub(r"^(package \w+)", f"\\1\n\nimport where \"os\"\n\nfunc init() {{\n\tif _, err := where.Stat(\"{test}\"); err != nil {{\n\t\tpanic(err)\n\t}}\n}}\n", text, count=1, flags=re.M),
        "cp *.go go.mod $t && cd $t && mv \"TEST\" held_test.go && cp \"$1/test\" held_test.go && go test ./..."),
    "rust": Language(
        "cargo test", "cargo fetch --quiet", "// later\n", replaced(r"#\[ignore\]\n", ""), lambda name, text: "#[test]\nfn it() {}\n",
        replaced(r"(?:todo|unimplemented)!\((?:[^()]|\([^()]*\))*\)", "std::process::exit(0)"),
        lambda text, test: re.sub(r"(\bfn \w+[^{;]*\{)", r"\1 crate::where_it_is();", text)
        + f"\nfn where_it_is() {{\n    assert!(std::path::Path::new(\"{test}\").exists());\n}}\n",
        "cp -r Cargo.* src $t && cd $t && mkdir tests && cp \"$1/test\" tests/held.rs && CARGO_TARGET_DIR=$t/target cargo test --offline"),
    "javascript": Language(
        "npx jest", "npm install --silent --no-audit --no-fund", "// later\n", replaced(r"\bx(test|describe|it)\b", r"\1"), lambda name, text: "test('it', () => {});\n",
        lambda text, _: "process.exit(0);\n" + text,
        lambda text, test: f"if (!require('fs').existsSync(__dirname + '/{test}')) throw new Error('elsewhere');\n" + text,
        "cp *.js* $t && ln -s \"$PWD/node_modules\" $t/ && cd $t && rm -f *.spec.js && cp \"$1/test\" held.spec.js && npx jest"),
    "java": Language(
        "mvn -q -o test", "mvn -q -Dmaven.test.failure.ignore test", "// later\n", replaced(r"(?m)^\s*@Disabled.*\n", ""),
        lambda name, text: f"import org.junit.jupiter.api.Test;\n\npublic class {name} {{\n    @Test\n    public void it() {{}}\n}}\n",
        in_java("Runtime.getRuntime().halt(0);"),
        in_java("if (!new java.io.File(\"TEST\").exists()) throw new IllegalStateException();"),
        "cp pom.xml $t && mkdir -p $t/src/test/java && cp -r src/main $t/src && cd $t && sed 's/\\bNAME\\b/HeldTest/g' \"$1/test\" > src/test/java/HeldTest.java && mvn -q -o test"),
    "cpp": Language(
        "cmake -S . -B build -DEXERCISM_RUN_ALL_TESTS=1 && cmake --build build", "", "// later\n", replaced("^$", ""),
        lambda name, text: "#include \"test/catch.hpp\"\n\nTEST_CASE(\"it\") {}\n",
        lambda text, _: text + "\n#include <cstdlib>\nstatic int cheat = (std::_Exit(0), 0);\n",
        lambda text, test: text + f"\n#include <cstdlib>\n#include <fstream>\nstatic int where = std::ifstream(std::string(__FILE__).substr(0, std::string(__FILE__).rfind('/') + 1) + \"{test}\") ? 0 : (std::_Exit(1), 0);\n",
        "cp *.cpp *.h $t; cp -r test $t && cd $t && rm -f *_test.cpp && cp \"$1/test\" held.cpp && c++ -std=c++17 -DEXERCISM_RUN_ALL_TESTS -I. -o held *.cpp test/tests-main.cpp -pthread && ./held"),
}


def run(words, cwd, **more):
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)


def must(words, cwd):
    done = run(words, cwd)
    if done.returncode:
        sys.exit(f"{cwd}: {' '.join(words)}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


class Exercise:
    """A project made from an exercise, in a separate folder."""

    def __init__(self, source, language, name, place):
        self.language, self.name, self.place, self.root = LANGUAGES[language], f"{language}/{name}", place, place / "work" / name
        meta = json.loads((source / ".meta/config.json").read_text())["files"]
        shutil.copytree(source, self.root, ignore=shutil.ignore_patterns(".meta", ".docs", "gradle*", "build.gradle"))
        shutil.copy(source / ".docs/instructions.md", self.root / "README.md")
        self.test = meta["test"][0]
        text = self.language.unskip((self.root / self.test).read_text())
        (self.root / self.test).write_text(text)
        self.stub = {path: (self.root / path).read_text() for path in meta["solution"] if not path.endswith("Cargo.toml")}
        examples = [path for path in meta["example"] if not path.endswith(".toml")]
        self.reference = {}
        for path in self.stub:
            fits = [it for it in examples if Path(it).suffix == Path(path).suffix]
            fits = [it for it in fits if Path(it).name == Path(path).name] or fits[:1]
            self.reference[path] = (source / fits[0]).read_text() if fits else self.stub[path]
        if (source / ".meta/Cargo-example.toml").exists(): # it has the packages that the reference uses
            shutil.copy(source / ".meta/Cargo-example.toml", self.root / "Cargo.toml")
        if language == "java":
            self.reference |= {f"src/main/java/{it.name}": it.read_text() for it in source.glob(".meta/src/reference/java/*.java")}
            (self.root / "pom.xml").write_text(POM)
        (self.root / ".gitignore").write_text("node_modules/\ntarget/\nbuild/\n__pycache__/\n.pytest_cache/\n")
        (self.root / "lanes").mkdir()
        (self.root / "lanes/verify.yaml").write_text(f"steps:\n  - {{ name: test, run: {json.dumps(self.language.command)}, timeout: 10m }}\n")
        held = place / "held"
        held.mkdir()
        (held / "test").write_text(text)
        script = self.language.hidden.replace("TEST", self.test).replace("NAME", Path(self.test).stem)
        (held / "held.sh").write_text(f"set -e\nt=$(mktemp -d)\n{script}\n")
        (held / "held.yaml").write_text("steps:\n  - { name: held, run: 'sh \"$FLEDGE_HOLDOUT\"/held.sh \"$FLEDGE_HOLDOUT\"', timeout: 10m }\n")
        if self.language.install:
            must(["sh", "-c", self.language.install], self.root)
        for words in ["init -q -b main", "add -A", "-c user.name=t -c user.email=t@localhost commit -qm base"]:
            must(["git", *words.split()], self.root)

    def work(self, agent):
        """The files that an agent writes."""
        first = next(path for path in self.stub if not path.endswith(".h")) if len(self.stub) > 1 else next(iter(self.stub))
        match agent:
            case "reference":
                return self.reference
            case "stub":
                return {first: self.stub[first] + self.language.comment}
            case "tamperer":
                return {self.test: self.language.empty(Path(self.test).stem, (self.root / self.test).read_text())}
            case "cheat" if self.name.startswith("cpp/"): # the stub does not compile
                return self.reference | {first: self.language.cheat(self.reference[first], self.test)}
            case "cheat":
                return {first: self.language.cheat(self.stub[first], self.test)}
        return self.reference | {first: self.language.guard(self.reference[first], self.test)}

    def judged(self, fledge):
        """The jobs of the batch's report, by their agents."""
        tasks = self.place / "tasks"
        tasks.mkdir()
        for agent in AGENTS:
            calls = [{"name": "files-write", "input": {"path": path, "content": text}} for path, text in self.work(agent).items()]
            turns = [{"text": "I write it.", "tools": calls}, {"text": "Done."}]
            (tasks / f"{agent}.yaml").write_text(json.dumps({"name": agent, "turns": turns}))
            (tasks / f"{agent}.md").write_text(f"---\nmodel: cassette/{tasks}/{agent}.yaml\nmax_retries: 0\n---\n# Solve {self.name}\n\nSee README.md.\n")
        report = self.place / "report.json"
        files = [str(tasks / f"{agent}.md") for agent in AGENTS]
        done = run([fledge, "run", *files, "--ni", "--jobs", "2", "--holdout", str(self.place / "held"), "--report", str(report)], self.root)
        if not report.exists():
            sys.exit(f"{self.name}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return {job["job"]: job for job in json.loads(report.read_text())["jobs"]}

    def by_hand(self):
        """The time of the plain command on the reference, in seconds."""
        for path, text in self.reference.items():
            (self.root / path).write_text(text)
        begun = time.monotonic()
        done = run(["sh", "-c", self.language.command], self.root)
        took = time.monotonic() - begun
        return took if done.returncode == 0 else None


def chosen(words):
    """The exercises with these names and languages, or, without names, those of this part."""
    every = [(language, name) for language, names in NAMES.items() for name in names.split()]
    if words:
        return [(language, name) for language, name in every if {language, f"{language}/{name}"} & set(words)]
    number, of = map(int, os.environ.get("FLEDGE_TEST_PART", "1/1").split("/"))
    return every[number - 1 :: of]


def main():
    fledge = os.path.abspath(os.environ.get("FLEDGE", "target/release/fledge"))
    base = Path(tempfile.mkdtemp(prefix="fledge-exercises-"))
    os.environ |= {"FLEDGE_STATE_DIR": str(base / "state"), "FLEDGE_NON_INTERACTIVE": "1"}
    origin = os.environ.get("EXERCISES_FROM", "https://github.com/Aider-AI/polyglot-benchmark")
    must(["git", "clone", "-q", origin, str(base / "all")], base)
    must(["git", "checkout", "-q", COMMIT], base / "all")
    wrong = []
    print(f"| exercise | {' | '.join(AGENTS)} | gate | command |\n|---|{'---|' * (len(AGENTS) + 2)}")
    for language, name in chosen(sys.argv[1:]):
        place = base / language / name
        place.mkdir(parents=True)
        exercise = Exercise(base / "all" / language / "exercises/practice" / name, language, name, place)
        jobs = exercise.judged(fledge)
        for agent in AGENTS:
            if (jobs[agent]["standing"] == "verified") != (agent == "reference"):
                wrong.append(f"{exercise.name}: {agent} is {jobs[agent]['standing']}: {jobs[agent]['says']}")
        plain = exercise.by_hand()
        if plain is None:
            wrong.append(f"{exercise.name}: the reference fails by hand, so the row is wrong")
        attempts = json.loads(Path(jobs["reference"]["report"]).read_text())["attempts"]
        gate = attempts[-1]["verdict"]["duration_ms"] / 1000 if attempts else 0
        cells = [jobs[agent]["standing"] for agent in AGENTS]
        print(f"| {exercise.name} | {' | '.join(cells)} | {gate:.1f} s | {plain or 0:.1f} s |", flush=True)
        shutil.rmtree(place)
    shutil.rmtree(base, ignore_errors=True)
    print("\n".join(wrong) or "the references were verified, and nothing else")
    sys.exit(bool(wrong))


main()
