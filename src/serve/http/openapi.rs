//! The document that describes the API (OpenAPI 3.1), made of what each file of the API says of its routes and of the types that it
//! reads and writes.

use super::problem::MEDIA;
use axum::Json;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// A type of the API.
#[derive(Debug, Clone, Copy)]
pub(in crate::serve) struct Shape(fn(&mut SchemaGenerator) -> Schema);

impl Shape {
    /// That of a type.
    pub(in crate::serve) fn of<T: JsonSchema>() -> Self {
        Self(SchemaGenerator::subschema_for::<T>)
    }
}

/// What a request can be answered with.
#[derive(Debug, Clone)]
struct Answer {
    status: u16,
    summary: &'static str,
    /// What is in it, and in which form.
    content: Option<(&'static str, Option<Shape>)>,
}

/// A method of a path.
#[derive(Debug, Clone)]
pub(in crate::serve) struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    /// Those in the query; those in the path are told by it.
    query: Vec<(&'static str, &'static str)>,
    request: Option<Shape>,
    answers: Vec<Answer>,
}

impl Operation {
    fn new(method: &'static str, path: &'static str, summary: &'static str) -> Self {
        Self { method, path, summary, query: Vec::new(), request: None, answers: Vec::new() }
    }

    /// `path` as the router has it.
    pub(in crate::serve) fn get(path: &'static str, summary: &'static str) -> Self {
        Self::new("get", path, summary)
    }

    /// The same for POST.
    pub(in crate::serve) fn post(path: &'static str, summary: &'static str) -> Self {
        Self::new("post", path, summary)
    }

    /// The same for DELETE.
    pub(in crate::serve) fn delete(path: &'static str, summary: &'static str) -> Self {
        Self::new("delete", path, summary)
    }

    /// With a parameter of the query, which may be left out.
    pub(in crate::serve) fn query(mut self, name: &'static str, summary: &'static str) -> Self {
        self.query.push((name, summary));
        self
    }

    /// With a body.
    pub(in crate::serve) fn takes<T: JsonSchema>(mut self) -> Self {
        self.request = Some(Shape::of::<T>());
        self
    }

    /// It gives a value of this type.
    pub(in crate::serve) fn answers<T: JsonSchema>(self, status: u16, summary: &'static str) -> Self {
        self.answer(status, summary, Some(("application/json", Some(Shape::of::<T>()))))
    }

    /// It gives JSON.
    pub(in crate::serve) fn answers_any(self, status: u16, summary: &'static str) -> Self {
        self.answer(status, summary, Some(("application/json", None)))
    }

    /// It gives something of this media type: `text/event-stream`, for example.
    pub(in crate::serve) fn sends(self, status: u16, summary: &'static str, media: &'static str) -> Self {
        self.answer(status, summary, Some((media, None)))
    }

    /// It gives nothing but its status.
    pub(in crate::serve) fn nothing(self, status: u16, summary: &'static str) -> Self {
        self.answer(status, summary, None)
    }

    /// The same, and says where to go.
    pub(in crate::serve) fn redirects(self, status: u16, summary: &'static str) -> Self {
        self.answer(status, summary, None)
    }

    /// It may end with this problem.
    pub(in crate::serve) fn refuses(self, status: u16, summary: &'static str) -> Self {
        self.answer(status, summary, Some((MEDIA, Some(Shape(problem)))))
    }

    fn answer(mut self, status: u16, summary: &'static str, content: Option<(&'static str, Option<Shape>)>) -> Self {
        self.answers.push(Answer { status, summary, content });
        self
    }

    /// The path as the document has it: `{*rest}` is `{rest}` there.
    fn template(&self) -> String {
        self.path.replace("{*", "{")
    }

    fn data(&self, schemas: &mut SchemaGenerator) -> Value {
        let in_path = self.path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
        let in_path = in_path.map(|name| {
            let name = name.trim_start_matches('*');
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
        });
        let in_query = self.query.iter().map(|(name, summary)| {
            json!({ "name": name, "in": "query", "required": false, "description": summary, "schema": { "type": "string" } })
        });
        let parameters: Vec<Value> = in_path.chain(in_query).collect();
        let mut answers = Map::new();
        for Answer { status, summary, content } in &self.answers {
            let answer = answers.entry(status.to_string()).or_insert_with(|| json!({ "description": summary }));
            if let Some((media, shape)) = content {
                let form = shape.map_or(json!({}), |shape| json!({ "schema": (shape.0)(schemas) }));
                answer["content"][*media] = form; // one of several, where it is said so
            }
        }
        answers.insert("default".into(), json!({ "$ref": "#/components/responses/Problem" }));
        let mut operation = json!({ "summary": self.summary, "parameters": parameters, "responses": answers });
        if let Some(shape) = self.request {
            operation["requestBody"] = json!({ "content": { "application/json": { "schema": (shape.0)(schemas) } } });
        }
        operation
    }
}

/// The document.
pub(super) async fn document() -> Json<Value> {
    Json(made(&super::operations()))
}

fn made(operations: &[Operation]) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut schemas = settings.into_generator();
    let mut paths = Map::new();
    for operation in operations {
        let path = paths.entry(operation.template()).or_insert_with(|| json!({}));
        path[operation.method] = operation.data(&mut schemas);
    }
    paths.entry("/enter").and_modify(|path| path["get"]["security"] = json!([]));
    let problem = problem(&mut schemas);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "fledge serve",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs of one project, as they are and as they happen. Whatever cannot be done is told as problem details (RFC 9457).",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "security": [{ "token": [] }, { "session": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "session": { "type": "apiKey", "in": "cookie", "name": "fledge-7777", "description": "Named for the port" },
            },
            "responses": {
                "Problem": { "description": "It could not be done", "content": { MEDIA: { "schema": problem } } },
            },
        },
    })
}

/// The form of a problem.
fn problem(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({
        "type": "object",
        "properties": {
            "type": { "type": "string" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string" },
            "instance": { "type": "string" },
        },
        "required": ["type", "title", "status", "detail"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_route_is_described_and_what_is_described_is_a_route() {
        // The router shows its paths only so.
        let shown = format!("{:?}", super::super::routes());
        let paths = shown.split('"').filter(|text| text.starts_with('/') && !text.contains("__private"));
        let routes: BTreeSet<String> = paths.map(|path| path.replace("{*", "{")).collect();
        let described: BTreeSet<String> = super::super::operations().iter().map(Operation::template).collect();
        assert_eq!(routes, described);
    }

    #[test]
    fn what_a_schema_refers_to_is_in_the_document() {
        let document = made(&super::super::operations());
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(document.pointer(reference).is_some(), "{reference} is not there");
        }
    }
}
