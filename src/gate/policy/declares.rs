//! Names that no source may declare: packages that the tests use but the project does not have, and
//! Go functions that decide which tests of a package run. A class of the product takes precedence
//! over a library class of the same name.

use super::later_runs::BaseTasks;
use super::named::{LONGEST, text};
use super::tests_named::BaseTests;
use super::{BaseFiles, php};
use crate::gate::names::name_of;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Extensions of languages whose packages are found along the class path.
const ENDINGS: &[&str] = &["java", "kt", "scala", "groovy"];
/// Packages of test runners and assertion libraries.
#[rustfmt::skip]
const RUNNERS: &[&str] = &[
    "com.google.common.truth", "io.kotest", "junit.extensions", "junit.framework", "junit.runner", "junit.textui", "kotlin.test", "org.apache.maven.surefire",
    "org.assertj", "org.hamcrest", "org.junit", "org.mockito", "org.opentest4j", "org.scalatest", "org.spockframework", "org.testng", "spock.lang",
];
/// Namespaces of PHP's test runners. If a source of the product declares one of their classes, PHP
/// does not load the original.
const PHP: &[&str] = &["Behat", "Codeception", "Mockery", "PHPUnit", "Pest", "PhpSpec", "Prophecy"];
/// Extensions of PHP sources, in lower case.
const OF_PHP: &[&str] = &["php", "inc", "phtml", "php3", "php4", "php5", "php7", "php8"];
/// The maximum number of sources that are read. In a larger base, only the packages of test runners
/// are guarded.
const MOST: usize = 2000;
/// Reason for rejecting `TestMain` in a new Go file.
const TEST_MAIN: &str = "its `TestMain` decides whether the tests of this package run";

/// Names that the base does not declare and no source may declare.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BaseDeclarations {
    /// Names of packages. Each name includes the packages below it.
    packages: BTreeSet<String>,
    /// Folders of the base with Go tests.
    go: BTreeSet<String>,
    /// Namespaces that PHP sources of the base declare, by their first name in lower case.
    php: BTreeSet<String>,
    /// The tasks of the base.
    pub(super) tasks: BaseTasks,
}

impl BaseDeclarations {
    /// Collects the guarded names for a base. `read` returns the content of a file of the base.
    pub(super) fn from_base(
        base: &BaseFiles,
        tests: &BaseTests,
        read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
    ) -> Self {
        let go =
            base.0.iter().filter(|path| path.ends_with("_test.go")).map(|path| folder_of(path).to_owned()).collect();
        let of_php = base.0.iter().filter(|path| is_php(path) && !path.starts_with("vendor/")).take(MOST);
        let of_php = of_php.filter_map(|path| text(path, read)).collect::<Vec<_>>();
        let php = of_php.iter().flat_map(|text| namespaces(text)).collect();
        let tasks = BaseTasks::find(base.0.iter(), read);
        let sources: Vec<&String> = base.0.iter().filter(|path| is_source(path)).collect();
        if sources.is_empty() {
            return Self { packages: BTreeSet::new(), go, php, tasks };
        }
        // Dots around each name let `contains` match whole parts only.
        let mut own: BTreeSet<String> = sources.iter().map(|path| dotted(folder_of(path))).collect();
        let mut used = BTreeSet::new();
        for path in sources.iter().filter(|_| sources.len() <= MOST) {
            let Some(bytes) = read(path).filter(|bytes| bytes.len() <= LONGEST) else { continue };
            let text = String::from_utf8_lossy(&bytes);
            own.extend(package(&text).map(|package| format!(".{package}.")));
            if tests.fit(path) {
                used.extend(imports(&text).map(str::to_owned));
            }
        }
        let is_own = |package: &str| own.iter().any(|own| own.contains(&format!(".{package}.")));
        // A library is known by the first two parts of its package. A package that begins like one
        // of the project's own may be part of the work.
        let library = |package: &String| {
            let end = package.match_indices('.').nth(1).map_or(package.len(), |(end, _)| end);
            package[..end].to_owned()
        };
        let used = used.iter().map(library).filter(|library| !is_own(library));
        let mut packages: BTreeSet<String> = used.collect();
        packages.extend(RUNNERS.iter().filter(|package| !is_own(package)).map(|package| (*package).to_owned()));
        Self { packages, go, php, tasks }
    }

    /// Returns whether [`BaseDeclarations::forbids`] needs the content of a path.
    pub(super) fn reads(path: &str) -> bool {
        is_source(path) || path.ends_with("_test.go") || is_php(path)
    }

    /// Returns the reason why a new or changed source is rejected, if there is one. `text` is the
    /// content of the source.
    pub(super) fn forbids(&self, path: &str, is_new: bool, text: Option<&[u8]>) -> Option<String> {
        let text = String::from_utf8_lossy(text.unwrap_or_default());
        if path.ends_with("_test.go") {
            let decides = is_new && self.go.contains(folder_of(path)) && text.contains("func TestMain(");
            return decides.then(|| TEST_MAIN.into());
        }
        if is_php(path) {
            let declared: BTreeSet<String> = namespaces(&text).filter(|name| !self.php.contains(name)).collect();
            let declared = PHP.iter().find(|name| declared.contains(&name.to_ascii_lowercase()))?;
            return Some(format!("it would be used instead of `{declared}`, which tests use"));
        }
        if !is_source(path) && !name_of(path).ends_with(".class") {
            return None;
        }
        let folder = dotted(folder_of(path));
        let declared = package(&text).map(|package| format!(".{package}."));
        let within = |package: &str| format!(".{package}.");
        let is_declared =
            |package: &&String| declared.as_ref().is_some_and(|declared| declared.starts_with(&within(package)));
        let is_in_folder = |package: &&String| folder.contains(&within(package));
        let package = self.packages.iter().find(is_declared).or_else(|| self.packages.iter().find(is_in_folder))?;
        Some(format!("it would be used instead of `{package}`, which tests use"))
    }
}

fn is_source(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending))
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn dotted(folder: &str) -> String {
    format!(".{}.", folder.replace('/', "."))
}

fn is_php(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, ending)| OF_PHP.contains(&ending.to_ascii_lowercase().as_str()))
}

/// Returns the first names of the namespaces that a PHP source declares. They are in lower case,
/// since PHP ignores case in keywords and names.
fn namespaces(text: &str) -> impl Iterator<Item = String> {
    let text = php::code(&text.to_ascii_lowercase());
    let declared: Vec<String> = text.split("namespace").skip(1).map(|rest| first_name(rest).to_owned()).collect();
    declared.into_iter().filter(|name| !name.is_empty())
}

/// Returns the first name in a PHP text, after whitespace and comments.
fn first_name(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let end = match () {
            () if rest.starts_with("/*") => rest.find("*/").map(|end| end + 2),
            () if rest.starts_with("//") || rest.starts_with('#') => rest.find('\n'),
            () => break,
        };
        rest = end.map_or("", |end| rest[end..].trim_start());
    }
    let rest = rest.trim_start_matches('\\');
    &rest[..rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())]
}

/// Returns the package that a source declares.
fn package(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.trim_start().strip_prefix("package ")).map(name)
}

/// Returns the packages that a source imports. Leaves out `java.*`, since no program can declare a
/// package there.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("import "));
    let named = lines.map(|rest| name(rest.strip_prefix("static ").unwrap_or(rest)));
    let packages = named.map(|name| {
        let is_class = |part: &str| part.starts_with(|c: char| c.is_uppercase() || !c.is_alphanumeric());
        let parts = name.split('.').take_while(|part| !part.is_empty() && !is_class(part));
        let length: usize = parts.map(|part| part.len() + 1).sum();
        &name[..length.saturating_sub(1)]
    });
    packages.filter(|package| package.contains('.') && !package.starts_with("java."))
}

/// Returns the dotted name at the start of a text.
fn name(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_alphanumeric() || "._".contains(c))).unwrap_or(text.len());
    &text[..end]
}
