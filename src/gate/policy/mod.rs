//! The frozen policy of a run: what the agent may not change. It covers the gate, files that steer
//! tools, sections of manifests, and tests of the base. Pure.
//!
//! Tests inside product files (`#[cfg(test)] mod tests`, doctests) share the path of the product.
//! They have no rule here. The gate judges the work by the base's own versions of them too.

mod assertions;
mod calls;
mod checks;
mod ci;
mod cmake;
mod declares;
mod ecosystems;
mod findings;
mod hook_managers;
mod imports;
mod later_runs;
mod load_paths;
mod loaded;
mod loaded_by_tests;
mod made;
mod make_parts;
mod makefiles;
mod manifest;
mod named;
mod nearer;
mod notes;
mod php;
mod reached;
mod shadows;
mod stand_ins;
mod table;
mod test_folders;
mod tests_named;
mod tests_selected;
mod tox_parts;
mod unused;
mod unused_parts;
mod vendored;

use crate::gate::names::{joined, name_of};
use crate::lane::Lane;
use crate::pattern::{PatternError, Patterns};
use crate::verdict::tests_in;
use crate::workspace::{ProtectedRule, Protection};
use assertions::Assertions;
pub use assertions::RedefinedAssertions;
pub(super) use calls::rules_of_git;
use checks::Importers;
use declares::BaseDeclarations;
use ecosystems::{GIT_READS, HOOKS, READS, SHADOWED, TEST, TESTS};
pub use findings::{PathChange, PathChangeKind, TreeSide};
use loaded_by_tests::TestHelpers;
pub(super) use made::shell_texts;
use nearer::ShadowableFiles;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shadows::Shadows;
use stand_ins::StandIns;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
pub use table::table;
use tests_named::BaseTests;
use unused_parts::ComparedParts;
pub(super) use vendored::{REPLACES, VENDORED};

/// Reason for protecting what the user has named.
const SAID: &str = "the task or the project protects it";

/// The policy of one run.
#[derive(Debug, Clone)]
pub struct Policy {
    frozen: FrozenPolicy,
    protection: Protection,
    opened: Patterns,
}

/// The serializable form of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrozenPolicy {
    /// The rules that protect paths. A plain path from the root (`/tests/a.rs`) matches literally.
    pub rules: Vec<ProtectedRule>,
    /// Globs of the paths that the task opens again.
    pub allow_edit: Vec<String>,
    /// The manifests of the base.
    pub manifests: BTreeSet<String>,
    /// Paths at which a new file would be taken for something that the gate asks for.
    stand_ins: StandIns,
    /// The folders of the base that contain files.
    pub folders: BTreeSet<String>,
    /// Python modules that would be found before the intended ones.
    shadows: Shadows,
    /// Folders above guarded modules of other languages. A new link must not replace them.
    modules: BTreeSet<String>,
    /// Files of the base that a new file could hide.
    found: ShadowableFiles,
    /// Names that no source may declare.
    declared: BaseDeclarations,
    /// Names with which tests in C and C++ compare or fail.
    assertions: Assertions,
    /// Names that Node packages of the base have or depend on.
    taken: BTreeSet<String>,
    /// Files whose change is noted, each with the reason.
    noted: BTreeMap<String, String>,
    /// The folders of the base that are packages.
    packages: BTreeSet<String>,
    /// Tools that no command of the base names.
    unused: BTreeSet<String>,
    /// The protected files that may gain unused parts.
    parts: ComparedParts,
    /// The files with commands that the lanes run.
    commands: BTreeSet<String>,
}

/// The paths of the base, with a cache of their imports.
#[derive(Default)]
pub(super) struct BaseFiles(BTreeSet<String>, OnceCell<Importers>);

impl BaseFiles {
    fn new(paths: impl IntoIterator<Item = String>) -> Self {
        Self(paths.into_iter().collect(), OnceCell::new())
    }

    fn has(&self, path: &str) -> bool {
        self.0.contains(path)
    }

    fn has_folder(&self, path: &str) -> bool {
        let below = format!("{path}/");
        path.is_empty() || self.0.range(below.clone()..).next().is_some_and(|first| first.starts_with(&below))
    }
}

impl Policy {
    /// Freezes the policy for the files of a base. `protect` adds globs of protected paths, and
    /// `allow_edit` opens paths again. `read` returns the content of a file of the base.
    ///
    /// # Errors
    /// Returns the first invalid glob.
    pub fn freeze(
        base: impl IntoIterator<Item = String>,
        lanes: &[Lane],
        protect: &[String],
        allow_edit: &[String],
        read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
    ) -> Result<Self, PatternError> {
        let base = BaseFiles::new(base);
        let manifests: BTreeSet<String> = base.0.iter().filter(|path| manifest::is_one(path)).cloned().collect();
        let mut rules: Vec<ProtectedRule> = ecosystems::rules().collect();
        let rule = |pattern: &str, why: &str| ProtectedRule { pattern: pattern.into(), why: why.into() };
        let tests = BaseTests::find(lanes, &base, read)?;
        let mut named = named::by_lanes(lanes, &base, &tests, read);
        let of_ci = ci::run(&base, &tests, read);
        for script in of_ci.scripts {
            named.entry(script).or_insert(ci::RUNS);
        }
        let reached = reached::find(lanes, &base, named.keys(), read);
        let unused = unused::tools(lanes, &base, &reached, read);
        rules.retain(|rule| !unused::is_of(&unused, &rule.pattern));
        rules.extend(protect.iter().map(|pattern| rule(pattern, SAID)));
        let stand_ins = StandIns::from_commands(lanes, &base, &reached.texts, read);
        named.retain(|path, why| *why != named::BESIDE || !tests.fit(path));
        let is_free = |why: &str| why == named::WORK || why == named::SOURCED;
        rules.extend(
            named
                .iter()
                .filter(|(path, why)| !manifest::is_one(path) && !is_free(why))
                .map(|(path, why)| rule(&exactly(path), why)),
        );
        rules.extend(tests.of_base(&base).map(|path| rule(&exactly(path), TEST)));
        rules.extend(vendored::folders(&base).iter().map(|folder| rule(&exactly(folder), vendored::VENDORED)));
        rules.extend(vendored::lists_of_go(&base).map(|list| rule(&exactly(&list), vendored::REPLACES)));
        let guarded = load_paths::rules(lanes, &base, &reached.texts, read);
        let modules = load_paths::folders(&guarded);
        rules.extend(guarded);
        rules.extend(stand_ins.included.iter().map(|glob| rule(&format!("/{glob}"), READS)));
        let scripts = named.iter().filter(|(_, why)| !is_free(why)).map(|(path, _)| path);
        let own = manifests.iter().filter(|path| name_of(path) == "package.json" && !path.contains("node_modules/"));
        let mut loaded = loaded::by_runners(lanes, &base, read);
        let before_tests = loaded.iter().cloned().chain(loaded::configurations(&base));
        let helpers = TestHelpers::find(scripts.chain(own.clone()).cloned(), before_tests, &base, &tests, read);
        loaded.extend(helpers.loaded);
        let others = loaded.iter().filter(|path| !manifest::is_one(path));
        rules.extend(others.map(|path| rule(&exactly(path), loaded::LOADED)));
        let taken = own.flat_map(|path| read(path).map_or(Vec::new(), |bytes| manifest::taken(path, &bytes))).collect();
        rules.extend(of_ci.of_managers.iter().map(|path| rule(&format!("/{path}"), HOOKS)));
        let by_tests = named::sourced_by_tests(&base, &tests, read);
        let noted = notes::noted(of_ci.others, helpers.data.into_iter().chain(by_tests), &named);
        let declared = BaseDeclarations::from_base(&base, &tests, read);
        let shadows = Shadows::from_base(&base, lanes, named.keys(), read);
        let found = ShadowableFiles::from_base(&base, |path| tests.fit(path), shadows::first_folders(&base));
        let folders: BTreeSet<String> =
            base.0.iter().flat_map(|path| folders_of(path)).map(ToOwned::to_owned).collect();
        let conftest = |folder: &str| rule(&exactly(&joined(folder, loaded::CONFTEST)), TESTS);
        rules.extend(folders.iter().map(String::as_str).chain([""]).map(conftest));
        let parts = ComparedParts::from_commands(lanes, &base, &reached, &rules, read);
        let (packages, allow_edit) = (vendored::packages(&base), allow_edit.to_vec());
        let frozen = FrozenPolicy {
            rules,
            allow_edit,
            manifests,
            stand_ins,
            folders,
            shadows,
            modules,
            found,
            declared,
            assertions: Assertions::from_base(&base, &tests, read),
            taken,
            noted,
            packages,
            unused,
            parts,
            commands: reached.texts.into_keys().collect(),
        };
        Self::thaw(frozen)
    }

    /// Restores a frozen policy.
    ///
    /// # Errors
    /// Returns the first invalid glob.
    pub fn thaw(frozen: FrozenPolicy) -> Result<Self, PatternError> {
        let rule = |path: String| ProtectedRule { pattern: exactly(&path), why: SHADOWED.into() };
        let rules = frozen.rules.iter().cloned().chain(frozen.shadows.files().map(rule));
        let protection = Protection::new(rules, &frozen.allow_edit)?;
        let opened = Patterns::trees(frozen.allow_edit.iter().map(String::as_str))?;
        Ok(Self { frozen, protection, opened })
    }

    /// Returns the serializable form of the policy.
    pub fn frozen(&self) -> &FrozenPolicy {
        &self.frozen
    }

    /// Returns the files with commands that the lanes run: scripts, Makefiles, manifests.
    pub fn commands(&self) -> impl Iterator<Item = &String> {
        self.frozen.commands.iter()
    }

    /// Returns the compiled rules, for code that writes files.
    pub fn protection(&self) -> &Protection {
        &self.protection
    }

    /// Returns the rule that protects a path. Most manifests have only rules for sections.
    pub fn rule(&self, path: &str) -> Option<&ProtectedRule> {
        self.protection.rule(path)
    }

    /// Returns whether [`Policy::findings`] needs the content of a path.
    pub fn reads(path: &str) -> bool {
        let is_tests = || loaded::is_loaded_by_pytest(path) || BaseDeclarations::reads(path);
        manifest::is_one(path) || is_tests() || later_runs::reads(path) || unused_parts::reads(path)
    }

    /// Returns the manifests of the base that neither the task opens nor a rule protects.
    pub fn closed_manifests(&self) -> BTreeSet<String> {
        let is_free = |path: &&String| !self.opened.fit(path) && self.rule(path).is_none();
        self.frozen.manifests.iter().filter(is_free).cloned().collect()
    }

    /// Returns whether a path is that of a manifest that is judged by section.
    pub fn is_manifest(path: &str) -> bool {
        manifest::is_one(path)
    }

    /// Returns whether the policy judges a file of this name by comparing its versions.
    pub fn is_compared(path: &str) -> bool {
        manifest::is_one(path) || unused_parts::reads(path)
    }

    /// Returns the tables of a manifest that name dependencies, by path, without empty tables. The
    /// map is empty if the file is not a manifest or cannot be read.
    pub fn dependencies(path: &str, bytes: &[u8]) -> BTreeMap<String, Value> {
        manifest::dependencies(path, bytes)
    }

    /// Returns the requirements of a Python manifest (PEP 508), by table or section.
    pub fn requirements(path: &str, bytes: &[u8]) -> BTreeMap<String, Vec<String>> {
        manifest::requirements(path, bytes)
    }

    /// Returns the dependencies that no changed manifest had on the base, by manifest and name.
    pub fn new_dependencies(
        &self,
        changes: &[PathChange],
        contents: impl Fn(&str, TreeSide) -> Option<Vec<u8>>,
    ) -> BTreeSet<(String, String)> {
        let names = |path: &str, side| contents(path, side).map(|text| manifest::fetched(path, &text));
        let manifests = || changes.iter().map(|change| change.path.as_str()).filter(|path| manifest::is_one(path));
        let had: BTreeSet<String> =
            manifests().flat_map(|path| names(path, TreeSide::Base).unwrap_or_default()).collect();
        let has = |path: &str| names(path, TreeSide::Candidate).unwrap_or_default();
        let new = manifests().flat_map(|path| has(path).into_iter().map(|name| (path.to_owned(), name)));
        new.filter(|(_, name)| !had.contains(name)).collect()
    }

    /// Returns whether the task opens a path.
    pub fn is_opened(&self, path: &str) -> bool {
        self.opened.fit(path)
    }

    /// Returns whether the task opens the tests inside a product file: the file itself, or
    /// `PATH#tests`.
    pub fn opens_tests_in(&self, path: &str) -> bool {
        self.opened.fit(path) || self.opened.fit(&tests_in(path))
    }

    /// Returns whether a path is that of a test of the base, even if the task opens the path.
    pub fn is_test(&self, path: &str) -> bool {
        self.protection.closed_rule(path).is_some_and(is_a_test)
    }

    /// Returns whether a path has the name of a test.
    pub fn looks_like_a_test(path: &str) -> bool {
        tests_named::is_named(path)
    }

    /// Returns the reason why a path must not become a link, if there is one.
    pub fn forbids_link(&self, path: &str) -> Option<&'static str> {
        match () {
            () if self.opened.fit(path) => None,
            () if name_of(path) == loaded::CONFTEST => Some(TESTS),
            () if self.frozen.packages.contains(path) => Some(vendored::LINKED),
            () => self.is_above_stand_ins(path).then_some(shadows::LINKED),
        }
    }

    /// Returns whether a folder must not gain modules, programs or headers that tests would find.
    fn is_above_stand_ins(&self, path: &str) -> bool {
        let FrozenPolicy { modules, shadows, stand_ins, .. } = &self.frozen;
        modules.contains(path) || shadows.is_above(path) || stand_ins.is_above(path)
    }

    /// Returns the folders of the base that are Cargo packages.
    pub fn cargo_packages(&self) -> impl Iterator<Item = &str> {
        let manifests = self.frozen.manifests.iter().filter(|path| name_of(path) == "Cargo.toml");
        manifests.map(|path| path.rsplit_once('/').map_or("", |(folder, _)| folder))
    }

    /// Returns the files of the base from which the lanes take commands.
    pub fn command_files(&self) -> impl Iterator<Item = &str> {
        self.frozen.commands.iter().map(String::as_str)
    }

    /// Returns whether a file is code, by its name.
    pub fn is_source(path: &str) -> bool {
        named::is_source(path) || named::is_script(path)
    }

    /// Returns at most `most` of these files. Tests are dropped first.
    pub fn most_important(&self, protected: BTreeSet<String>, most: usize) -> Vec<String> {
        let is_test = |path: &str| self.rule(path).is_some_and(is_a_test);
        let (tests, others): (Vec<String>, Vec<String>) = protected.into_iter().partition(|path| is_test(path));
        let mut pinned: Vec<String> = others.into_iter().chain(tests).take(most).collect();
        pinned.sort();
        pinned
    }
}

/// Returns whether a rule protects what defines the gate, what the user has named, or what the
/// user's git reads. Such a rule also covers paths that git ignores.
pub(super) fn defines_the_gate(rule: &ProtectedRule) -> bool {
    rule.why == SAID || rule.why == GIT_READS || ecosystems::of_the_gate(&rule.why)
}

/// Returns whether a rule protects a test of the base.
pub(super) fn is_a_test(rule: &ProtectedRule) -> bool {
    rule.why == TEST
}

/// Returns the pattern that matches one path literally.
pub(super) fn exactly(path: &str) -> String {
    format!("/{}", globset::escape(path))
}

fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

#[cfg(test)]
mod tests;
