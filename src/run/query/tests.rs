//! Phrasings that ask for something, and those that do not.

use super::*;

const FILES: [(&str, &str); 42] = [
    ("I need to read src/main.rs", "src/main.rs"),
    ("The bug must be in there. I need to see the file `src/lib.rs`.", "src/lib.rs"),
    ("First, some thoughts.\n\nCould you show me the contents of \"Cargo.toml\"?", "Cargo.toml"),
    ("Let me look at tests/dates.rs:", "tests/dates.rs"),
    ("I'll need to look at src/run/mod.rs first.", "src/run/mod.rs"),
    ("I\u{2019}ll read src/run/mod.rs next.", "src/run/mod.rs"),
    ("I will read `Makefile.am` now.", "Makefile.am"),
    ("I will need to inspect src/a.rs before I can go on.", "src/a.rs"),
    ("I must read docs/api.md", "docs/api.md"),
    ("I have to check package.json first", "package.json"),
    ("I want to see go.mod", "go.mod"),
    ("I would like to see the full contents of src/parser.py, please.", "src/parser.py"),
    ("I'd like to read src/parser.py to understand how dates are parsed.", "src/parser.py"),
    ("I also need to look at config/dev.yaml.", "config/dev.yaml"),
    ("I still need to examine lib/index.js.", "lib/index.js"),
    ("I'm going to open src/x.ts", "src/x.ts"),
    ("Now I need to read src/main.rs and then I can fix it.", "src/main.rs"),
    ("First, let me read src/main.rs.", "src/main.rs"),
    ("Let me first check the file src/main.rs.", "src/main.rs"),
    ("Let me take a look at src/main.rs…", "src/main.rs"),
    ("Let me have a look at **src/main.rs**.", "src/main.rs"),
    ("Okay, let me see src/main.rs", "src/main.rs"),
    ("To fix this, I need to see src/main.rs.", "src/main.rs"),
    ("In order to find the cause, I need to read src/main.rs.", "src/main.rs"),
    ("The test fails: I need to read tests/it/main.rs.", "tests/it/main.rs"),
    ("Please show me src/main.rs.", "src/main.rs"),
    ("Please provide the contents of src/main.rs", "src/main.rs"),
    ("Please share the file `src/main.rs` so that I can go on.", "src/main.rs"),
    ("Please paste the source code of src/main.rs.", "src/main.rs"),
    ("Can you show me src/main.rs?", "src/main.rs"),
    ("Can you please share src/main.rs?", "src/main.rs"),
    ("Could you give me the text of README.md?", "README.md"),
    ("Would you send me src/main.rs?", "src/main.rs"),
    ("Show me src/main.rs", "src/main.rs"),
    ("May I see src/main.rs?", "src/main.rs"),
    ("Could I see the current contents of src/main.rs?", "src/main.rs"),
    ("What is in src/main.rs?", "src/main.rs"),
    ("What's inside the file src/main.rs?", "src/main.rs"),
    ("What are the contents of .github/workflows/ci.yml?", ".github/workflows/ci.yml"),
    ("What does src/main.rs contain?", "src/main.rs"),
    ("How does src/main.rs look?", "src/main.rs"),
    ("- I need to read src/main.rs", "src/main.rs"),
];

const VARIABLES: [(&str, Option<&str>); 18] = [
    ("Which variables are set?", None),
    ("Which environment variables are set?", None),
    ("What environment variables are available here?", None),
    ("What env vars do I have?", None),
    ("Which environment variables are currently defined in the sandbox?", None),
    ("I need to see the environment variables.", None),
    ("I need to check which environment variables are set.", None),
    ("Please show me the environment variables.", None),
    ("Could you give me a list? Show me all environment variables.", None),
    ("What are the environment variables?", None),
    ("What is the value of PATH?", Some("PATH")),
    ("What's the value of $HOME?", Some("HOME")),
    ("I need to know the value of the CI environment variable.", Some("CI")),
    ("Can you tell me the value of `TZ`?", Some("TZ")),
    ("Please tell me the value of the environment variable LANG.", Some("LANG")),
    ("What is PATH set to?", Some("PATH")),
    ("Is CI set?", Some("CI")),
    ("Is the environment variable `TERM` set in this shell?", Some("TERM")),
];

const NEITHER: [&str; 61] = [
    "",
    "Done.",
    "Done. I fixed src/main.rs.",
    "I read src/main.rs and fixed it.",
    "I have read src/main.rs.",
    "I looked at src/main.rs; the date is parsed right now.",
    "You may need to read README.md.",
    "You can see src/main.rs for the details.",
    "You should look at src/main.rs.",
    "See src/main.rs.",
    "See README.md for how to use it.",
    "Please review src/main.rs.",
    "Please check src/main.rs before you merge.",
    "Please run cargo test.",
    "Can you review src/main.rs?",
    "Could you run the tests in tests/it.rs?",
    "Could you check src/main.rs?",
    "I need to read the code",
    "I need to read more.",
    "To be sure I need to read more.",
    "I need to read src/main.rs and src/lib.rs to be sure",
    "Please show me src/main.rs, src/lib.rs and tests/it.rs.",
    "I need to read ../../etc/passwd",
    "I need to read src/main.rs\nbut it was there already. All done.",
    "I needed to read src/main.rs to find it.",
    "I no longer need to read src/main.rs.",
    "I did not need to read src/main.rs.",
    "There was no need to read src/main.rs.",
    "If you want more, I need to read src/main.rs again on another day.",
    "Whoever changes this needs to read src/main.rs.",
    "Let me know if you want to see src/main.rs.",
    "Let me know what you think of src/main.rs.",
    "Let me explain what src/main.rs does.",
    "I will update src/main.rs later.",
    "I'll leave src/main.rs as it is.",
    "I need to change src/main.rs.",
    "I need to write src/main.rs.",
    "I need to delete src/old.rs.",
    "The program prints what is in src/main.rs.",
    "It now shows what does not look right in src/main.rs.",
    "`fledge show src/main.rs` shows it.",
    "The answer to \"what is in src/main.rs?\" is: a main function.",
    "What a day.",
    "What is left to do: nothing.",
    "I want to thank you.",
    "I will see to it that it works.",
    "I would like to point out that src/main.rs has no tests.",
    "The environment variables are documented in README.md.",
    "Set the PATH variable before you start it.",
    "You need to set HOME.",
    "The variable CI is set by the runner.",
    "PATH is set to /usr/bin.",
    "Which variables are set is up to you.",
    "It prints which environment variables are set.",
    "Is it done? Yes.",
    "Is this right?",
    "Is the test set?",
    "What is the value of this change?",
    "I need to know the value of the parameter `limit`.",
    "What is Rust?",
    "The value of PATH is read once.",
];

#[test]
fn asking_for_one_named_file_at_the_end_is_a_query() {
    for (text, path) in FILES {
        assert_eq!(detect(text, 1), Some(Query::File { path: path.into() }), "{text}");
    }
}

#[test]
fn asking_for_variables_at_the_end_is_a_query() {
    for (text, name) in VARIABLES {
        assert_eq!(detect(text, 1), Some(Query::Env { name: name.map(str::to_owned) }), "{text}");
    }
}

#[test]
fn finished_answers_and_vague_wishes_are_not_queries() {
    for text in NEITHER {
        assert_eq!(detect(text, 1), None, "{text}");
    }
}

#[test]
fn the_first_edition_knows_ten_openings_and_nothing_after_the_path() {
    let file = Some(Query::File { path: "src/main.rs".into() });
    assert_eq!(detect("I need to read src/main.rs", 0), file);
    assert_eq!(detect("Well. Could you show me the contents of `src/main.rs`?", 0), file);
    for text in ["I need to read src/main.rs first.", "I must read src/main.rs", "Which variables are set?"] {
        assert_eq!(detect(text, 0), None, "{text}");
    }
}

#[test]
fn a_long_line_without_an_end_is_looked_at_in_no_time() {
    let long = format!("I need to read {}", "the file ".repeat(100_000));
    assert_eq!(detect(&long, 1), None);
}
