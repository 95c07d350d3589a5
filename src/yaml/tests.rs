//! Tests of [`parse`], [`document`] and [`TableReader`] with valid and invalid texts.

use super::*;
use proptest::prelude::*;

fn place(line: usize, column: usize) -> FilePlace {
    FilePlace { line, column }
}

fn node(line: usize, column: usize, value: YamlValue) -> YamlNode {
    YamlNode { place: place(line, column), value }
}

fn key(line: usize, column: usize, text: &str) -> YamlKey {
    YamlKey { text: text.into(), place: place(line, column) }
}

fn text(value: &str) -> YamlValue {
    YamlValue::Text(value.into())
}

/// Lists the place of each key and value of a document, in order: `key@1:1 value@1:6`.
fn places(node: &YamlNode) -> Vec<String> {
    match &node.value {
        YamlValue::Map(entries) => entries
            .iter()
            .flat_map(|(key, node)| [vec![format!("{}@{}", key.text, key.place)], places(node)].concat())
            .collect(),
        YamlValue::List(items) => items.iter().flat_map(places).collect(),
        _ => vec![format!("{}@{}", node.describe(), node.place)],
    }
}

fn refusal(source: &str) -> String {
    parse(source, 1).map(|node| format!("accepted: {node:?}")).unwrap_or_else(|problem| problem.to_string())
}

#[test]
fn a_document_is_values_with_their_places() {
    let expected = YamlValue::Map(vec![
        (key(1, 1, "a"), node(1, 4, YamlValue::Int(1))),
        (
            key(2, 1, "b"),
            node(2, 4, YamlValue::List(vec![node(2, 5, YamlValue::Bool(true)), node(2, 11, YamlValue::Float(0.5))])),
        ),
        (key(3, 1, "c"), node(4, 3, YamlValue::Map(vec![(key(4, 3, "d"), node(4, 6, text("x y")))]))),
        (key(5, 1, "e"), node(5, 1, YamlValue::Null)),
    ]);
    assert_eq!(parse("a: 1\nb: [true, 0.5]\nc:\n  d: x y\ne:\n", 1), Ok(node(1, 1, expected)));
}

#[test]
fn places_hold_in_flow_maps_after_long_texts_with_carriage_returns_and_wide_letters() {
    let source =
        "m: {é: 1, k: [v]}\r\nlong: |\r\n  one\r\n\r\n  two\r\nfolded: \"a\r\n  b\"\r\nplain: a\r\n  b\r\nend: 'z'\r\n";
    let expected = [
        "m@1:1",
        "é@1:5",
        "the number 1@1:8",
        "k@1:11",
        "the text `v`@1:15",
        "long@2:1",
        "the text `one  two `@3:3",
        "folded@6:1",
        "the text `a b`@6:9",
        "plain@8:1",
        "the text `a b`@8:8",
        "end@10:1",
        "the text `z`@10:6",
    ];
    assert_eq!(places(&parse(source, 1).unwrap()), expected);
}

#[test]
fn lines_count_from_where_the_text_begins_in_its_file() {
    assert_eq!(places(&parse("\u{feff}a: 1", 7).unwrap()), ["a@7:1", "the number 1@7:4"]);
    assert_eq!(parse("# nothing\n", 3), Ok(node(3, 1, YamlValue::Null)));
}

#[test]
fn an_alias_stands_at_its_own_place() {
    let document = parse("a: &x [1]\nb: *x\n", 1).unwrap();
    let list = YamlValue::List(vec![node(1, 8, YamlValue::Int(1))]);
    let expected = vec![(key(1, 1, "a"), node(1, 4, list.clone())), (key(2, 1, "b"), node(2, 4, list))];
    assert_eq!(document.value, YamlValue::Map(expected));
}

#[test]
fn words_of_older_yaml_are_text() {
    let expected = ["a@1:1", "the text `yes`@1:4", "b@2:1", "the text `010`@2:4", "on@3:1", "the text `1_000`@3:5"];
    assert_eq!(places(&parse("a: yes\nb: 010\non: 1_000\n", 1).unwrap()), expected);
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place_and_what_to_do() {
    let sources = [
        "a: b: c",
        "a:\n\tb: 1",
        "a: @x",
        "a: {{ x }}",
        "[",
        "a: [b, c",
        "a: 'x",
        "a: \"x\nb: 1",
        "a: 1\nb: 2\na: 3",
        "1: a",
        "true: a",
        "? [a]\n: b",
        "a: !!str 1",
        "a: !x {}",
        "a: .nan",
        "a: 99999999999999999999",
        "a: 0xffffffffffffffff",
        "<<: {a: 1}",
        "a: &a [*a]",
        "a: *nobody",
        "a: 1\n---\nb: 2",
        "a: x\u{2028}y",
        "a: x\ry",
        "a\0: b",
        "a: -",
        "a: %x",
        "a: [b,,c]",
        "a: 1\n b: 2",
        "a: \"\\q\"",
    ];
    let shown: Vec<String> = sources.iter().map(|source| format!("{source:?}\n    {}", refusal(source))).collect();
    for (source, shown) in sources.iter().zip(&shown) {
        assert!(!shown.contains("accepted") && shown.ends_with(')'), "{source:?}: {shown}");
    }
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_bracket_or_quote_that_is_not_closed_is_reported_where_it_opens() {
    for (source, expected) in [
        ("files: [a, b\nmodel: x\nlane: y\n", "1:8: not YAML: `[` is not closed (close it with `]`)"),
        ("a: 1\nbudget: { turns: 5\nmodel: x\n", "2:9: not YAML: `{` is not closed (close it with `}`)"),
        ("steps:\n  - name: a\n    needs: [b\n    run: 'echo ]'\n", "3:12: not YAML: `[` is not closed"),
        ("steps:\n  - { name: a, run: b\n  - { name: c, run: d }\n", "2:5: not YAML: `{` is not closed"),
        ("a: [\n  b,\n  {c: d,\n", "1:4: not YAML: `[` is not closed"),
        ("a: [b\n", "1:4: not YAML: `[` is not closed"),
        ("title: \"Fix it\nmodel: \"x\"\n", "1:8: not YAML: "),
        ("files: [\"a, b]\nmodel: \"x\"\n", "1:9: not YAML: "),
        ("a: \"x\n  b: \"z\"\n", "1:4: not YAML: this quote is not closed (close it where the text ends)"),
        ("a: ['b, c]\nd: e\n", "1:5: not YAML: "),
        ("a: [\n  b: c: d,\n]\n", "2:"),
        ("a: {b: [c, d}\n", "1:13: not YAML: "),
    ] {
        let message = refusal(source);
        assert!(message.starts_with(expected), "{source:?}: {message}");
        let in_file = parse(source, 11).unwrap_err().to_string();
        let line: usize = expected.split(':').next().unwrap().parse().unwrap();
        assert!(in_file.starts_with(&format!("{}:", line + 10)), "{source:?}: {in_file}");
    }
}

#[test]
fn texts_made_to_exhaust_are_refused_at_once() {
    let mut bomb = String::from("a0: &a0 [x, x]\n");
    (1..60).for_each(|n| bomb += &format!("a{n}: &a{n} [*a{0}, *a{0}]\n", n - 1));
    let quadratic = format!("a: &a [{}]\nb: [{}]\n", "x, ".repeat(20_000), "*a, ".repeat(20_000));
    let deep = format!("{}x", "- ".repeat(500));
    assert!(refusal(&bomb).contains("more than 100000 values"));
    assert!(refusal(&quadratic).contains("more than 100000 values"));
    assert!(refusal(&deep).contains("nested deeper"));
    for piece in
        ["[", "{", "- ", "? ", "&a ", "*a ", "!", "\"", "a: ", ": ", ",", "|\n", "a\n", "{a: ", "[a, ", "%", "#", "'"]
    {
        assert_ne!(refusal(&piece.repeat(100_000 / piece.len())), "", "{piece:?}");
    }
    assert!(refusal(&" ".repeat(MAX_SOURCE + 1)).contains("bytes are too many"));
}

#[test]
fn front_matter_is_what_stands_between_two_fences_at_the_top() {
    let found = document("\n---\r\na: 1\r\n---\r\nText\n---\n").unwrap();
    assert_eq!(
        (places(found.front.as_ref().unwrap()), found.body, found.body_line),
        (vec!["a@3:1".to_owned(), "the number 1@3:4".to_owned()], "Text\n---\n", 5)
    );
    assert_eq!(document("Text\n---\na: 1\n---\n").unwrap().front, None);
    assert_eq!(document("---\n---\nText").unwrap().front.unwrap().value, YamlValue::Map(Vec::new()));
    assert!(document("---\na: 1\n").unwrap_err().to_string().starts_with("1:1: the front matter has no end"));
    assert!(document("\n---\n- a\n---\n").unwrap_err().to_string().starts_with("3:1: expected the front matter"));
}

#[test]
fn the_nearest_known_word_is_found_in_any_spelling() {
    let known = ["max_retries", "timeout", "on_tamper", "files"];
    let near = |word| nearest(word, known);
    assert_eq!(
        [near("tiemout"), near("maxRetries"), near("max-retries"), near("file"), near("zebra")],
        [Some("timeout"), Some("max_retries"), Some("max_retries"), Some("files"), None]
    );
}

#[test]
fn a_table_reads_each_key_once_and_knows_the_rest() {
    let source = "name: x\ncount: 7\nwait: 90s\nenv: {A: '1', B: ''}\nempty: ''\nlist: [a, b]\nchoice: two\non: true\n";
    let (root, mut problems) = (parse(source, 1).unwrap(), Problems::default());
    let mut table = TableReader::open(&root, "a step", &mut problems).unwrap();
    assert_eq!(table.text("name", &mut problems), Some("x"));
    assert_eq!(table.int("count", 0..=9, &mut problems), Some(7));
    assert_eq!(table.duration("wait", &mut problems), Some(std::time::Duration::from_secs(90)));
    let env = vec![("A".to_owned(), "1".to_owned()), ("B".to_owned(), String::new())];
    assert_eq!(table.map_of_text("env", &mut problems), Some(env));
    assert_eq!(table.any_text("empty", &mut problems), Some(""));
    assert_eq!(table.text_or_texts("list", &mut problems), Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(table.one_of("choice", &[("one", 1), ("two", 2)], &mut problems), Some(2));
    assert_eq!(table.flag("on", &mut problems), Some(true));
    assert_eq!(table.text("absent", &mut problems), None);
    table.finish(&mut problems);
    assert_eq!(problems, Problems::default());
}

#[test]
fn every_wrong_value_of_a_table_is_said_sorted_by_place() {
    let source = "zebra: 1\ncount: 10\nname: 5\nwait: soon\nlist: a\nchoice: tow\non: yes\nlater: {}\nnaem: x\n";
    let (root, mut problems) = (parse(source, 1).unwrap(), Problems::default());
    let mut table = TableReader::open(&root, "a step", &mut problems).unwrap();
    table.text("name", &mut problems);
    table.int("count", 0..=9, &mut problems);
    table.duration("wait", &mut problems);
    table.texts("list", &mut problems);
    table.one_of("choice", &[("one", 1), ("two", 2)], &mut problems);
    table.flag("on", &mut problems);
    table.later(&["later"], &mut problems);
    table.finish(&mut problems);
    insta::assert_snapshot!(problems.within("lanes/verify.yaml"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic(source in "\\PC{0,80}|[-a-c:{}\\[\\]&*!|>'\"%@`#,? \\t\\r\\n\u{feff}0-9.~<]{0,60}") {
        let _ = parse(&source, 1);
        let _ = document(&source);
    }

    #[test]
    fn quoted_text_is_read_as_it_was_written(value in "[^\\x00-\\x1f\u{7f}-\u{9f}\u{2028}\u{2029}\u{feff}\u{fffe}\u{ffff}]{0,40}") {
        let source = format!("- '{}'\n", value.replace('\'', "''"));
        prop_assert_eq!(parse(&source, 1).map(|node| node.value), Ok(YamlValue::List(vec![node(1, 3, text(&value))])));
    }
}

#[test]
fn of_very_many_problems_the_first_are_kept_and_the_rest_is_counted() {
    let mut problems = Problems::default();
    (1..=60_000).for_each(|line| problems.push(Problem::at(place(line, 1), "strange")));
    problems.merge(&problems.clone());
    let reported = problems.within("x");
    assert_eq!((reported.lines().count(), reported.lines().last()), (201, Some("x: and 59800 more")));
}
