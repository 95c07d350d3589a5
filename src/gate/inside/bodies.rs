//! The bodies of test functions in Python, Rust and Go, and where a statement can be added that
//! makes a test fail after everything else that it does. Pure.

use super::outline::{Item, Scope};
use super::{DEEP, python};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::str::FromStr as _;

/// A test function with a place for a failing statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::gate) struct TestBody {
    /// The name of the function, with the names of the classes or modules around it.
    pub(in crate::gate) name: Vec<String>,
    /// The place in the file, in bytes.
    pub(in crate::gate) at: usize,
    /// The statement. `{mark}` is the word that its failure prints, and `{file}` a random word.
    pub(in crate::gate) statement: String,
}

/// Returns the test functions of a file, in order, by the ending of its path.
pub(in crate::gate) fn test_bodies(path: &str, text: &str) -> Vec<TestBody> {
    match path.rsplit('.').next() {
        Some("py") => python::test_bodies(text),
        Some("rs") => of_rust(text),
        Some("go") => of_go(text),
        _ => Vec::new(),
    }
}

/// Returns the test functions of a Rust file. The statement is a value that fails when the function
/// drops it, so it also fails after an early return.
fn of_rust(text: &str) -> Vec<TestBody> {
    let mut found = Vec::new();
    if let Ok(tokens) = TokenStream::from_str(text) {
        add_of_rust(tokens, &mut Vec::new(), &mut found);
    }
    proc_macro2::extra::invalidate_current_thread_spans();
    found
}

fn add_of_rust(tokens: TokenStream, around: &mut Vec<String>, found: &mut Vec<TestBody>) {
    const STATEMENT: &str = " let _{file} = { struct End; impl ::std::ops::Drop for End { fn drop(&mut self) { \
         if !::std::thread::panicking() { ::std::panic!(\"{mark}\") } } } End };";
    for Item { attributes, parts, .. } in Scope::parse(tokens).items {
        let word = |part: &TokenTree| if let TokenTree::Ident(word) = part { Some(word.to_string()) } else { None };
        let named = |keyword: &str| {
            let at = parts.iter().position(|part| word(part).is_some_and(|word| word == keyword))?;
            word(parts.get(at + 1)?)
        };
        let Some(TokenTree::Group(body)) = parts.last() else { continue };
        if body.delimiter() != Delimiter::Brace {
            continue;
        }
        if let Some(name) = named("fn").filter(|_| attributes.iter().any(|attribute| attribute.is_test)) {
            let name = around.iter().cloned().chain([name]).collect();
            let at = body.span_open().byte_range().end;
            found.push(TestBody { name, at, statement: STATEMENT.into() });
        } else if let Some(module) = named("mod").filter(|_| around.len() < DEEP) {
            around.push(module);
            add_of_rust(body.stream(), around, found);
            around.pop();
        }
    }
}

/// Returns the test functions of a Go file that begin on one line: `func TestAdd(t *testing.T) {`.
fn of_go(text: &str) -> Vec<TestBody> {
    let (mut found, mut at) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        at += line.len();
        let test = line.strip_prefix("func Test").and_then(|rest| rest.split_once('('));
        let Some((name, rest)) = test else { continue };
        let value = rest.trim_end().strip_suffix(" *testing.T) {");
        let Some(value) = value.filter(|value| *value != "_" && !value.is_empty()) else { continue };
        let statement = format!("\tdefer {value}.Error(\"{{mark}}\")\n");
        found.push(TestBody { name: vec![format!("Test{name}")], at, statement });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn altered(path: &str, text: &str) -> (Vec<String>, String) {
        let bodies = test_bodies(path, text);
        let names = bodies.iter().map(|body| body.name.join(".")).collect();
        let mut text = text.to_owned();
        for body in bodies.iter().rev() {
            text.insert_str(body.at, &body.statement.replace("{mark}", "m"));
        }
        (names, text)
    }

    #[test]
    fn a_python_test_fails_after_its_last_statement() {
        let text = "import a\n\ndef test_one():\n    x = \"\"\"\ntext\n\"\"\"\n    if x:\n        assert a.b(\n            1)\n\n# about\n\nclass TestTwo:\n    kind = 1\n\n    @mark\n    async def test_three(\n            self):\n        assert 1\n\n    def helper(self):\n        pass\n\ndef test_short(): pass\n";
        let (names, altered) = altered("test_a.py", text);
        assert_eq!(names, ["test_one", "TestTwo.test_three"]);
        let expected = text
            .replace("            1)\n", "            1)\n    raise AssertionError(\"m\")\n")
            .replace("assert 1\n", "assert 1\n        raise AssertionError(\"m\")\n");
        assert_eq!(altered, expected);
        let (_, last) = self::altered("test_a.py", "def test_a():\n    pass");
        assert_eq!(last, "def test_a():\n    pass\n    raise AssertionError(\"m\")\n");
    }

    #[test]
    fn a_rust_test_fails_when_it_ends() {
        let text = "fn add() {}\n#[test]\nfn adds() { add() }\n#[cfg(test)]\nmod tests {\n    #[tokio::test]\n    async fn waits() -> Result<(), ()> {\n        Ok(())\n    }\n    fn helper() {}\n}\n";
        let (names, altered) = altered("src/a.rs", text);
        assert_eq!(names, ["adds", "tests.waits"]);
        assert_eq!(altered.matches("::std::panic!(\"m\")").count(), 2);
        assert!(altered.contains("fn adds() { let _"), "{altered}");
        assert!(altered.contains("-> Result<(), ()> { let _"), "{altered}");
        assert_eq!(test_bodies("src/a.rs", "fn (").len(), 0, "not Rust");
    }

    #[test]
    fn a_go_test_fails_when_it_returns() {
        let text = "package a\n\nfunc TestAdd(t *testing.T) {\n\tadd()\n}\n\nfunc TestNone(_ *testing.T) {\n}\nfunc helper(t *testing.T) {\n}\n";
        let (names, altered) = altered("a_test.go", text);
        assert_eq!(names, ["TestAdd"]);
        assert_eq!(altered, text.replace("\tadd()", "\tdefer t.Error(\"m\")\n\tadd()"));
    }
}
