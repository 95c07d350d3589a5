//! The description of the API (OpenAPI 3.1). It is built from the operations that each file of the
//! API describes, and from the types that it reads and writes.

use super::problem::MEDIA;
use axum::Json;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// The schema of a type of the API.
#[derive(Debug, Clone, Copy)]
pub(in crate::serve) struct ApiSchema(fn(&mut SchemaGenerator) -> Schema);

impl ApiSchema {
    /// Returns the schema of a type.
    pub(in crate::serve) fn of<T: JsonSchema>() -> Self {
        Self(SchemaGenerator::subschema_for::<T>)
    }
}

/// A possible answer to a request.
#[derive(Debug, Clone)]
struct Answer {
    status: u16,
    summary: &'static str,
    /// The media type of the content, and its schema if known.
    content: Option<(&'static str, Option<ApiSchema>)>,
    /// A further member of problem details.
    member: Option<(&'static str, ApiSchema)>,
}

/// A method of a path.
#[derive(Debug, Clone)]
pub(in crate::serve) struct ApiOperation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    /// The parameters of the query, with their types if they are more than a text. Those of the
    /// path are derived from the path.
    query: Vec<(&'static str, &'static str, Option<ApiSchema>)>,
    request: Option<ApiSchema>,
    answers: Vec<Answer>,
}

impl ApiOperation {
    fn new(method: &'static str, path: &'static str, summary: &'static str) -> Self {
        Self { method, path, summary, query: Vec::new(), request: None, answers: Vec::new() }
    }

    /// Describes a GET; `path` has the router's syntax.
    pub(in crate::serve) fn get(path: &'static str, summary: &'static str) -> Self {
        Self::new("get", path, summary)
    }

    /// Describes a POST; `path` has the router's syntax.
    pub(in crate::serve) fn post(path: &'static str, summary: &'static str) -> Self {
        Self::new("post", path, summary)
    }

    /// Describes a DELETE; `path` has the router's syntax.
    pub(in crate::serve) fn delete(path: &'static str, summary: &'static str) -> Self {
        Self::new("delete", path, summary)
    }

    /// Adds an optional parameter of the query.
    pub(in crate::serve) fn query(mut self, name: &'static str, summary: &'static str) -> Self {
        self.query.push((name, summary, None));
        self
    }

    /// Adds an optional parameter of the query with this type.
    pub(in crate::serve) fn query_of<T: JsonSchema>(mut self, name: &'static str, summary: &'static str) -> Self {
        self.query.push((name, summary, Some(ApiSchema::of::<T>())));
        self
    }

    /// Adds a request body of this type.
    pub(in crate::serve) fn takes<T: JsonSchema>(mut self) -> Self {
        self.request = Some(ApiSchema::of::<T>());
        self
    }

    /// Adds an answer with a JSON value of this type.
    pub(in crate::serve) fn answers<T: JsonSchema>(self, status: u16, summary: &'static str) -> Self {
        self.answer(status, summary, Some(("application/json", Some(ApiSchema::of::<T>()))))
    }

    /// Adds an answer with JSON of any form.
    pub(in crate::serve) fn answers_any(self, status: u16, summary: &'static str) -> Self {
        self.answer(status, summary, Some(("application/json", None)))
    }

    /// Adds an answer of this media type, such as `text/event-stream`.
    pub(in crate::serve) fn sends(self, status: u16, summary: &'static str, media: &'static str) -> Self {
        self.answer(status, summary, Some((media, None)))
    }

    /// Adds an answer without content.
    pub(in crate::serve) fn nothing(self, status: u16, summary: &'static str) -> Self {
        self.answer(status, summary, None)
    }

    /// Adds a redirect.
    pub(in crate::serve) fn redirects(self, status: u16, summary: &'static str) -> Self {
        self.answer(status, summary, None)
    }

    /// Adds an error with problem details.
    pub(in crate::serve) fn refuses(self, status: u16, summary: &'static str) -> Self {
        self.answer(status, summary, Some((MEDIA, Some(ApiSchema(problem)))))
    }

    /// Adds an error with problem details that may have this member of type `T`.
    pub(in crate::serve) fn refuses_with<T: JsonSchema>(
        self,
        status: u16,
        summary: &'static str,
        member: &'static str,
    ) -> Self {
        let mut operation = self.refuses(status, summary);
        if let Some(answer) = operation.answers.last_mut() {
            answer.member = Some((member, ApiSchema::of::<T>()));
        }
        operation
    }

    fn answer(
        mut self,
        status: u16,
        summary: &'static str,
        content: Option<(&'static str, Option<ApiSchema>)>,
    ) -> Self {
        self.answers.push(Answer { status, summary, content, member: None });
        self
    }

    /// Returns the path in OpenAPI syntax, in which `{*rest}` is `{rest}`.
    fn template(&self) -> String {
        self.path.replace("{*", "{")
    }

    fn data(&self, schemas: &mut SchemaGenerator) -> Value {
        let in_path = self.path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
        let in_path = in_path.map(|name| {
            let name = name.trim_start_matches('*');
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
        });
        let mut parameters: Vec<Value> = in_path.collect();
        for (name, summary, shape) in &self.query {
            let schema = shape.map_or_else(|| json!({ "type": "string" }), |shape| json!((shape.0)(schemas)));
            let parameter =
                json!({ "name": name, "in": "query", "required": false, "description": summary, "schema": schema });
            parameters.push(parameter);
        }
        let mut answers = Map::new();
        for Answer { status, summary, content, member } in &self.answers {
            let answer = answers.entry(status.to_string()).or_insert_with(|| json!({ "description": summary }));
            if let Some((media, shape)) = content {
                let mut form = shape.map_or(json!({}), |shape| json!({ "schema": (shape.0)(schemas) }));
                if let Some((name, shape)) = member {
                    form["schema"]["properties"][*name] = json!((shape.0)(schemas));
                }
                answer["content"][*media] = form; // a status may have several media types
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

/// Returns the document.
pub(super) async fn document() -> Json<Value> {
    Json(made(&super::operations()))
}

fn made(operations: &[ApiOperation]) -> Value {
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
            "description": "The runs of one project, and their events. Errors are problem details (RFC 9457).",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "security": [{ "token": [] }, { "session": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "session": { "type": "apiKey", "in": "cookie", "name": "fledge-7777", "description": "Named after the port" },
            },
            "responses": {
                "Problem": { "description": "Error", "content": { MEDIA: { "schema": problem } } },
            },
        },
    })
}

/// Returns the schema of a problem.
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
        // The router exposes its paths only in its debug output.
        let shown = format!("{:?}", super::super::routes());
        let paths = shown.split('"').filter(|text| text.starts_with('/') && !text.contains("__private"));
        let routes: BTreeSet<String> = paths.map(|path| path.replace("{*", "{")).collect();
        let described: BTreeSet<String> = super::super::operations().iter().map(ApiOperation::template).collect();
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
