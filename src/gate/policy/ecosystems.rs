//! What steers tools and tests, ecosystem by ecosystem: the one table of it. What ordinary work changes every day is not in it
//! whole: manifests are judged by section (see [`super::manifest`]), tests by whether the base had them.

use crate::workspace::ProtectedRule;
use crate::workspace::pattern::Patterns;
use std::sync::LazyLock;

/// Paths that steer.
#[derive(Debug)]
pub(super) struct Steers {
    /// Whose they are.
    pub(super) ecosystem: &'static str,
    /// As the model is told.
    pub(super) why: &'static str,
    /// Globs; from the root with a `/` first, else at any depth.
    pub(super) globs: &'static [&'static str],
}

const fn steers(ecosystem: &'static str, why: &'static str, globs: &'static [&'static str]) -> Steers {
    Steers { ecosystem, why, globs }
}

/// Why what configures the tests is protected.
pub(super) const TESTS: &str = "it steers the tests";
const CHECKS: &str = "it steers the checks";
const TOOLCHAIN: &str = "it chooses the toolchain";
const BUILDS: &str = "it steers how everything is built";
const CI: &str = "it defines the continuous integration";
const GATE: &str = "it configures the gate";
/// Why hooks of git are protected.
pub(super) const HOOKS: &str = "it defines what git runs at a commit";
/// Why a file is protected that the configuration or a hook of the user's repository leads to.
pub(super) const GIT_READS: &str =
    "the configuration of git leads to it, and git runs what it says outside of any sandbox";

/// The table.
#[rustfmt::skip]
pub(super) const STEERS: &[Steers] = &[
    steers("fledge", "it defines the gate", &["/lanes", "/fledge.toml"]),
    steers("fledge", "it says what the code must do", &["/specs"]),
    steers("fledge", GATE, &["/fledge.yaml", "/fledge.local.yaml", "/.fledge"]),
    steers("CI", "it says who must review changes", &["/{,.github/,.gitlab/,docs/}CODEOWNERS"]),
    steers("CI", "it configures automatic updates of dependencies", &["/.github/dependabot.{yml,yaml}", "/.github/renovate.json{5,}"]),
    steers("CI", CI, &[
        "/.github", "/.gitlab-ci.yml", "/.gitlab", "/.circleci", "/.ci", "/Jenkinsfile", "/azure-pipelines.{yml,yaml}", "/.azure-pipelines",
        "/.travis.yml", "/bitbucket-pipelines.yml", "/.drone.{yml,yaml}", "/.woodpecker", "/.woodpecker.{yml,yaml}", "/{.,}appveyor.{yml,yaml}",
        "/.buildkite", "/.cirrus.{yml,star}", "/.semaphore", "/.teamcity", "/buildspec.{yml,yaml}", "/cloudbuild.{yml,yaml,json}",
        "/.forgejo", "/.gitea", "/{.,}codecov.{yml,yaml}", "/.sourcehut", "/.build.yml", "/.tekton", "/.builds",
    ]),
    steers("git", "it steers what git reads and writes", &[".gitattributes", "/.gitmodules"]),
    steers("git", HOOKS, &[
        "/.pre-commit-config.{yaml,yml}", ".husky", "/{.,.config/,}lefthook{-local,}.{yml,yaml,toml,json,jsonc}", "/.lefthook{-local,}", "{.,}lintstagedrc{.*,}",
        "{lint-staged,commitlint}.config.*", "{.,}commitlintrc{.*,}", "/.githooks", "/.git-hooks", "/.overcommit.yml", "/.huskyrc{.*,}",
        "{.,}simple-git-hooks.{js,cjs,mjs,json}",
    ]),
    steers("tasks", "it defines work that runs later", &["/tasks/*.md", "/tasks/**/*.md", "/batch.{yaml,yml,json}"]),
    steers("environment", "tools load their variables from it", &[".envrc", ".env", ".env.{test,local,ci}", ".env.test.*", ".flaskenv"]),
    steers("environment", TOOLCHAIN, &["{.,}mise{.*,}.toml", ".tool-versions", "/.sdkmanrc"]),

    steers("Python", TESTS, &[
        "{.,}pytest.{ini,toml}", "tox.{ini,toml}", "noxfile.py", ".coveragerc", "{nose2,unittest}.cfg",
        ".testr.conf", ".stestr.conf", "hatch.toml",
    ]),
    steers("Python", "Python loads it before anything else", &["sitecustomize.py", "usercustomize.py", "**/{site,dist}-packages/*.pth"]),
    steers("Python", "shells and Python read it", &["pyvenv.cfg", "**/bin/activate{,.csh,.fish,_this.py}"]),
    steers("Python", CHECKS, &[
        "{.,}mypy.ini", "{.,}ruff.toml", ".flake8", "{.,}pylintrc{.toml,}", "pyrightconfig.json", ".isort.cfg", ".bandit", ".style.yapf",
    ]),
    steers("Python", TOOLCHAIN, &[".python-version{s,}", "runtime.txt"]),

    steers("Python", "it says where packages come from", &["pip.{conf,ini}", "uv.toml", "poetry.toml"]),

    steers("Rust", BUILDS, &[".cargo/config", ".cargo/config.toml", "**/.cargo/config{.toml,}"]),
    steers("Rust", TOOLCHAIN, &["rust-toolchain{.toml,}"]),
    steers("Rust", TESTS, &["**/.config/nextest.toml", "**/.config/insta.{yaml,yml}", "**/{.,}insta.yaml", "{.,}tarpaulin.toml"]),
    steers("Rust", CHECKS, &["{.,}clippy.toml", "{.,}rustfmt.toml", "{.,}deny.toml", "**/.cargo/{audit,mutants}.toml"]),

    steers("Node", "it steers what is installed, and how", &[".npmrc", ".yarnrc", ".yarnrc.yml", "/.yarn/releases", "/.yarn/plugins", ".pnpmfile.{cjs,mjs}", "bunfig.toml"]),
    steers("Node", TESTS, &[
        "jest.config.*", "jest.setup.*", "jest.preset.*", "{vitest,vite}.config.*", "vitest.{setup,workspace}.*", "{.,}mocharc{.*,}",
        "karma.conf.*", "playwright.config.*", "cypress.config.*", "cypress.json", "{.,}ava.config.*", "{.,}nycrc{.*,}", "{.,}c8rc{.*,}",
        ".taprc", "wdio.conf.*", "jasmine.json", "{web-test-runner,nightwatch,codecept}.con{fig,f}.*", "testem.{js,json}",
    ]),
    steers("Node", "runners put it in the place of what the tests ask for", &["__mocks__"]),
    steers("Node", BUILDS, &["babel.config.*", ".babelrc{.*,}", ".swcrc", "{ts,js}config.json", "{ts,js}config.*.json"]),
    steers("Node", CHECKS, &[
        "eslint.config.*", ".eslintrc{.*,}", ".eslintignore", "{.,}prettierrc{.*,}", "prettier.config.*", ".prettierignore", "biome.{json,jsonc}",
        ".stylelintrc{.*,}", "stylelint.config.*", "{.,}oxlintrc.json", "tslint.json",
    ]),
    steers("Node", TOOLCHAIN, &[".nvmrc", ".node-version"]),
    steers("Deno", BUILDS, &["deno.{json,jsonc}"]),

    steers("Go", CHECKS, &["{.,}golangci.*", "staticcheck.conf"]),
    steers("Go", BUILDS, &["go.work"]),

    steers("Make", "it defines commands of the gate", &[
        "Makefile", "GNUmakefile", "makefile", "Makefile.am", "*.mk", "{.,}[jJ]ustfile", "*.just", "Taskfile.{yml,yaml}", "Makefile.toml", "Earthfile",
    ]),
    steers("CMake", TESTS, &["CTestConfig.cmake", "CTestCustom.cmake", "CMake{User,}Presets.json"]),
    steers("Bazel", BUILDS, &[".bazelrc", ".bazelversion", "tools/bazel", "WORKSPACE{.bazel,}"]),
    steers("Gradle", BUILDS, &["settings.gradle{.kts,}", "gradlew{.bat,}", "**/gradle/wrapper", "init.gradle{.kts,}"]),
    steers("Maven", BUILDS, &["**/.mvn", "mvnw{.cmd,}"]),
    steers("Meson", BUILDS, &["meson_options.txt", "meson.options"]),

    steers("Ruby", TESTS, &[".rspec{-local,}", ".simplecov"]),
    steers("Ruby", "it defines commands of the gate", &["Rakefile", "*.rake"]),
    steers("Ruby", "it says where packages come from", &["**/.bundle/config"]),
    steers("Ruby", CHECKS, &[".rubocop{*,}.yml", ".standard.yml"]),
    steers("Ruby", TOOLCHAIN, &[".ruby-version"]),
    steers("PHP", TESTS, &["phpunit{.*,}.xml", "phpunit.xml.dist", "behat.yml{.dist,}", "codeception.yml", "infection.json{5,}"]),
    steers("PHP", CHECKS, &["phpstan{.*,}.neon{.dist,}", "psalm.xml{.dist,}", "{.,}phpcs.xml{.dist,}", ".php-cs-fixer{.dist,}.php"]),
    steers("Swift", TESTS, &["*.xctestplan"]),
    steers("Swift", CHECKS, &[".swiftlint.yml", ".swiftformat", ".swift-format"]),
    steers("Swift", TOOLCHAIN, &[".swift-version"]),
    steers(".NET", TESTS, &["*.runsettings", "xunit.runner.json"]),
    steers(".NET", BUILDS, &["Directory.{Build,Packages}.{props,targets}", "global.json", "[nN]u[gG]et.[cC]onfig"]),
    steers("Elixir", CHECKS, &[".formatter.exs", ".credo.exs", ".dialyzer_ignore.exs"]),
    steers("Dart", TESTS, &["dart_test.yaml"]),
    steers("Dart", CHECKS, &["analysis_options.yaml"]),
    steers("C", CHECKS, &[".clang-{tidy,format}"]),
    steers("shell", CHECKS, &[".shellcheckrc"]),
    steers("Scala", CHECKS, &[".scalafmt.conf", ".scalafix.conf"]),
];

/// Modules that Python finds before those of the test tools, where they stand beside what is run.
pub(super) const SHADOWS: &[&str] = &[
    "pytest",
    "_pytest",
    "pluggy",
    "unittest",
    "doctest",
    "coverage",
    "hypothesis",
    "mock",
    "nose",
    "tox",
    "nox",
    "importlib",
    "inspect",
    "traceback",
    "warnings",
    "site",
    "sitecustomize",
    "usercustomize",
    "iniconfig",
    "packaging",
    "exceptiongroup",
    "tomli",
    "attr",
    "py",
    "xdist",
    "pytest_cov",
    "pytest_asyncio",
    "pytest_mock",
];
/// Why they are protected.
pub(super) const SHADOWED: &str = "it would stand in for a tool of the tests";

/// Why nothing may be new that commands of the gate read where it is there.
pub(super) const READS: &str =
    "commands of the gate would read it: give it another name, or open it with `--allow-edit`";
/// What mends a name that stands in for something.
pub(super) const CURE: &str = "give it another name, or open it with `--allow-edit`";

/// Why no header may be new.
pub(super) const HEADER: &str = "it would stand in for a header of the system";

/// By which names files are tests. Those that the base has stay as they are.
#[rustfmt::skip]
pub(super) const TEST_FILES: &[(&str, &[&str])] = &[
    ("folders", &["**/tests/**", "**/test/**", "**/Tests/**", "**/__tests__/**", "**/src/*Test/**", "**/testdata/**", "**/testing/fixtures/**", "**/e2e/**"]),
    ("Python", &["**/test_*.py", "**/*_test.py", "**/tests.py", "**/test.py"]),
    ("Rust", &["**/tests.rs", "**/*_tests.rs", "**/*_test.rs", "**/test.rs"]),
    ("Go", &["**/*_test.go"]),
    ("Node", &[
        "**/*.{test,spec,cy,e2e}.{js,jsx,ts,tsx,mjs,cjs,mts,cts}", "**/{test,tests}.{js,ts,mjs,cjs}", "**/*{-,_}test.{js,ts,mjs,cjs,mts,cts}",
        "**/test-*.{js,ts,mjs,cjs,mts,cts}", "**/cypress/**",
    ]),
    ("Jasmine", &["/spec/**/*.{js,ts,mjs,cjs,mts,cts}", "/spec/{helpers,support}/**", "**/spec/**/*[sS]pec.{js,ts,mjs,cjs}"]),
    ("Cucumber", &["**/*.feature", "/features/{step_definitions,steps,support}/**", "**/features/environment.py", "**/step_definitions/**"]),
    ("Ruby", &["**/spec/**/*.rb", "**/spec/fixtures/**", "**/*_spec.rb", "**/*_test.rb"]),
    ("JVM", &["**/*{Test,Tests,Spec,IT}.{java,kt,scala,groovy}"]),
    ("Swift", &["**/*{Test,Tests}.swift"]),
    (".NET", &["**/*{Test,Tests}.cs"]),
    ("PHP", &["**/*Test.php"]),
    ("others", &["**/*_test.{c,cc,cpp,dart,exs,ml,sh,zig}", "**/*.bats", "**/{t,xt}/**/*.{t,pl,pm}", "**/test_*.{c,cc,cpp,sh}", "**/test.sh"]),
    ("snapshots", &["**/__snapshots__/**", "**/*.snap", "**/*.approved.*", "**/cassettes/**", "**/expected/**", "**/golden/**", "**/goldens/**"]),
];
/// Why they are protected.
pub(super) const TEST: &str = "it is a test of the base (new tests may be added)";

/// What cannot be told apart by section and is product as well: its change is said, and is no finding.
pub(super) const REPORTED: &[(&str, &str)] = &[
    ("build.rs", "it runs while everything is built"),
    ("setup.py", "it runs while everything is built"),
    ("pom.xml", "fledge cannot tell whether the change is about tests"),
    ("build.gradle{.kts,}", "fledge cannot tell whether the change is about tests"),
    ("CMakeLists.txt", "fledge cannot tell whether the change is about tests"),
    ("Gemfile", "fledge cannot tell whether the change is about test tools"),
    ("composer.json", "fledge cannot tell whether the change is about scripts"),
    ("Package.swift", "fledge cannot tell whether the change is about tests"),
    ("mix.exs", "fledge cannot tell whether the change is about tests"),
    ("*.{cs,fs,vb}proj", "fledge cannot tell whether the change is about tests"),
    ("{AGENTS,AGENT,CLAUDE,GEMINI,QWEN,CRUSH,IFLOW,CONVENTIONS,WARP,SKILL}{.local,.override,}.md", STEERS_AGENTS),
    (
        "**/.{claude,cursor,codex,gemini,qwen,iflow,aider*,windsurf,clinerules,cline,roo,kilocode,continue,junie,kiro,amazonq,opencode,agents,amp,augment,trae,crush,goose,factory,openhands}/**",
        STEERS_AGENTS,
    ),
    (
        ".{cursorrules,cursorignore,windsurfrules,clinerules,goosehints,roomodes,kilocodemodes,augment-guidelines,rules,mcp.json,aider.conf.yml,aider.model.settings.yml}",
        STEERS_AGENTS,
    ),
    ("{opencode.json,opencode.jsonc,crush.json,.crush.json,mcp.json}", STEERS_AGENTS),
    ("*.{instructions,prompt,chatmode}.md", STEERS_AGENTS),
    ("**/.{vscode,idea,fleet,zed,vim}/**", STEERS_EDITORS),
    ("**/.run/*.run.xml", STEERS_EDITORS),
    ("*.{code-workspace,sublime-project}", STEERS_EDITORS),
    (".{vimrc,lvimrc,exrc,nvim.lua,nvimrc,dir-locals.el,editorconfig}", STEERS_EDITORS),
    (".{gdb,lldb}init", "debuggers run what it says"),
    (".devcontainer/**", STEERS_EDITORS),
    (".devcontainer.json", STEERS_EDITORS),
    (".gitpod.{yml,Dockerfile}", STEERS_EDITORS),
    (".{replit,tmuxinator.yml,tmux.conf}", "tools of people run what it says"),
];
const STEERS_AGENTS: &str = "coding agents follow it";
const STEERS_EDITORS: &str = "editors read it, and some run what it says";

/// Why a change of this path is noted, if it is.
pub(super) fn reported(path: &str) -> Option<&'static str> {
    static PATTERNS: LazyLock<Vec<(Patterns, &str)>> =
        LazyLock::new(|| REPORTED.iter().filter_map(|(glob, why)| Some((Patterns::files(glob).ok()?, *why))).collect());
    PATTERNS.iter().find(|(glob, _)| glob.fit(path)).map(|(_, why)| *why)
}

/// The rules of the table, in its order. Each alternative is one: plain names cost far less than globs.
pub(super) fn rules() -> impl Iterator<Item = ProtectedRule> {
    let rule = |why: &str, glob: &str| ProtectedRule { pattern: glob.into(), why: why.into() };
    STEERS.iter().flat_map(move |steers| {
        steers.globs.iter().flat_map(|glob| expanded(glob)).map(move |glob| rule(steers.why, &glob))
    })
}

/// Whether this is why what defines the gate is protected.
pub(super) fn of_the_gate(why: &str) -> bool {
    STEERS.iter().any(|steers| ["fledge", "tasks"].contains(&steers.ecosystem) && steers.why == why)
}

/// Returns whether this is why tasks are protected.
pub(super) fn is_of_tasks(why: &str) -> bool {
    STEERS.iter().any(|steers| steers.ecosystem == "tasks" && steers.why == why)
}

/// A glob with each of its alternatives.
pub(super) fn expanded(glob: &str) -> Vec<String> {
    let parts = glob.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (inside, after))) = parts else { return vec![glob.to_owned()] };
    inside.split(',').flat_map(|part| expanded(&format!("{before}{part}{after}"))).collect()
}
