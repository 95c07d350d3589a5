//! The steps of a lane that do not run, with the reasons: the selection, conditions, changed paths,
//! and dependencies.

use super::{Condition, EntryKind, Lane, Step, StepEntry, TaskGroup};
use crate::pattern::Patterns;
use crate::yaml::{excerpt, nearest};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The reason for a step that was not selected.
pub const NOT_SELECTED: &str = "not selected";

/// The selected steps of a lane. The text is the name of a step or an entry, otherwise the number
/// of an entry, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepSelection {
    /// All steps.
    All,
    /// This step and those after it in the file.
    From(String),
    /// Only this step.
    Only(String),
}

/// The known facts at the start of a lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartFacts {
    /// Variables for `when` that neither the step nor its lane sets.
    pub variables: BTreeMap<String, String>,
    /// The changed paths, relative to the root. `None` if they are unknown; then every step runs.
    pub changed: Option<BTreeSet<String>>,
}

impl Lane {
    /// Returns for each step, in order, the reason for leaving it out, or `None` if it runs.
    /// Dependencies of a running step's task also run, selected or not.
    ///
    /// # Errors
    ///
    /// A selection that does not exist, with the existing entries; a selection that cannot be the
    /// start, with the one to use instead.
    pub fn left_out(&self, selection: &StepSelection, facts: &StartFacts) -> Result<Vec<Option<String>>, String> {
        let choice = self.choice(selection)?;
        let reason = |(number, step): (usize, &Step)| {
            if step.on_demand && !choice.is_step {
                Some("nothing that needs it runs".to_owned())
            } else if choice.steps.contains(&number) {
                refusal(&step.when, &step.changed, [&step.env, &self.env], facts)
            } else {
                Some(NOT_SELECTED.to_owned())
            }
        };
        let mut reasons: Vec<Option<String>> = self.steps.iter().enumerate().map(reason).collect();
        let chosen = self.gathers.iter().filter(|gather| choice.has(gather));
        for gather in
            chosen.filter(|gather| refusal(&gather.when, &gather.changed, [&gather.env, &self.env], facts).is_none())
        {
            gather.steps.iter().for_each(|step| reasons[*step] = None);
        }
        self.include_dependencies(&mut reasons);
        Ok(reasons)
    }

    /// Returns for each step whether it runs in every run of the whole lane. A step without
    /// conditions does, and so do all dependencies of its task. A step that exists only as a
    /// dependency needs a dependent step that always runs.
    pub fn always_run(&self) -> Vec<bool> {
        let is_bound = |when: &[Condition], about: &[String]| !(when.is_empty() && about.is_empty());
        let own = |step: &Step| (step.on_demand || is_bound(&step.when, &step.changed)).then_some("maybe");
        let mut maybe: Vec<Option<&str>> = self.steps.iter().map(own).collect();
        for gather in self.gathers.iter().filter(|gather| !is_bound(&gather.when, &gather.changed)) {
            gather.steps.iter().for_each(|step| maybe[*step] = None);
        }
        self.include_dependencies(&mut maybe);
        maybe.iter().map(Option::is_none).collect()
    }

    /// Includes the dependencies of running steps. A dependency precedes the step that needs it.
    fn include_dependencies<T>(&self, reasons: &mut [Option<T>]) {
        for (number, step) in self.steps.iter().enumerate().rev() {
            if reasons[number].is_none() {
                step.deps.iter().for_each(|dep| reasons[*dep] = None);
            }
        }
    }

    /// Returns the number, from 0, of the entry that is selected by this word or contains the
    /// selected step.
    pub fn entry(&self, wanted: &str) -> Option<usize> {
        self.find(wanted).ok().map(|choice| choice.entries.start)
    }

    fn choice(&self, selection: &StepSelection) -> Result<Choice, String> {
        let whole = |steps, entries| Choice { steps, entries, member: None, is_step: false };
        let (steps, entries) = (self.steps.len(), self.entries.len());
        match selection {
            StepSelection::All => Ok(whole(0..steps, 0..entries)),
            StepSelection::Only(wanted) => self.find(wanted),
            StepSelection::From(wanted) => {
                let Choice { steps: first, entries: Range { start, .. }, member, is_step } = self.find(wanted)?;
                let entry = &self.entries[start];
                if (member.is_some() || is_step) && entry.kind == EntryKind::Parallel {
                    let (wanted, group, number) = (excerpt(wanted), excerpt(&entry.name), start + 1);
                    return Err(format!("`{wanted}` is inside of {group}: begin with that, which is `{number}`"));
                }
                Ok(whole(first.start..steps, start..entries))
            }
        }
    }

    /// Finds an entry, a member of a group, another step, or the number of an entry.
    fn find(&self, wanted: &str) -> Result<Choice, String> {
        let is_step = |number: &usize| self.steps[*number].name == wanted;
        let mut named = self.entries.iter().enumerate().filter(|(_, entry)| entry.name == wanted);
        let first = named.clone().next();
        if let Some((number, _)) = named.find(|(_, entry)| entry.steps.iter().any(is_step)).or(first) {
            return Ok(self.whole(number));
        }
        for (number, entry) in self.entries.iter().enumerate() {
            if let Some(member) = entry.items.iter().position(|member| member.name == wanted) {
                let before: usize = entry.items[..member].iter().map(|member| member.steps.len()).sum();
                let start = self.whole(number).steps.start + before;
                let steps = start..start + entry.items[member].steps.len();
                return Ok(Choice { member: Some(member), ..Choice::of(steps, number) });
            }
            if let Some(step) = entry.steps.iter().copied().find(is_step) {
                return Ok(Choice { is_step: true, ..Choice::of(step..step + 1, number) });
            }
        }
        let number: Option<usize> = wanted.parse().ok();
        if let Some(number) = number.filter(|number| (1..=self.entries.len()).contains(number)) {
            return Ok(self.whole(number - 1));
        }
        let steps = self.steps.iter().map(|step| step.name.as_str());
        let known = self.entries.iter().map(|entry| entry.name.as_str()).chain(steps);
        let near = nearest(wanted, known).filter(|_| number.is_none());
        let near = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
        let numbered = |(number, entry): (usize, &StepEntry)| format!("{} {}", number + 1, excerpt(&entry.name));
        let entries: Vec<String> = self.entries.iter().enumerate().map(numbered).collect();
        let wanted = excerpt(wanted);
        Err(format!("lane `{}` has no step `{wanted}`{near}; its steps: {}", self.name, entries.join(", ")))
    }

    /// Selects a whole entry.
    fn whole(&self, number: usize) -> Choice {
        let before = self.entries[..number].iter().map(|entry| entry.steps.len()).sum();
        Choice::of(before..before + self.entries[number].steps.len(), number)
    }
}

/// The selected part of a lane.
struct Choice {
    /// The numbers of the selected steps.
    steps: Range<usize>,
    /// The numbers of the entries that contain them.
    entries: Range<usize>,
    /// The selected member of a group.
    member: Option<usize>,
    /// True if a single step was selected by its name, regardless of its entry.
    is_step: bool,
}

impl Choice {
    fn of(steps: Range<usize>, entry: usize) -> Self {
        Self { steps, entries: entry..entry + 1, member: None, is_step: false }
    }

    fn has(&self, gather: &TaskGroup) -> bool {
        let is_member = self.member.is_none() || self.member == gather.member;
        !self.is_step && self.entries.contains(&gather.entry) && is_member
    }
}

type Variables = BTreeMap<String, String>;

/// Returns the reason why a step with these conditions and paths does not run, if any. As at run
/// time, the step's variables override those of the lane, and these override those of the run.
fn refusal(when: &[Condition], about: &[String], own: [&Variables; 2], facts: &StartFacts) -> Option<String> {
    let [step, lane] = own;
    let sources = [step, lane, &facts.variables];
    if let Some(condition) = when.iter().find(|condition| !condition.holds(&sources)) {
        return Some(format!("when: `{condition}` does not hold"));
    }
    let changed = facts.changed.as_ref()?;
    let patterns = Patterns::trees(about.iter().map(String::as_str)).ok()?;
    let is_untouched = !about.is_empty() && !changed.iter().any(|path| patterns.fit(path));
    is_untouched.then(|| "changed: no path that it is about has changed".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::parse;

    const TEXT: &str = "
tasks: { gen: g, build: { cmd: b, deps: [gen] }, lint: { cmd: l, deps: [gen] }, test: { cmd: t, deps: [build] }, all: { deps: [lint, test] } }
steps:
  - { run: make fmt --check, name: fmt }
  - parallel: [{ task: lint }, { run: make docs --quiet }]
  - { task: test, when: '!FAST' }
  - { task: all, name: everything, when: ALL }
  - { run: make pack --all }
";

    /// Returns the names of the steps that run with these variables.
    fn run(selection: &StepSelection, variables: &[&str]) -> Result<String, String> {
        let lane = parse("verify", "verify.yaml", TEXT).unwrap();
        let variables = variables.iter().map(|name| ((*name).to_owned(), "1".to_owned())).collect();
        let left_out = lane.left_out(selection, &StartFacts { variables, changed: None })?;
        let runs = lane.steps.iter().zip(left_out).filter(|(_, reason)| reason.is_none());
        Ok(runs.map(|(step, _)| step.name.as_str()).collect::<Vec<_>>().join(" "))
    }

    fn only(wanted: &str, variables: &[&str]) -> Result<String, String> {
        run(&StepSelection::Only(wanted.into()), variables)
    }

    fn from(wanted: &str) -> Result<String, String> {
        run(&StepSelection::From(wanted.into()), &[])
    }

    #[test]
    fn what_is_only_depended_on_runs_when_something_that_needs_it_does() {
        let all = |variables: &[&str]| run(&StepSelection::All, variables).unwrap();
        assert_eq!(all(&[]), "fmt gen lint make docs build test make pack");
        assert_eq!(all(&["FAST"]), "fmt gen lint make docs make pack");
        assert_eq!(all(&["FAST", "ALL"]), "fmt gen lint make docs build test make pack", "`all` needs `test`");
        assert_eq!(only("test", &[]).unwrap(), "gen build test");
        assert_eq!(only("test", &["FAST"]).unwrap(), "");
        assert_eq!(only("everything", &["ALL", "FAST"]).unwrap(), "gen lint build test");
        assert_eq!(from("test").unwrap(), "gen build test make pack");
        let lane = parse("verify", "verify.yaml", TEXT).unwrap();
        assert_eq!(lane.always_run(), [true, true, true, true, false, false, true]);
        let reasons = lane.left_out(&StepSelection::Only("fmt".into()), &StartFacts::default()).unwrap();
        let reported: Vec<&str> = reasons.iter().map(|reason| reason.as_deref().unwrap_or("runs")).collect();
        let (not, needless) = ("not selected", "nothing that needs it runs");
        assert_eq!(reported, ["runs", needless, not, not, needless, not, not]);
    }

    #[test]
    fn conditions_see_the_variables_of_the_step_and_its_lane() {
        let text = "env: { DEPLOY: '1', OFF: '1' }
tasks: { t: x, all: { deps: [t] } }
steps:
  - { name: one, run: x, when: DEPLOY }
  - { name: two, run: x, when: '!OFF', env: { OFF: '' } }
  - { name: three, run: x, when: DEPLOY=1, env: { DEPLOY: '2' } }
  - { task: all, when: 'DEPLOY, CI=run' }
";
        let lane = parse("verify", "verify.yaml", text).unwrap();
        let variables = [("DEPLOY", ""), ("CI", "run")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let facts = StartFacts { variables: variables.into(), changed: None };
        let runs = |reason: &Option<String>| reason.is_none();
        let left_out = lane.left_out(&StepSelection::All, &facts).unwrap();
        assert_eq!(left_out.iter().map(runs).collect::<Vec<_>>(), [true, true, false, true]);
    }

    #[test]
    fn a_selection_is_an_entry_a_member_a_step_or_a_number() {
        for (wanted, runs) in [
            ("fmt", "fmt"),
            ("2", "gen lint make docs"),
            ("parallel(lint, make docs --quiet)", "gen lint make docs"),
            ("lint", "gen lint"),
            ("make docs --quiet", "make docs"),
            ("make docs", "make docs"),
            ("make pack --all", "make pack"),
            ("gen", "gen"),
            ("build", "gen build"),
            ("5", "make pack"),
        ] {
            assert_eq!(only(wanted, &[]), Ok(runs.into()), "{wanted}");
        }
        assert_eq!(from("4").unwrap(), "make pack");
        assert_eq!(from("make pack").unwrap(), "make pack");
        for wanted in ["2", "parallel(lint, make docs --quiet)"] {
            assert_eq!(from(wanted).unwrap(), "gen lint make docs build test make pack", "{wanted}");
        }
    }

    #[test]
    fn a_selection_that_is_not_there_is_refused_with_what_is() {
        let there = "its steps: 1 fmt, 2 parallel(lint, make docs --quiet), 3 test, 4 everything, 5 make pack --all";
        for (wanted, near) in
            [("6", ""), ("0", ""), ("tets", " (did you mean `test`?)"), ("biuld", " (did you mean `build`?)")]
        {
            assert_eq!(only(wanted, &[]), Err(format!("lane `verify` has no step `{wanted}`{near}; {there}")));
        }
        for wanted in ["lint", "make docs", "make docs --quiet", "gen"] {
            let why = "is inside of parallel(lint, make docs --quiet): begin with that, which is `2`";
            assert_eq!(from(wanted), Err(format!("`{wanted}` {why}")));
        }
    }
}
