//! A strict JSON parser that rejects objects with duplicate keys, because their meaning is
//! ambiguous.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Parses one JSON value.
///
/// # Errors
/// If the text is not JSON, or an object in it has a duplicate key.
pub fn strictly(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str::<Strict>(text).map(|Strict(value)| value)
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Whole).map(Self)
    }
}

struct Whole;

impl<'de> Visitor<'de> for Whole {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((key, Strict(value))) = fields.next_entry::<String, Strict>()? {
            if all.contains_key(&key) {
                let key: String = key.chars().take(50).collect();
                return Err(Error::custom(format!("duplicate key `{key}` in an object")));
            }
            all.insert(key, value);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_once_in_an_object_and_everything_else_is_as_it_was() {
        for text in [r#"{"a":1,"a":2}"#, r#"[{"b":{"a":1,"c":[],"a":1}}]"#, r#"{"a":1,"\u0061":2}"#] {
            let error = strictly(text).unwrap_err().to_string();
            assert!(error.starts_with("duplicate key `a` in an object"), "{error}");
        }
        for text in
            [r#"{"a":{"a":[-1,18446744073709551615,0.1,1e300,"\u00e9\n",null,true]},"b":""}"#, "7", "\"x\"", " [] "]
        {
            assert_eq!(strictly(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        }
        assert!(strictly("{} x").is_err() && strictly("1e400").is_err() && strictly(&"[".repeat(10_000)).is_err());
    }
}
