//! Combinations of a matrix, by the rules of GitHub Actions: `jobs.<job_id>.strategy.matrix` in
//! <https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax>.
//!
//! The result begins with all combinations of the listed values, without those that an `exclude`
//! matches. Each `include` then adds its further values to every combination that it does not
//! contradict. If none exists, the `include` becomes a separate combination.

use crate::yaml::FilePlace;

/// The dimension of the tasks.
pub(super) const TASK: &str = "task";
/// The dimension of the repositories.
pub(super) const REPOSITORY: &str = "repository";

/// Values by name, in the order of the file.
pub(super) type Combination = Vec<(String, String)>;

/// A name with all its values.
pub(super) type Dimension = (String, Vec<String>);

/// The lists of values, with `include` and `exclude`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matrix {
    pub(super) dimensions: Vec<Dimension>,
    pub(super) include: Vec<MatrixEntry>,
    pub(super) exclude: Vec<MatrixEntry>,
}

/// An item of `include` or `exclude`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MatrixEntry {
    pub(super) place: FilePlace,
    pub(super) values: Combination,
}

/// Returns all combinations. The `outer` dimensions apply to every combination: an added
/// combination that does not name one of them gets all of its values.
pub(super) fn combinations(outer: &[Dimension], matrix: &Matrix) -> Vec<Combination> {
    let all: Vec<&Dimension> = outer.iter().chain(&matrix.dimensions).collect();
    let mut originals = product(Vec::new(), &all);
    originals.retain(|combination| !matrix.exclude.iter().any(|entry| is_part(&entry.values, combination)));
    if matrix.dimensions.is_empty() && !matrix.include.is_empty() {
        originals.retain(|_| false); // each `include` is then a set of values
    }
    let is_original = |name: &str| all.iter().any(|(own, _)| own == name) && !originals.is_empty();
    let mut extended = originals.clone();
    let mut own = Vec::new();
    for MatrixEntry { values, .. } in &matrix.include {
        let (format_jobs, further): (Combination, Combination) =
            values.iter().cloned().partition(|(name, _)| is_original(name));
        let mut fits = false;
        for combination in extended.iter_mut().filter(|combination| is_part(&format_jobs, combination)) {
            fits = true;
            further.iter().for_each(|(name, value)| put(combination, name, value));
        }
        if !fits {
            own.extend(expanded(values, outer, &matrix.exclude));
        }
    }
    extended.extend(own);
    extended
}

/// Expands an added combination over all values of the outer dimensions that it does not name.
fn expanded(values: &Combination, outer: &[Dimension], exclude: &[MatrixEntry]) -> Vec<Combination> {
    let one = |(name, all): &Dimension| match value_of(values, name) {
        Some(value) => (name.clone(), vec![value.to_owned()]),
        None => (name.clone(), all.clone()),
    };
    let outer: Vec<Dimension> = outer.iter().map(one).collect();
    let mut around = product(Vec::new(), &outer.iter().collect::<Vec<_>>());
    let says_outer =
        |entry: &MatrixEntry| entry.values.iter().all(|(name, _)| outer.iter().any(|(own, _)| own == name));
    around.retain(|combination| !exclude.iter().any(|entry| says_outer(entry) && is_part(&entry.values, combination)));
    for combination in &mut around {
        values.iter().for_each(|(name, value)| put(combination, name, value));
    }
    around
}

fn product(start: Combination, dimensions: &[&Dimension]) -> Vec<Combination> {
    dimensions.iter().fold(vec![start], |all, (name, values)| {
        let with = |combination: Combination| {
            values.iter().map(move |value| [combination.as_slice(), &[(name.clone(), value.clone())]].concat())
        };
        all.into_iter().flat_map(with).collect()
    })
}

fn is_part(values: &Combination, combination: &Combination) -> bool {
    values.iter().all(|(name, value)| value_of(combination, name) == Some(value))
}

pub(super) fn value_of<'c>(combination: &'c Combination, name: &str) -> Option<&'c str> {
    combination.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
}

fn put(combination: &mut Combination, name: &str, value: &str) {
    match combination.iter_mut().find(|(own, _)| own == name) {
        Some((_, old)) => value.clone_into(old),
        None => combination.push((name.to_owned(), value.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Combination {
        let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        text.split_whitespace().filter_map(pair).collect()
    }

    fn matrix(dimensions: &[(&str, &str)], include: &[&str], exclude: &[&str]) -> Matrix {
        let entry = |text: &&str| MatrixEntry { place: FilePlace { line: 1, column: 1 }, values: values(text) };
        Matrix {
            dimensions: dimensions.iter().map(|(name, all)| dimension(name, all)).collect(),
            include: include.iter().map(entry).collect(),
            exclude: exclude.iter().map(entry).collect(),
        }
    }

    fn dimension(name: &str, all: &str) -> Dimension {
        (name.to_owned(), all.split(' ').map(str::to_owned).collect())
    }

    fn format_jobs(outer: &[Dimension], matrix: &Matrix) -> Vec<String> {
        let one = |combination: Combination| {
            combination.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        combinations(outer, matrix).into_iter().map(one).collect()
    }

    #[test]
    fn the_example_of_the_documentation_gives_what_the_documentation_says() {
        let include = [
            "color=green",
            "color=pink animal=cat",
            "fruit=apple shape=circle",
            "fruit=banana",
            "fruit=banana animal=cat",
        ];
        let matrix = matrix(&[("fruit", "apple pear"), ("animal", "cat dog")], &include, &[]);
        assert_eq!(
            format_jobs(&[], &matrix),
            [
                "fruit=apple animal=cat color=pink shape=circle",
                "fruit=apple animal=dog color=green shape=circle",
                "fruit=pear animal=cat color=pink",
                "fruit=pear animal=dog color=green",
                "fruit=banana",
                "fruit=banana animal=cat",
            ]
        );
    }

    #[test]
    fn an_exclude_takes_out_whatever_it_is_a_part_of_before_anything_is_included() {
        let matrix =
            matrix(&[("os", "linux mac"), ("version", "1 2")], &["os=mac version=2 x=y"], &["os=mac", "version=1"]);
        assert_eq!(format_jobs(&[], &matrix), ["os=linux version=2", "os=mac version=2 x=y"]);
    }

    #[test]
    fn without_lists_each_include_is_a_set_for_every_task() {
        let tasks = [dimension(TASK, "a b")];
        let matrix = matrix(&[], &["v=1", "v=2 task=a"], &[]);
        assert_eq!(format_jobs(&tasks, &matrix), ["task=a v=1", "task=b v=1", "task=a v=2"]);
        assert_eq!(format_jobs(&tasks, &Matrix::default()), ["task=a", "task=b"]);
    }

    #[test]
    fn tasks_and_repositories_are_dimensions_like_others() {
        let outer = [dimension(TASK, "a b"), dimension(REPOSITORY, "r s")];
        let matrix = matrix(&[("v", "1 2")], &["task=b x=y", "v=3 repository=s"], &["task=a repository=r", "v=2"]);
        assert_eq!(
            format_jobs(&outer, &matrix),
            [
                "task=a repository=s v=1",
                "task=b repository=r v=1 x=y",
                "task=b repository=s v=1 x=y",
                "task=a repository=s v=3",
                "task=b repository=s v=3",
            ]
        );
    }
}
