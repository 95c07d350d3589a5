//! Wrong inputs of a new user, over all verbs, and the text that answers each of them.

use crate::support::Fledge;
use std::fmt::Write as _;

/// Commits the project, and runs its task.
const COMMITTED: &str = "git init -qb main . && git add -A && git -c user.name=u -c user.email=u@h commit -qm first; \
    fledge run task.md";

/// A shell command that changes the project, and the command that the user types.
///
/// The project has a lane `verify`, a task `task.md` and a folder `src`, and no repository. The key
/// is set, and no server listens at the address of its model.
const ROWS: &[(&str, &str)] = &[
    // Verbs and flags.
    ("", "fledge rnu task.md"),
    ("", "fledge task.md"),
    ("", r#"fledge "Fix the failing test""#),
    ("", r#"fledge -p "Fix the failing test""#),
    ("", "fledge fix the failing test"),
    ("", "fledge help rnu"),
    ("", "fledge -C gone run task.md"),
    ("", "fledge -C task.md lanes"),
    ("", "fledge --color red runs list"),
    // A run: the task.
    ("", "fledge run"),
    ("", "fledge run Fix the failing test"),
    ("", r#"fledge run "Fix the failing test""#),
    ("", "fledge run -p"),
    ("", r#"fledge run -p """#),
    ("", r#"fledge run -p "Fix it" task.md"#),
    ("", "fledge run tsk.md"),
    ("", "cd src && fledge run task.md"),
    ("", "fledge run src"),
    ("mkdir tasks", "fledge run tasks"),
    ("", "fledge run 'tasks/*.md'"),
    ("", "fledge run gone.yaml"),
    (": > tasks.yaml", "fledge run tasks.yaml"),
    (r"printf 'tasks: [gone/*.md]\n' > tasks.yaml", "fledge run tasks.yaml"),
    ("rm task.md; mkdir task.md", "fledge run task.md"),
    (": > task.md", "fledge run task.md"),
    (r"printf '\177ELF\000\377' > task.md", "fledge run task.md"),
    ("", "fledge run src/lib.rs"),
    ("", "fledge run task.md src/lib.rs"),
    ("", "fledge run lanes/verify.yaml"),
    ("printf 'lane\\000' > tasks.yaml", "fledge run tasks.yaml"),
    (r"printf -- '---\nmodel: a/b\n---\n' > task.md", "fledge run task.md"),
    (r"printf -- '---\nlane: verify\nDo it.\n' > task.md", "fledge run task.md"),
    (r"printf -- '---\nlane verify\n---\nDo it.\n' > task.md", "fledge run task.md"),
    (r"printf -- '---\n\tlane: verify\n---\nDo it.\n' > task.md", "fledge run task.md"),
    (r"printf -- '---\nfiles: [src\n---\nDo it.\n' > task.md", "fledge run task.md"),
    (r"printf -- '---\nlane: a\nlane: b\n---\nDo it.\n' > task.md", "fledge run task.md"),
    (r"printf -- '---\nfile: [src]\n---\nDo it.\n' > task.md", "fledge run task.md"),
    (r"printf -- '---\nbudget: { turns: -3, time: 5x }\n---\nDo it.\n' > task.md", "fledge run task.md"),
    (r"printf -- '---\nbudget: { turns: 1.5, time: 10 minutes }\n---\nDo it.\n' > task.md", "fledge run task.md"),
    (r"printf -- '---\nbudget: { turns: ten, time: 5 }\n---\nDo it.\n' > task.md", "fledge run task.md"),
    (r"printf -- '\357\273\277---\r\nlaen: verify\r\n---\r\nDo it.\r\n' > task.md", "fledge run task.md"),
    (r"printf -- '---\nlane: verfy\n---\nDo it.\n' > task.md", "fledge run task.md --dry-run"),
    (r"printf -- '---\nmodel: antropic/x\n---\nDo it.\n' > task.md", "fledge run task.md"),
    (r"printf -- '---\nneeds: [other]\n---\nDo it.\n' > task.md", "fledge run task.md"),
    (r"printf -- '---\nneeds: [other]\n---\nDo it.\n' > task.md; echo Do it. > other.md", "fledge run task.md"),
    (r"printf -- '---\nneeds: [othr]\n---\nDo it.\n' > task.md; echo Do it. > other.md", "fledge run task.md other.md"),
    (r"printf -- '---\nisolation: worktree\nbase: mian\n---\nDo it.\n' > task.md", COMMITTED),
    (r"printf -- '---\nspecs: [parser]\n---\nDo it.\n' > task.md", "fledge run task.md"),
    (r"printf -- '---\ncandidates: [nosuch, anthropic/x]\n---\nDo it.\n' > task.md", "fledge run task.md"),
    (r"printf 'tasks: [task.md]\ndefaults: { model: nosuch }\n' > tasks.yaml", "fledge run tasks.yaml"),
    ("", "fledge eval task.md --model antropic/x"),
    (r"printf -- '---\nbase: main\n---\nDo it.\n' > task.md", "fledge run task.md"),
    (r"printf -- '---\ncontext: [docs/spec.md]\n---\nDo it.\n' > task.md", "fledge run task.md"),
    (
        r"printf -- '---\nparams: { issue: {} }\n---\nClose {{ isue }}.\n' > task.md",
        "fledge run task.md --param issue=3",
    ),
    (
        r"printf -- '---\nparams: { issue: { required: true } }\n---\nClose {{ issue }}.\n' > task.md",
        "fledge run task.md",
    ),
    // A run: its flags.
    ("", "fledge run task.md --modle gpt-5"),
    ("", "fledge run task.md --param issue"),
    ("", "fledge run task.md --param issue=3"),
    ("", "fledge run task.md --params gone.yaml"),
    ("", "fledge run task.md --max-turns 3"),
    ("", "fledge run task.md --max-retries lots"),
    ("", "fledge run task.md --max-retries -1"),
    ("", "fledge run task.md --max-retries 1.5"),
    ("", "fledge run task.md --max-usd -1"),
    ("", "fledge run task.md --timeout -1"),
    ("", "fledge run task.md --retry-delay -5s"),
    ("", "fledge run task.md --jobs -1"),
    ("", "fledge fix --stuck-after -2"),
    ("", "fledge run task.md --candidates 1"),
    ("", "fledge run task.md --max-usd free"),
    ("", "fledge run task.md --sandbox of"),
    ("", "fledge run task.md --jobs 0"),
    ("", "fledge run task.md --jobs 2"),
    ("", "fledge run task.md --expect fail"),
    ("", "fledge run task.md --lane verfy --dry-run"),
    ("", "fledge run task.md --no-verify --lane verify"),
    ("", "fledge run task.md --holdout gone --dry-run"),
    ("", "fledge run task.md --report src"),
    ("", "fledge run task.md --report gone/report.json"),
    ("", "fledge run task.md --commit always"),
    ("", "fledge run task.md --commit on-success"),
    ("", "fledge run task.md --isolation worktree"),
    ("", "FLEDGE_STATE_DIR=. fledge run task.md"),
    // A dry run is refused as the run is.
    ("", "FLEDGE_STATE_DIR=. fledge run task.md --dry-run"),
    ("", "fledge run task.md --report gone/report.json --dry-run"),
    ("", "fledge run task.md --junit gone/junit.xml --dry-run"),
    ("", "fledge run task.md --record gone/tape.yaml --dry-run"),
    ("", "fledge run task.md --commit on-success --dry-run"),
    ("", "fledge run task.md --isolation worktree --dry-run"),
    ("", "fledge run task.md --model cassette/gone.yaml --dry-run"),
    (r"printf 'default_model: nosuch\n' > fledge.yaml", "fledge run task.md --dry-run"),
    ("", "fledge run task.md --sync localhost:9 --dry-run"),
    // Models and keys.
    ("unset ANTHROPIC_API_KEY", "fledge run task.md"),
    ("unset ANTHROPIC_API_KEY", "fledge models check"),
    ("", "fledge models check"),
    ("", "fledge models check gpt5"),
    // At its own port, a server of the user may listen.
    (
        r"printf 'models:\n  own: { provider: ollama, model: qwen3, base_url: http://127.0.0.1:1 }\n' > fledge.yaml",
        "fledge --trust-project models check own",
    ),
    ("", "fledge run task.md --model openai"),
    ("", "fledge run task.md --model antropic/claude-sonnet-4-5"),
    ("", "fledge run task.md --model cassette/gone.yaml"),
    (": > answers.yaml", "fledge run task.md --model cassette/answers.yaml"),
    (r"printf 'turns:\n  - txt: a\n' > answers.yaml", "fledge run task.md --model cassette/answers.yaml"),
    // Configuration.
    (r"printf 'models: [\n' > fledge.yaml", "fledge run task.md"),
    (r"printf 'default_model: nosuch\n' > fledge.yaml", "fledge run task.md"),
    (r"printf 'lane\000' > fledge.yaml", "fledge run task.md"),
    (r"printf 'max_wait: 1h30\n' > fledge.yaml", "fledge config"),
    (r"printf 'defualt_model: gpt\nmax_retries: lots\n' > fledge.yaml", "fledge config"),
    (r"printf 'models:\n  own: { provider: opnai, model: x }\n' > fledge.yaml", "fledge models"),
    (
        r"printf 'models:\n  own: { provider: openai, model: x, base_url: localhost:8080 }\n' > fledge.yaml",
        "fledge models",
    ),
    (r"printf 'lane: verify\n' > fledge.yml", "fledge lanes"),
    ("", "FLEDGE_MODLE=x fledge config path"),
    // Lanes.
    ("rm -r lanes", "fledge lanes run verify"),
    ("rm -r lanes", "fledge fix"),
    ("rm -r lanes task.md src", "fledge init"),
    ("mv lanes lane", "fledge lanes run verify"),
    ("", "fledge lanes verify"),
    ("", "fledge lanes run"),
    ("", "fledge lanes run verfy"),
    ("", "fledge lanes run lanes/verify.yaml"),
    ("", "fledge lanes run verify --only tset"),
    ("rm lanes/verify.yaml; mkdir lanes/verify.yaml", "fledge lanes run verify"),
    (": > lanes/verify.yaml", "fledge lanes run verify"),
    (r"printf '\000\001' > lanes/verify.yaml", "fledge lanes run verify"),
    (r"printf '\377\376' > lanes/verify.yaml", "fledge lanes run verify"),
    (r"printf 'make test\n' > lanes/verify.yaml", "fledge lanes run verify"),
    (r"printf 'steps:\n\t- run: make\n' > lanes/verify.yaml", "fledge lanes run verify"),
    (r"printf 'steps: [{ run: make }\n' > lanes/verify.yaml", "fledge lanes run verify"),
    (r"printf '\357\273\277steps:\r\n  - { rn: make }\r\n' > lanes/verify.yaml", "fledge lanes run verify"),
    (r"printf 'step:\n  - run: make\n' > lanes/verify.yaml", "fledge lanes validate"),
    (r"printf 'steps:\n  - { run: a }\nsteps:\n  - { run: b }\n' > lanes/verify.yaml", "fledge lanes run verify"),
    (
        r"printf 'steps:\n  - run: make\n    timeout: soon\n    retries: -1\n' > lanes/verify.yaml",
        "fledge lanes run verify",
    ),
    (r"printf 'steps:\n  - { name: a, run: a, needs: [build] }\n' > lanes/verify.yaml", "fledge lanes validate"),
    (r"printf 'steps:\n  - { run: pytset }\n' > lanes/verify.yaml", "fledge lanes run verify"),
    // The other verbs.
    ("", "fledge runs shwo last"),
    ("", "fledge runs show last"),
    ("", "fledge runs list --limit -1"),
    ("", "fledge runs prune --older-than 5x"),
    ("", "fledge runs prune --older-than 5"),
    ("", "fledge runs prune --older-than '10 minutes'"),
    ("", "fledge runs prune --older-than 1h30"),
    ("", "fledge runs prune --older-than -7d"),
    ("", "fledge runs prune --older-than --dry-run"),
    ("", "fledge runs prune --keep -1"),
    ("", "fledge runs prune --max-size -1GiB"),
    ("", "fledge runs resume last --max-time -5m"),
    ("", "fledge runs resume last --max-turns -5"),
    ("", "fledge runs logs last --attempt -1"),
    ("", "fledge apply"),
    ("", "fledge apply last"),
    ("", "fledge batch show last"),
    ("", "fledge eval task.md --min-rate 80"),
    ("", "fledge eval tasks"),
    ("", "fledge memory add"),
    ("", "fledge memory forget 1"),
    ("", "fledge worktrees clean 3"),
    ("", "fledge worktrees clean --older-than -1d"),
    ("", "fledge jobs run nightly"),
    ("", "fledge jobs history nightly --limit -1"),
    ("", "fledge monitors show backup"),
    ("", "fledge monitors add backup --schedule @daily --margin -5m"),
    ("", "fledge serve --port 99999"),
    ("", "fledge serve --listen 99999"),
    ("", "fledge serve --grace -30s"),
    ("", "fledge serve --max-runs -1"),
    ("", "fledge sync"),
    ("", "fledge sync --sync localhost:9"),
    ("", "fledge schema tsk"),
    ("", "fledge completions powershel"),
    ("", "fledge man rnu"),
    ("", "fledge docs lanes"),
    ("", "fledge docs lnaes"),
    ("", "fledge docs how-to/laness"),
    ("", "fledge docs everything"),
    ("", "fledge specs chek"),
    ("", "fledge verify-report gone.json"),
    ("printf '{' > report.json", "fledge verify-report report.json"),
    ("", "fledge doctor now"),
];

/// Calls the program `fledge`, whose path is the first argument.
const SHELL: &str = "program=$1; fledge() { \"$program\" \"$@\"; }; exec 2>&1";

/// Returns both commands of a row, and then the text and the exit code that came.
fn told((change, typed): &(&str, &str)) -> String {
    let script = format!("{SHELL}\n{change}\n{typed}");
    let place = Fledge::new()
        .lane("verify", "steps: [{ name: test, run: make test }]\n")
        .task("# Mend the parser\n\nIt gives 36.\n");
    let place = place
        .file("src/lib.rs", "// code\n")
        .env("ANTHROPIC_API_KEY", "sk-wrong-5f1d7c20b9")
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:1");
    let ended = place.under(&["/bin/sh", "-c", &script, "sh"]).args(&[]).run();
    let top = ended.path("..").canonicalize().unwrap().display().to_string();
    let text = ended.stdout.replace(&top, "TOP");
    let mut told = String::new();
    for line in [change, typed].into_iter().filter(|line| !line.is_empty()) {
        writeln!(told, "$ {line}").unwrap();
    }
    let code = ended.code.expect("no signal ends it");
    if code != 2 {
        writeln!(told, "(exit code {code})").unwrap();
    }
    told + text.trim_end() + "\n"
}

#[test]
fn every_wrong_input_of_a_new_user_gets_its_text() {
    let all: Vec<String> = std::thread::scope(|scope| {
        let parts = ROWS.chunks(ROWS.len().div_ceil(8));
        let parts: Vec<_> = parts.map(|rows| scope.spawn(move || rows.iter().map(told).collect::<Vec<_>>())).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    insta::with_settings!({ filters => vec![(r"in PATH \([^)]*\)", "in PATH (…)")] }, {
        insta::assert_snapshot!(all.join("\n"));
    });
}
