//! Planted tests for `go test`.

use super::{PlainFailure, PlantDraft, PlantGroup, package_of, tokens, used};
use std::collections::{BTreeMap, BTreeSet};

/// Methods of `testing.T` that make a test fail, each with arguments.
const OWN: [(&str, &str); 6] = [
    ("Fatal", "(\"{mark}\")"),
    ("Fatalf", "(\"{mark}\")"),
    ("Error", "(\"{mark}\")"),
    ("Errorf", "(\"{mark}\")"),
    ("Fail", "()"),
    ("FailNow", "()"),
];
/// Assertions of Testify, each with arguments that fail.
#[rustfmt::skip]
const TESTIFY: [(&str, &str); 22] = [
    ("Equal", "(t, \"{mark}\", \"\")"), ("NotEqual", "(t, \"{mark}\", \"{mark}\")"),
    ("EqualValues", "(t, \"{mark}\", \"\")"), ("True", "(t, false, \"{mark}\")"),
    ("False", "(t, true, \"{mark}\")"), ("Nil", "(t, \"{mark}\")"), ("NotNil", "(t, nil, \"{mark}\")"),
    ("NoError", "(t, errors.New(\"{mark}\"))"), ("Error", "(t, nil, \"{mark}\")"),
    ("EqualError", "(t, errors.New(\"{mark}\"), \"\")"), ("ErrorIs", "(t, errors.New(\"{mark}\"), errors.New(\"\"))"),
    ("Len", "(t, \"{mark}\", 0)"), ("Empty", "(t, \"{mark}\")"), ("NotEmpty", "(t, \"\", \"{mark}\")"),
    ("Contains", "(t, \"\", \"{mark}\")"), ("NotContains", "(t, \"{mark}\", \"{mark}\")"),
    ("Zero", "(t, \"{mark}\")"), ("Greater", "(t, 1, 2, \"{mark}\")"), ("Less", "(t, 2, 1, \"{mark}\")"),
    ("ElementsMatch", "(t, []string{\"{mark}\"}, []string{})"), ("Panics", "(t, func() {}, \"{mark}\")"),
    ("Fail", "(t, \"{mark}\")"),
];

/// Returns a file for each package of a folder, with a test for each form of assertion that its
/// tests use. A folder has a second package if it has external tests. `None` if no file has a
/// package clause.
pub(in crate::gate::canary) fn go(folder: &str, likes: &[(&str, &str)]) -> Option<Vec<PlantDraft>> {
    let mut packages: BTreeMap<&str, (&str, String)> = BTreeMap::new();
    for (like, text) in likes {
        if let Some(package) = package_of(text) {
            packages.entry(package).or_insert((like, String::new())).1.push_str(text);
        }
    }
    let draft = |(package, (like, text)): (&str, (&str, String))| {
        let (tests, imports) = tests(&text);
        let imports: String = imports.iter().map(|import| format!("import \"{import}\"\n")).collect();
        PlantDraft {
            like: like.into(),
            path: format!("{folder}{{file}}_test.go"),
            head: format!("package {package}\n\n{imports}"),
            groups: vec![PlantGroup::new("test", tests)],
            plain: PlainFailure::new(
                format!("package {package}\n\nimport \"testing\"\n"),
                OWN[0].0,
                test("t.Fatal", OWN[0].1),
            ),
            ..PlantDraft::default()
        }
    };
    (!packages.is_empty()).then(|| packages.into_iter().map(draft).collect())
}

/// Returns the tests with their forms, and the packages that they import.
fn tests(text: &str) -> (Vec<(String, String)>, BTreeSet<String>) {
    let names = tokens(text);
    let of = |receiver: &str| -> BTreeSet<&str> {
        names
            .iter()
            .filter_map(|name| name.split_once('.').filter(|(own, _)| *own == receiver))
            .map(|(_, name)| name)
            .collect()
    };
    let mut imports = BTreeSet::from(["testing".to_owned()]);
    let mut forms: Vec<(String, &str)> =
        used(&OWN, &of("t")).into_iter().map(|(name, args)| (format!("t.{name}"), args)).collect();
    if !forms.iter().any(|(form, _)| form == "t.Fatal") {
        forms.insert(0, ("t.Fatal".into(), OWN[0].1));
    }
    for package in ["assert", "require"] {
        let path = format!("github.com/stretchr/testify/{package}");
        if text.contains(&format!("\"{path}\"")) {
            let own = used(&TESTIFY, &of(package));
            imports.extend((!own.is_empty()).then_some(path));
            forms.extend(own.into_iter().map(|(name, args)| (format!("{package}.{name}"), args)));
        }
    }
    if forms.iter().any(|(_, args)| args.contains("errors.New")) {
        imports.insert("errors".into());
    }
    let with_form = |(form, args): (String, &str)| {
        let text = test(&form, args);
        (form, text)
    };
    (forms.into_iter().map(with_form).collect(), imports)
}

fn test(form: &str, args: &str) -> String {
    format!("func Test{{Name}}(t *testing.T) {{\n\t{form}{args}\n}}\n")
}
