//! The audit, on server processes and both stores: who took which numbers, whatever way they came and whatever
//! happened to the server.

mod queries;
mod kills;
mod channels;
mod store_failures;

use serde_json::Value;

use super::http::exchange;

/// Two tokens beside the secret that is shared.
pub(super) const TOKENS: [(&str, &str); 3] = [
    ("BATES_SECRET", "shared"),
    ("BATES_TOKENS__REGISTRY__SECRET", "one"),
    ("BATES_TOKENS__CLINIC__SECRET", "two"),
];

/// Asks with a secret and more heads, and answers with the status and the body.
pub(super) fn ask_with(port: u16, secret: &str, heads: &str, what: &str, body: &str) -> (u16, String) {
    // Whoever has none sends none.
    let secret =
        if secret.is_empty() { String::new() } else { format!("Authorization: Bearer {secret}\r\n") };
    let request = format!(
        "{what} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{secret}{heads}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (status, _, body) = exchange(port, request.as_bytes());
    (status, String::from_utf8(body).unwrap())
}

pub(super) fn ask_as(port: u16, secret: &str, what: &str, body: &str) -> (u16, Value) {
    let (status, body) = ask_with(port, secret, "", what, body);
    (status, serde_json::from_str(&body).unwrap_or_default())
}

/// Entries of the audit, all that a query finds, in pages.
pub(super) fn entries(port: u16, query: &str) -> Vec<Value> {
    let (mut found, mut behind): (Vec<Value>, _) = (Vec::new(), String::new());
    loop {
        let (status, page) = ask_as(port, "shared", &format!("GET /v1/audit?limit=500{query}{behind}"), "");
        assert_eq!(status, 200, "{page}");
        found.extend(page["entries"].as_array().unwrap().iter().cloned());
        match page["after"].as_str() {
            Some(after) => behind = format!("&after={}", after.replace('|', "%7C")),
            None => return found,
        }
    }
}

/// Of each entry who, how, and which numbers.
pub(super) fn told(entries: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let each = entries.iter().map(|entry| {
        let [who, how, first, last] = ["who", "how", "first", "last"].map(|field| text(&entry[field]));
        format!("{who} {how} {first}..{last} {}", entry["count"])
    });
    each.collect()
}
