//! A test that compares a schema with the reader of its format. It generates valid and invalid
//! documents from the schema and checks them with both.
//!
//! The schema must accept every document that the reader accepts. Both must refuse unknown keys.
//! Every key of a schema needs a description.

use serde_json::{Map, Value, json};

/// The number of generated documents.
const DOCUMENTS: usize = 400;
/// A key unknown to every reader. It resembles no key, so a reader's message lists the keys that it
/// knows.
const NOBODYS: &str = "qqqqqqqqqqqqqqqqqqqq";

/// Compares the schema with the reader. `read` reads a document as JSON, which is YAML, and returns
/// its problems as a message.
pub(crate) fn holds(schema: &Value, read: impl Fn(&str) -> Result<(), String>) {
    let validator = jsonschema::draft202012::new(schema).unwrap();
    every_key_has_a_word(schema, "$");
    let mut chance = Chance(0x5EED);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..DOCUMENTS {
        let mut made = Made { root: schema, chance: &mut chance, is_wrong: false, maps: Vec::new() };
        let spoil = made.chance.below(3) == 0;
        let document = made.value(schema, "", spoil);
        let (maps, text) = (made.maps, document.to_string());
        match read(&text) {
            Ok(()) => {
                taken += 1;
                let why =
                    validator.validate(&document).err().map(|error| format!("{error} at {}", error.instance_path()));
                assert_eq!(why, None, "the reader takes what the schema does not: {text}");
            }
            Err(_) => refused += 1,
        }
        let Some(at) = maps.get(chance.below(maps.len().max(1))) else { continue };
        let mut odd = document.clone();
        if let Some(map) = odd.pointer_mut(at).and_then(Value::as_object_mut) {
            map.insert(NOBODYS.into(), json!("x"));
            assert!(read(&odd.to_string()).is_err(), "the reader takes an unknown key: {odd}");
            assert!(!validator.is_valid(&odd), "the schema takes an unknown key: {odd}");
        }
    }
    assert!(taken > DOCUMENTS / 10 && refused > DOCUMENTS / 20, "{taken} were taken and {refused} refused");
}

/// Returns the keys of a map of the schema, sorted.
pub(crate) fn keys(map: &Value) -> Vec<String> {
    let mut keys: Vec<String> = map["properties"].as_object().unwrap().keys().cloned().collect();
    keys.sort();
    keys
}

/// Returns the keys that a reader lists in its message about an unknown key. `around` is the
/// document; `@` marks the place of that key.
pub(crate) fn known(around: &str, read: impl Fn(&str) -> Result<(), String>) -> Vec<String> {
    let reported = read(&around.replace('@', &format!("{NOBODYS}: 1"))).unwrap_err();
    let line = reported.lines().find(|line| line.contains(NOBODYS)).unwrap_or_else(|| panic!("{around}: {reported}"));
    let all =
        line.split_once("(known: ").and_then(|(_, rest)| rest.split_once(')')).unwrap_or_else(|| panic!("{line}"));
    let mut keys: Vec<String> = all.0.split(", ").map(str::to_owned).collect();
    keys.sort();
    keys
}

fn every_key_has_a_word(schema: &Value, at: &str) {
    match schema {
        Value::Object(fields) => {
            for (key, property) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
                let has_word = property["description"].as_str().is_some_and(|word| word.len() > 8);
                assert!(has_word || *property == json!(false), "{at}: `{key}` has no description");
            }
            fields.iter().for_each(|(key, value)| every_key_has_a_word(value, &format!("{at}/{key}")));
        }
        Value::Array(items) => items.iter().for_each(|item| every_key_has_a_word(item, at)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A document under construction.
struct Made<'a> {
    root: &'a Value,
    chance: &'a mut Chance,
    /// True if the document contains an error already; one error is enough.
    is_wrong: bool,
    /// JSON pointers of its closed maps.
    maps: Vec<String>,
}

impl Made<'_> {
    fn value(&mut self, schema: &Value, at: &str, spoil: bool) -> Value {
        if spoil && !self.is_wrong && self.chance.below(6) == 0 {
            self.is_wrong = true;
            return self.wrong();
        }
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix('#')) {
            return self.value(self.root.pointer(name).unwrap(), at, spoil);
        }
        if let Some(example) = schema["examples"].get(0) {
            return example.clone();
        }
        if let Some(ways) = schema["anyOf"].as_array().filter(|_| schema["properties"].is_null()) {
            let way = self.chance.below(ways.len());
            return self.value(&ways[way], at, spoil);
        }
        if let Some(words) = schema["enum"].as_array() {
            return words[self.chance.below(words.len())].clone();
        }
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
        match kind {
            Some("object") => self.map(schema, at, spoil),
            Some("array") => {
                let least = schema["minItems"].as_u64().unwrap_or(0) as usize;
                let many = if schema["maxItems"] == 0 { 0 } else { least + self.chance.below(3) };
                (0..many).map(|n| self.value(&schema["items"], &format!("{at}/{n}"), spoil)).collect()
            }
            Some("boolean") => json!(self.chance.below(2) == 0),
            Some("integer") => {
                let (least, most) = (schema["minimum"].as_i64().unwrap(), schema["maximum"].as_i64());
                [json!(least), json!(most.unwrap_or(i64::MAX))][self.chance.below(2)].clone()
            }
            Some("number") => json!(0.25),
            Some("string") => json!(["x", "some words"][self.chance.below(2)]),
            other => panic!("nothing is made of {other:?}: {schema}"),
        }
    }

    fn map(&mut self, schema: &Value, at: &str, spoil: bool) -> Value {
        let mut map = Map::new();
        let Some(properties) = schema["properties"].as_object() else {
            for n in 0..self.chance.below(3) {
                map.insert(
                    format!("NAME_{n}"),
                    self.value(&schema["additionalProperties"], &format!("{at}/NAME_{n}"), spoil),
                );
            }
            return Value::Object(map);
        };
        self.maps.push(at.to_owned());
        let ways = ["oneOf", "anyOf"].into_iter().find_map(|key| schema[key].as_array());
        let way = ways.map(|ways| ways[self.chance.below(ways.len())]["required"].clone());
        let is_needed = |key: &str| {
            let among = |list: &Value| list.as_array().is_some_and(|keys| keys.iter().any(|other| other == key));
            among(&schema["required"]) || way.as_ref().is_some_and(among)
        };
        let is_choice = |key: &str| {
            ways.into_iter()
                .flatten()
                .any(|way| way["required"].as_array().is_some_and(|keys| keys.iter().any(|k| k == key)))
        };
        for (key, property) in properties {
            let few = at.matches('/').count() > 3; // so that nesting ends
            let wanted = is_needed(key) || !is_choice(key) && self.chance.below(if few { 12 } else { 4 }) == 0;
            if wanted && *property != json!(false) {
                map.insert(key.clone(), self.value(property, &format!("{at}/{key}"), spoil));
            }
        }
        for (key, more) in schema["dependentSchemas"].as_object().into_iter().flatten().filter(|_| !spoil) {
            let closed = more["properties"].as_object().into_iter().flatten().map(|(key, _)| key).collect::<Vec<_>>();
            if map.contains_key(key) {
                closed.into_iter().for_each(|key| drop(map.remove(key)));
            }
        }
        Value::Object(map)
    }

    fn wrong(&mut self) -> Value {
        let all = [
            json!(null),
            json!(true),
            json!(-7),
            json!(1.5),
            json!(""),
            json!("zebra"),
            json!([]),
            json!([[]]),
            json!({}),
            json!("5"),
            json!(101),
        ];
        all[self.chance.below(all.len())].clone()
    }
}

/// A pseudorandom generator with the same sequence in each test run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, many: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % many
    }
}
