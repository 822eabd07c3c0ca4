//! What the derived document cannot say: the rules of texts in paths, queries and bodies, which operations are public,
//! and the statuses of errors that every operation can answer. Must never describe a rule that the server does not have.

use serde_json::{Map, Value, json};

use super::super::admission::is_probe;
use super::super::openg2p;
use crate::access::LIST_MAX;

const SERIES_NAME: &str = r"^[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*$";
const UUID: &str = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";
/// Texts without a NUL character.
const TEXT: &str = r"^[^\u0000]*$";
const NAME: &str = r"^[^\u0000]+$";
/// Texts without control characters.
const PRINTABLE: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";
/// 1 to 255 printable ASCII characters, in quotes or not, without a space at an end, which HTTP removes from a header.
const KEY: &str = r#"^([!-~]|[!#-~][ -~]{0,253}[!-~]|"[ -~]{0,253}[!#-~]|"[ -~]{1,255}")$"#;
/// The rule of a parameter without a rule of its own in the pattern.
const SCOPE_VALUE: &str = "^[!-~]{1,64}$";

pub(super) fn add(document: &mut Value) {
    let schemas = &mut document["components"]["schemas"];
    describe_schemas(schemas.as_object_mut().expect("the document has schemas"));
    for (path, operations) in document["paths"].as_object_mut().into_iter().flatten() {
        for operation in operations.as_object_mut().into_iter().flatten().map(|(_, operation)| operation) {
            describe_operation(path, operation);
        }
    }
    let mut alias = document["paths"]["/v1/gaps"].clone();
    alias["get"]["operationId"] = json!("list_gaps_by_alias");
    document["paths"]["/api/v1/ids/gaps"] = alias;
}

fn describe_schemas(schemas: &mut Map<String, Value>) {
    separate_series(schemas);
    for (name, schema) in schemas.iter_mut() {
        if name.starts_with("Envelope_") {
            let result = schema["properties"]["response"].take();
            schema["properties"]["response"] = json!({ "oneOf": [{ "type": "null" }, result] });
        }
        // Requests have scopes of this form; answers also have those of an earlier pattern.
        if name.ends_with("Request") && schema["properties"].get("scope").is_some() {
            let scope = &mut schema["properties"]["scope"];
            scope["additionalProperties"] = json!({ "type": "string", "pattern": SCOPE_VALUE });
            scope["maxProperties"] = json!(16);
        }
    }
    describe_tokens(schemas);
    let document = &mut schemas["DocumentRequest"];
    document["properties"]["document"]["type"] = json!(["object", "array", "string", "number", "boolean"]);
    // Only a line of many has a key; a single document has the header.
    document["properties"].as_object_mut().map(|fields| fields.remove("key"));
    for name in ["SeriesDescription", "SeriesPatch"] {
        let fields = &mut schemas[name]["properties"];
        restrict(fields, "promise", &["unique", "ordered", "gapless"]);
        restrict(fields, "order", &["counting", "shuffled"]);
        restrict(fields, "value", &["id", "seq"]);
    }
    let fields = &mut schemas["SeriesDescription"]["properties"];
    fields["pattern"]["minLength"] = json!(1);
    fields["reset"]["pattern"] = json!("^(never|yearly|monthly|daily|fiscal-[0-9]{2}-[0-9]{2})$");
}

fn describe_tokens(schemas: &mut Map<String, Value>) {
    let fields = &mut schemas["TokenGrant"]["properties"];
    let rights = bates_core::Right::ALL.map(bates_core::Right::name);
    fields["may"]["items"]["enum"] = json!(rights);
    let prefix = SERIES_NAME.replace('$', r"\.\*$");
    fields["series"]["items"] = json!({ "type": "string", "anyOf": [
        { "pattern": SERIES_NAME, "maxLength": 64 },
        { "pattern": prefix, "maxLength": 66 },
    ] });
    for list in ["may", "series"] {
        fields[list]["maxItems"] = json!(LIST_MAX);
    }
    let values = &mut fields["scope"]["additionalProperties"];
    values["minItems"] = json!(1);
    values["maxItems"] = json!(LIST_MAX);
    values["items"]["pattern"] = json!(TEXT);
    fields["scope"]["maxProperties"] = json!(LIST_MAX);
    fields["scope"]["propertyNames"]["pattern"] = json!(TEXT);
    let name = &mut schemas["TokenRequest"]["properties"]["name"];
    name["pattern"] = json!(SERIES_NAME);
    name["not"] = json!({ "enum": ["default", "unknown", "configuration", "retention"] });
}

/// A field has one of these values, or also `null` where it may be. Not every schema has every field.
fn restrict(fields: &mut Value, name: &str, values: &[&str]) {
    let Some(field) = fields.get_mut(name) else { return };
    let may_be_null = field["type"].is_array();
    let mut values: Vec<Value> = values.iter().map(|value| json!(value)).collect();
    values.extend(may_be_null.then_some(Value::Null));
    field["enum"] = values.into();
}

/// `Series` has the fields of `SeriesDescription` and more. A description refuses unknown fields, so that `Series` cannot
/// be composed of it and repeats its fields.
fn separate_series(schemas: &mut Map<String, Value>) {
    let fields = schemas["SeriesDescription"]["properties"].clone();
    let own = schemas["Series"]["allOf"].as_array().and_then(|parts| parts.last()).cloned();
    let mut series = own.expect("`Series` adds fields to its description");
    for (name, field) in fields.as_object().into_iter().flatten() {
        series["properties"][name] = field.clone();
    }
    series["description"] = schemas["Series"]["description"].take();
    schemas.insert("Series".to_owned(), series);
}

fn describe_operation(path: &str, operation: &mut Value) {
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default().to_owned();
        for (rule, value) in rules(path, &name) {
            parameter["schema"][rule] = value;
        }
    }
    if let Some(body) = operation.get_mut("requestBody") {
        describe_body(body);
    }
    if is_public(path) {
        operation["security"] = json!([]);
    } else {
        describe_errors(path, operation);
    }
}

/// The rules of a parameter, by keyword of JSON Schema.
fn rules(path: &str, name: &str) -> Vec<(&'static str, Value)> {
    let pattern = |pattern: &str| vec![("pattern", json!(pattern))];
    match (name, path) {
        ("series", _) | ("after", "/v1/series") => {
            vec![("pattern", json!(SERIES_NAME)), ("maxLength", json!(64))]
        }
        ("id_type", _) => pattern("^[a-z][a-z0-9_]{1,63}$"),
        ("id", path) if path.starts_with(openg2p::BASE) => pattern("^[0-9]{1,32}$"),
        ("id" | "lease" | "token" | "name" | "chain", _) => pattern(NAME),
        ("kind", _) => {
            let kinds = bates_core::OperationKind::ALL.map(bates_core::OperationKind::name);
            vec![("enum", json!(kinds))]
        }
        ("date", _) => vec![("format", json!("date"))],
        ("since" | "until", _) => vec![("format", json!("date-time"))],
        ("period" | "who", _) => vec![("pattern", json!(PRINTABLE)), ("maxLength", json!(256))],
        ("state", _) => {
            let states = bates_core::DocumentState::ALL.map(bates_core::DocumentState::name);
            vec![("enum", json!(states))]
        }
        ("Idempotency-Key", _) => vec![("pattern", json!(KEY)), ("type", json!("string"))],
        ("after", "/v1/leases" | "/v1/outbox") => pattern(&format!("^{UUID}$")),
        ("after", "/v1/audit" | "/v1/operations") => pattern(&format!(r"^[0-9]{{1,15}}\|{UUID}$")),
        ("after", "/v1/gaps") => pattern(r"^[a-z][a-z0-9_-]{0,63}\|[!-~ ]*\|[0-9]{1,15}$"),
        ("after", "/v1/operations/chains/{chain}") => pattern("^[0-9]{1,18}$"),
        ("after", _) => pattern(TEXT),
        _ => Vec::new(),
    }
}

/// A body that may be left out is not `null`.
fn describe_body(body: &mut Value) {
    for (_, media) in body["content"].as_object_mut().into_iter().flatten() {
        let Some(choices) = media["schema"].get("oneOf").and_then(Value::as_array).cloned() else { continue };
        let mut choices = choices.into_iter().filter(|choice| choice["type"] != "null");
        if let (Some(only), None) = (choices.next(), choices.next()) {
            media["schema"] = only;
        }
    }
}

fn is_public(path: &str) -> bool {
    is_probe(path) || openg2p::is_public(path)
}

/// Statuses of errors beside `default`, which stands for all others and has the same body.
fn describe_errors(path: &str, operation: &mut Value) {
    let Some(body) = operation["responses"].get("default").map(|response| response["content"].clone()) else {
        return;
    };
    let has_input = operation.get("parameters").is_some() || operation.get("requestBody").is_some();
    let names_thing = path.contains('{') || has_parameter(operation, "series");
    let writes = path.contains("/{series}") || path.ends_with("/ids") || path.ends_with("/id");
    for (status, applies, description) in [
        ("401", true, "The secret is missing or wrong"),
        (
            "403",
            true,
            "The token of the caller lacks the right, or the request names another host or comes from a page of another site",
        ),
        ("404", names_thing, "What the request names does not exist, or the caller may not read it"),
        ("422", has_input, "The request is not valid"),
        ("429", writes, "A limit is reached"),
        ("503", true, "The store failed, or the server is stopping"),
    ] {
        if applies {
            // Admission refuses requests before they reach the contract of OpenG2P, which has bodies of its own.
            let content = if matches!(status, "401" | "403") { problem() } else { body.clone() };
            operation["responses"][status] = json!({ "description": description, "content": content });
        }
    }
}

fn problem() -> Value {
    json!({ "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } })
}

fn has_parameter(operation: &Value, name: &str) -> bool {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    parameters.into_iter().any(|parameter| parameter["name"] == name)
}
