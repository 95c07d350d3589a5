//! The requirements of tests beyond Rust and git.
//!
//! If a requirement is missing, a test prints one line with its name and how to install it, and
//! passes. In CI, `FLEDGE_TEST_REQUIRE_SANDBOX=1` and similar variables make the lack of that
//! requirement a failure. `FLEDGE_TEST_REQUIRE_ALL=1` covers all of them.

use super::note;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;

/// Starts a program where bubblewrap is not found, so that fledge uses Landlock alone.
pub(crate) const BEHIND_LANDLOCK: &[&str] = &[
    "unshare",
    "-rm",
    "sh",
    "-c",
    "for b in /usr/bin/bwrap /usr/local/bin/bwrap; do test ! -e $b || mount --bind /dev/null $b || exit 99; done; exec \"$@\"",
    "sh",
];

/// Starts a program whose state is on an overlay, where no other overlay can write. So rooms behind
/// bubblewrap have no layers. Afterwards the state is where other tests expect it.
pub(crate) const WITHOUT_LAYERS: &[&str] = &[
    "unshare",
    "-rm",
    "sh",
    "-c",
    "s=$FLEDGE_STATE_DIR; mkdir -p $s $s.low $s.up $s.work || exit 99
     mount -t overlay -o userxattr,lowerdir=$s.low,upperdir=$s.up,workdir=$s.work overlay $s || exit 99
     \"$@\"; code=$?; umount $s && cp -a $s.up/. $s/ || exit 99; exit $code",
    "sh",
];

/// A requirement that a machine can lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    Browser,
    CCompiler,
    Cmake,
    Go,
    GoogleTest,
    Junit,
    Landlock,
    Make,
    McpServers,
    Node,
    Perl,
    Python,
    Root,
    Sandbox,
    Strace,
}

impl Need {
    /// Returns the end of its variable `FLEDGE_TEST_REQUIRE_…`, and how to install it.
    fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::Browser => ("BROWSER", "apt-get install chromium chromium-driver"),
            Self::CCompiler => ("CC", "apt-get install gcc"),
            Self::Cmake => ("CMAKE", "apt-get install cmake"),
            Self::Go => ("GO", "apt-get install golang-go"),
            Self::GoogleTest => ("GTEST", "apt-get install g++ libgtest-dev"),
            Self::Junit => ("JUNIT", "apt-get install default-jdk-headless junit4"),
            Self::Landlock => ("LANDLOCK", "Linux 6.12 or newer, with landlock among its security modules"),
            Self::Make => ("MAKE", "apt-get install make"),
            Self::McpServers => ("MCP", "sh tests/mcp/install.sh FOLDER, and FLEDGE_TEST_MCP=FOLDER"),
            Self::Node => ("NODE", "apt-get install nodejs npm"),
            Self::Perl => ("PERL", "apt-get install perl"),
            Self::Python => ("PYTHON", "apt-get install python3 python3-pytest python3-venv"),
            Self::Root => ("ROOT", "run the tests as root, on a machine with an ordinary user beside"),
            Self::Sandbox => ("SANDBOX", "apt-get install bubblewrap, and let users make namespaces"),
            Self::Strace => ("STRACE", "apt-get install strace, and let processes be traced"),
        }
    }

    /// Returns the requirement for a program's name.
    pub(crate) fn of_program(name: &str) -> Self {
        match name {
            "bwrap" => Self::Sandbox,
            "chromedriver" => Self::Browser,
            "cc" | "gcc" => Self::CCompiler,
            "cmake" | "ctest" => Self::Cmake,
            "go" => Self::Go,
            "g++" | "gtest" => Self::GoogleTest,
            "java" | "javac" | "junit4" => Self::Junit,
            "make" => Self::Make,
            "node" | "npm" => Self::Node,
            "perl" | "prove" => Self::Perl,
            "python3" | "pytest" => Self::Python,
            "strace" => Self::Strace,
            _ => panic!("no test needs `{name}`"),
        }
    }

    /// Prints that the machine lacks this, once for each requirement and detail.
    ///
    /// # Panics
    ///
    /// Panics if the variable of this requirement, or `FLEDGE_TEST_REQUIRE_ALL`, is 1.
    #[track_caller]
    pub(crate) fn lacks(self, detail: &str) {
        static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
        let (name, remedy) = self.row();
        let is_required = [name, "ALL"]
            .iter()
            .any(|name| std::env::var(format!("FLEDGE_TEST_REQUIRE_{name}")).is_ok_and(|v| v == "1"));
        assert!(!is_required, "FLEDGE_TEST_REQUIRE_{name}: {detail}; to install it: {remedy}");
        let line = format!("skipped: {detail}; to install it: {remedy}");
        if SAID.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(line.clone()) {
            note(&line);
        }
    }

    /// Returns whether this program is in the search path. Prints a note if it is not.
    #[track_caller]
    pub(crate) fn has_program(name: &str) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let has = std::env::split_paths(&path).any(|folder| is_program(&folder.join(name)));
        if !has {
            Self::of_program(name).lacks(&format!("no `{name}`"));
        }
        has
    }
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
