//! The table of files that steer tools and tests, by ecosystem. Files that ordinary work changes
//! every day are not protected as a whole: manifests are judged by section (see
//! [`super::manifest`]), and tests are protected only if the base has them.

use crate::pattern::Patterns;
use crate::workspace::ProtectedRule;
use std::sync::LazyLock;

/// Paths that steer tools or tests.
#[derive(Debug)]
pub(super) struct SteeringPaths {
    /// The ecosystem of the paths.
    pub(super) ecosystem: &'static str,
    /// The reason, as the model sees it.
    pub(super) why: &'static str,
    /// Globs. A leading `/` anchors a glob at the root; other globs match at any depth.
    pub(super) globs: &'static [&'static str],
}

const fn steers(ecosystem: &'static str, why: &'static str, globs: &'static [&'static str]) -> SteeringPaths {
    SteeringPaths { ecosystem, why, globs }
}

/// Reason for protecting test configuration.
pub(super) const TESTS: &str = "it controls how tests run";
const CHECKS: &str = "it controls how checks run";
const TOOLCHAIN: &str = "it chooses the toolchain";
const BUILDS: &str = "it controls the build";
const CI: &str = "it defines the continuous integration";
const GATE: &str = "it configures the gate";
/// Reason for protecting git hooks.
pub(super) const HOOKS: &str = "it defines what git runs at a commit";
/// Reason for protecting a file to which the configuration or a hook of the user's repository
/// leads.
pub(super) const GIT_READS: &str = "the git configuration refers to it, and git obeys it outside of any sandbox";

/// The paths that steer, by ecosystem.
#[rustfmt::skip]
pub(super) const STEERS: &[SteeringPaths] = &[
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
    steers("git", "it controls what git reads and writes", &[".gitattributes", "/.gitmodules"]),
    steers("git", HOOKS, &[
        "/.pre-commit-config.{yaml,yml}", ".husky", "/{.,.config/,}lefthook{-local,}.{yml,yaml,toml,json,jsonc}", "/.lefthook{-local,}", "{.,}lintstagedrc{.*,}",
        "{lint-staged,commitlint}.config.*", "{.,}commitlintrc{.*,}", "/.githooks", "/.git-hooks", "/.overcommit.yml", "/.huskyrc{.*,}",
        "{.,}simple-git-hooks.{js,cjs,mjs,json}", "/.pre-commit-hooks.{yaml,yml}", "prek.toml", "/captainhook{.config,}.json", "/{.,}rusty-hook.toml",
        "/husky.config.*", "/.cargo-husky", "{.,}nano-staged.{js,cjs,mjs,json}", "/grumphp.{yml,yaml}{.dist,}", "/hk.{pkl,toml,yaml,json}", "/git_hooks.dart",
    ]),
    steers("tasks", "it defines work that runs later", &["/tasks/*.md", "/tasks/**/*.md", "/batch.{yaml,yml,json}"]),
    steers("environment", "tools load their variables from it", &[".envrc", ".env", ".env.{test,local,ci}", ".env.test.*", ".flaskenv"]),
    steers("environment", TOOLCHAIN, &["{.,}mise{.*,}.toml", ".tool-versions", "/.sdkmanrc"]),

    steers("Python", TESTS, &[
        "{.,}pytest.{ini,toml}", "tox.{ini,toml}", "noxfile.py", ".coveragerc", "{nose2,unittest}.cfg",
        ".testr.conf", ".stestr.conf", "hatch.toml", "behave.ini", ".behaverc",
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

    steers("Node", "it controls what is installed, and how", &[".npmrc", ".yarnrc", ".yarnrc.yml", "/.yarn/releases", "/.yarn/plugins", ".pnp.{cjs,js}", ".pnp.loader.mjs", ".pnp.data.json", ".pnpmfile.{cjs,mjs}", "bunfig.toml"]),
    steers("Node", TESTS, &[
        "jest.config.*", "jest.setup.*", "jest.preset.*", "{vitest,vite}.config.*", "vitest.{setup,workspace}.*", "{.,}mocharc{.*,}",
        "karma.conf.*", "playwright.config.*", "cypress.config.*", "cypress.json", "{.,}ava.config.*", "{.,}nycrc{.*,}", "{.,}c8rc{.*,}",
        ".taprc", "wdio.conf.*", "jasmine.json", "{web-test-runner,nightwatch,codecept}.con{fig,f}.*", "testem.{js,json}",
    ]),
    steers("Node", "test runners use it instead of what the tests ask for", &["__mocks__"]),
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
    steers("Cucumber", TESTS, &["cucumber.{js,cjs,mjs,json,yml,yaml}"]),
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

/// Python modules that would be found before those of the test tools.
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
/// Reason for protecting these names.
pub(super) const SHADOWED: &str = "it would be used instead of a test tool";

/// Reason for rejecting a new file that commands of the gate would read.
pub(super) const READS: &str =
    "commands of the gate would read this file: rename the file, or allow the path with `--allow-edit`";
/// The end of messages about a new file that the gate would use.
pub(super) const REMEDY: &str = "rename the file, or allow the path with `--allow-edit`";

/// Reason for rejecting a new header.
pub(super) const HEADER: &str = "the compiler would use this file instead of a system header: rename the file, or allow the path with `--allow-edit`";

/// Patterns for the names of tests. Tests of the base must not change.
#[rustfmt::skip]
pub(super) const TEST_FILES: &[(&str, &[&str])] = &[
    ("folders", &["**/tests/**", "**/test/**", "**/Tests/**", "**/__tests__/**", "**/src/*Test/**", "**/testdata/**", "**/testing/fixtures/**", "**/e2e/**"]),
    ("Python", &["**/test_*.py", "**/*_test.py", "**/tests.py", "**/test.py"]),
    ("Rust", &["**/tests.rs", "**/*_tests.rs", "**/*_test.rs", "**/test.rs"]),
    ("Go", &["**/*_test.go"]),
    ("Node", &[
        "**/*.{test,spec,cy,e2e}.{js,jsx,ts,tsx,mjs,cjs,mts,cts}", "**/{test,tests}.{js,ts,mjs,cjs,mts,cts}", "**/*{-,_}test.{js,jsx,ts,tsx,mjs,cjs,mts,cts}",
        "**/*_spec.{js,jsx,ts,tsx,mjs,cjs,mts,cts}", "**/test-*.{js,ts,mjs,cjs,mts,cts}", "**/cypress/**",
    ]),
    ("Jasmine", &["/spec/**/*.{js,ts,mjs,cjs,mts,cts}", "/spec/{helpers,support}/**", "**/spec/**/*[sS]pec.{js,ts,mjs,cjs}"]),
    ("Cucumber", &["**/*.feature", "/features/{step_definitions,steps,support}/**", "**/features/environment.py", "**/step_definitions/**"]),
    ("Ruby", &["**/spec/**/*.rb", "**/spec/fixtures/**", "**/*_spec.rb", "**/*_test.rb"]),
    ("Crystal", &["**/*_spec.cr"]),
    ("JVM", &["**/*{Test,Tests,Spec,IT}.{java,kt,scala,groovy}"]),
    ("Swift", &["**/*{Test,Tests}.swift"]),
    (".NET", &["**/*{Test,Tests}.cs", "**/*.{Test,Tests,UnitTests,IntegrationTests,Specs}/**/*.{cs,fs,vb}"]),
    ("Lua", &["**/*_spec.lua", "**/spec/**/*.lua"]),
    ("Robot Framework", &["**/*.robot"]),
    ("PHP", &["**/*Test.php"]),
    ("C, C++", &[
        "**/{3rdparty,contrib,deps,extern,external,lib,libs,third_party,thirdparty,vendor,vendored}/**/{acutest,catch,catch_amalgamated,doctest,greatest,minunit,munit,unity,unity_internals,utest}.{c,cpp,h,hpp}",
    ]),
    ("others", &["**/*_test.{c,cc,cpp,dart,exs,ml,sh,zig}", "**/*.bats", "**/spec/**/*_spec.sh", "**/{t,xt}/**/*.{t,pl,pm,sh,bash}", "**/test_*.{c,cc,cpp,sh}", "**/test.sh"]),
    ("snapshots", &["**/__snapshots__/**", "**/*.snap", "**/*.approved.*", "**/cassettes/**", "**/expected/**", "**/golden/**", "**/goldens/**"]),
];
/// Reason for protecting tests.
pub(super) const TEST: &str = "it is a test of the base (new tests may be added)";

/// Files that may also be the product and cannot be judged by section. Their change is a note, not
/// a finding.
pub(super) const REPORTED: &[(&str, &str)] = &[
    ("build.rs", "it runs during the build"),
    ("setup.py", "it runs during the build"),
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
    (".{gdb,lldb}init", "debuggers run its commands"),
    (".devcontainer/**", STEERS_EDITORS),
    (".devcontainer.json", STEERS_EDITORS),
    (".gitpod.{yml,Dockerfile}", STEERS_EDITORS),
    (".{replit,tmuxinator.yml,tmux.conf}", "developer tools run its commands"),
];
const STEERS_AGENTS: &str = "coding agents follow it";
const STEERS_EDITORS: &str = "editors read it, and some run its commands";

/// Returns the reason for noting a change of a path, if there is one.
pub(super) fn reported(path: &str) -> Option<&'static str> {
    static PATTERNS: LazyLock<Vec<(Patterns, &str)>> =
        LazyLock::new(|| REPORTED.iter().filter_map(|(glob, why)| Some((Patterns::files(glob).ok()?, *why))).collect());
    PATTERNS.iter().find(|(glob, _)| glob.fit(path)).map(|(_, why)| *why)
}

/// Returns the rules of the table, in its order. Each alternative of a glob becomes a separate
/// rule, since plain names cost far less than globs.
pub(super) fn rules() -> impl Iterator<Item = ProtectedRule> {
    let rule = |why: &str, glob: &str| ProtectedRule { pattern: glob.into(), why: why.into() };
    STEERS.iter().flat_map(move |steers| {
        steers.globs.iter().flat_map(|glob| expanded(glob)).map(move |glob| rule(steers.why, &glob))
    })
}

/// Returns whether a reason is that of a rule that protects the definition of the gate.
pub(super) fn of_the_gate(why: &str) -> bool {
    STEERS.iter().any(|steers| ["fledge", "tasks"].contains(&steers.ecosystem) && steers.why == why)
}

/// Returns whether a reason is that of a rule that protects tasks.
pub(super) fn is_of_tasks(why: &str) -> bool {
    STEERS.iter().any(|steers| steers.ecosystem == "tasks" && steers.why == why)
}

/// Expands the alternatives of a glob.
pub(super) fn expanded(glob: &str) -> Vec<String> {
    let parts = glob.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (inside, after))) = parts else { return vec![glob.to_owned()] };
    inside.split(',').flat_map(|part| expanded(&format!("{before}{part}{after}"))).collect()
}
