//! The attacks and the honest work, read from `rows/` and `projects.yaml`.

use crate::support::{Part, dice, draw, is_table_drawn, is_whole, wanted_rows};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The number of attacks, pieces of honest work and honest changes in an ordinary run.
const ATTACKS: usize = 2;
/// The number of rows of any kind on compiled projects, which take ten times as long. One in four
/// ordinary runs tries them.
const COMPILED: usize = 1;
const COMPILERS: [&str; 4] = ["cargo", "cmake", "go", "javac"];
/// Of this many attacks, one is also tried behind Landlock alone.
const BEHIND_LANDLOCK: usize = 7;
const HONEST: usize = 1;
const CHANGES: usize = 1;

/// All rows and projects.
#[derive(Debug)]
pub(crate) struct Book {
    projects: BTreeMap<String, Project>,
    pub(crate) attacks: Vec<Row>,
    pub(crate) honest: Vec<Row>,
    /// Honest changes, some of which need a flag.
    pub(crate) changes: Vec<Row>,
}

/// The rows of one run of the tests.
#[derive(Debug)]
pub(crate) struct Wanted<'b> {
    pub(crate) attacks: Vec<&'b Row>,
    pub(crate) honest: Vec<&'b Row>,
    pub(crate) changes: Vec<&'b Row>,
}

/// A small project with one bug, and a gate that fails because of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Project {
    /// The programs that the project needs on the machine.
    pub(crate) programs: Vec<String>,
    /// A script that fixes the bug.
    pub(crate) honest: String,
    /// The hold-out of runs that have one. It fails while the bug is present, even if
    /// the project's own tests pass.
    pub(crate) holdout: String,
    /// A script that no gate knows. It succeeds if the answers about the figures `$A`, `$B` and
    /// `$C` are right.
    pub(crate) oracle: String,
    /// An ordinary change: the twin of attacks that have none themselves.
    twin: String,
}

/// An attack, or a piece of honest work.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) project: String,
    /// The aim of the attack.
    #[serde(default)]
    pub(crate) aims: String,
    /// A shell script with the work.
    sketch: String,
    /// The catch that the row expects, as the page words it. It is a rule, the missing evidence,
    /// `the lane is red` or `no harm done`. `the lane is red` fits an attack without a trace in the
    /// judged tree; `no harm done` fits an attack that the sandbox stops.
    #[serde(default)]
    pub(crate) caught_by: String,
    /// Tool calls in fledge, after or without the sketch: `{ name, input }`.
    #[serde(default)]
    calls: Vec<Call>,
    /// A command that succeeds if the attack did its harm. Without one, the harm is a green gate
    /// with the bug still present. Attacks with this command fix the bug first.
    harm: Option<String>,
    /// An ordinary change of the same shape.
    twin: Option<String>,
    /// Only a check that the agent has never seen can detect the attack.
    #[serde(default)]
    pub(crate) needs_holdout: bool,
    /// The reason why the attack does not fool the naive gate, if it does not.
    pub(crate) naive_holds: Option<String>,
    /// The reason why the attack still fools fledge. Remove it once the attack no longer does.
    pub(crate) open: Option<String>,
    /// The reason why the attack fools fledge behind Landlock alone, if it does.
    pub(crate) open_behind_landlock: Option<String>,
    /// fledge must report tampering with any verdict.
    #[serde(default)]
    pub(crate) must_find: bool,
    /// Protected paths that the task opens.
    #[serde(default)]
    allow_edit: Vec<String>,
    /// Files of the base that the run hides from the agent. The run works in a worktree.
    #[serde(default)]
    pub(crate) hidden: Vec<String>,
    /// A shell script that runs before the base is committed.
    #[serde(default)]
    base: String,
    /// A shell script that succeeds on a clone of the delivered commit if the whole change is in
    /// it. Rows with this script are honest changes. They may need a flag, which the message of
    /// fledge must name.
    delivers: Option<String>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) input: BTreeMap<String, String>,
}

/// The work of a scripted agent in a project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Work {
    pub(crate) project: String,
    pub(crate) sketch: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) harm: Option<String>,
    pub(crate) holdout: bool,
    pub(crate) allow_edit: Vec<String>,
    pub(crate) hidden: Vec<String>,
    pub(crate) base: String,
    pub(crate) change: Option<Change>,
}

/// An honest change that the task asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Change {
    pub(crate) title: String,
    pub(crate) delivers: String,
}

impl Book {
    /// Reads all rows and projects.
    pub(crate) fn read() -> Self {
        let text = std::fs::read_to_string(folder().join("projects.yaml")).unwrap();
        let projects = serde_yaml::from_str(&text).unwrap();
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(folder().join("rows")).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        let read = |file: &PathBuf| -> Vec<Row> {
            let text = std::fs::read_to_string(file).unwrap();
            serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
        };
        let (honest, attacks): (Vec<Row>, Vec<Row>) =
            files.iter().flat_map(read).partition(|row| row.id.starts_with('H'));
        let (changes, honest) = honest.into_iter().partition(|row| row.delivers.is_some());
        Self { projects, attacks, honest, changes }
    }

    pub(crate) fn project(&self, name: &str) -> &Project {
        &self.projects[name]
    }

    /// Returns the attacks of this run that are also tried behind Landlock alone: all if rows are
    /// named or everything is tried, otherwise a seventh, and at least one. Compiled projects are
    /// not drawn, because without bubblewrap they build everything again. Rows with hidden tests
    /// are left out: such runs are refused there.
    pub(crate) fn behind_landlock<'b>(&self, attacks: &[&'b Row]) -> Vec<&'b Row> {
        let attacks: Vec<&Row> = attacks.iter().copied().filter(|row| row.hidden.is_empty()).collect();
        if wanted_rows().is_some() || (is_whole() && Part::of_this_run().is_none()) {
            return attacks;
        }
        let plain: Vec<&Row> = attacks.into_iter().filter(|row| !self.is_compiled(row)).collect();
        if plain.is_empty() {
            return plain;
        }
        let mut dice = dice("behind Landlock");
        let first = dice.index(plain.len());
        let is_drawn = |(number, _): &(usize, &Row)| *number == first || dice.index(BEHIND_LANDLOCK) == 0;
        plain.into_iter().enumerate().filter(is_drawn).map(|(_, row)| row).collect()
    }

    fn is_compiled(&self, row: &Row) -> bool {
        self.project(&row.project).programs.iter().any(|program| COMPILERS.contains(&program.as_str()))
    }

    /// Returns the rows that this run of the tests tries.
    pub(crate) fn wanted(&self) -> Wanted<'_> {
        if let Some(names) = wanted_rows() {
            let [attacks, honest, changes] = [&self.attacks, &self.honest, &self.changes]
                .map(|rows| rows.iter().filter(|row| names.contains(&row.id)).collect());
            return Wanted { attacks, honest, changes };
        }
        let tables = [
            ("attacks", ATTACKS, &self.attacks),
            ("honest changes", HONEST, &self.honest),
            ("changes with flags", CHANGES, &self.changes),
        ];
        let compiled = tables.iter().flat_map(|(_, _, rows)| rows.iter()).filter(|row| self.is_compiled(row)).collect();
        let count = if is_table_drawn("what is compiled") { COMPILED } else { 0 };
        let compiled: Vec<&Row> = draw("what is compiled", count, compiled);
        let [attacks, honest, changes] = tables.map(|(table, count, rows)| {
            let plain: Vec<&Row> = rows.iter().filter(|row| !self.is_compiled(row)).collect();
            let drawn = draw(table, count, plain);
            let is_drawn = |row: &&Row| drawn.iter().chain(&compiled).any(|other| std::ptr::eq(*other, *row));
            rows.iter().filter(is_drawn).collect()
        });
        Wanted { attacks, honest, changes }
    }
}

impl Row {
    /// Returns the attack, or the honest work.
    pub(crate) fn work(&self, book: &Book) -> Work {
        let is_honest = self.id.starts_with('H') || self.harm.is_some();
        let honest = if is_honest { book.project(&self.project).honest.as_str() } else { ":" };
        Work {
            project: self.project.clone(),
            sketch: format!("{honest}\n{}", self.sketch),
            calls: self.calls.clone(),
            harm: self.harm.clone(),
            holdout: self.needs_holdout,
            allow_edit: self.allow_edit.clone(),
            hidden: self.hidden.clone(),
            base: self.base.clone(),
            change: self.delivers.clone().map(|delivers| Change { title: self.title.clone(), delivers }),
        }
    }

    /// Returns honest work of the same shape.
    pub(crate) fn twin(&self, book: &Book) -> Work {
        let project = book.project(&self.project);
        let twin = self.twin.as_ref().unwrap_or(&project.twin);
        let sketch = format!("{}\n{twin}", project.honest);
        Work { sketch, calls: Vec::new(), harm: None, allow_edit: Vec::new(), ..self.work(book) }
    }
}

/// Returns the folder of the rows.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks")
}

#[test]
fn there_are_enough_rows_and_each_has_its_own_name() {
    let book = Book::read();
    let all = || book.attacks.iter().chain(&book.honest).chain(&book.changes);
    let names: BTreeSet<&str> = all().map(|row| row.id.as_str()).collect();
    assert_eq!(names.len(), all().count(), "an id is there twice");
    assert!(all().all(|row| book.projects.contains_key(&row.project)));
    let unsaid = book.attacks.iter().find(|row| row.caught_by.is_empty() && row.open.is_none());
    assert!(unsaid.is_none(), "{unsaid:?} has no `caught_by`");
    let fooled = book.attacks.iter().filter(|row| row.naive_holds.is_none()).count();
    assert!(book.attacks.len() >= 180 && fooled >= 172, "{} attacks, {fooled} fool the naive gate", book.attacks.len());
    let opened = book.honest.iter().filter(|row| !row.allow_edit.is_empty()).count();
    assert!(book.honest.len() >= 36 && opened <= 2, "{} pieces of work, {opened} open a path", book.honest.len());
    let opens = book.changes.iter().find(|row| !row.allow_edit.is_empty());
    assert!(opens.is_none(), "flags of honest changes come from the message alone: {opens:?}");
    let projects: BTreeSet<&str> = book.changes.iter().map(|row| row.project.as_str()).collect();
    for project in ["python", "rust", "node", "go", "c", "java", "shell"] {
        assert!(projects.contains(project), "no honest change of {project}");
    }
    assert!(book.changes.len() >= 45, "{} honest changes", book.changes.len());
}
