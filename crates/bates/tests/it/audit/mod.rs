//! The audit, on server processes and both stores: it names the caller of every issued number, whichever channel
//! issued it and whether or not the server was killed.

mod channels;
mod kills;
mod queries;
mod store_failures;

use serde_json::Value;

use super::http::exchange;

/// The shared secret and two named tokens.
pub(super) const TOKENS: [(&str, &str); 5] = [
    ("BATES_SECRET", "shared"),
    ("BATES_TOKENS__REGISTRY__SECRET", "one"),
    ("BATES_TOKENS__REGISTRY__MAY", "read,take,define"),
    ("BATES_TOKENS__CLINIC__SECRET", "two"),
    ("BATES_TOKENS__CLINIC__MAY", "read,take"),
];

/// Sends a request with a secret and extra headers, and returns the status and the body.
pub(super) fn ask_with(port: u16, secret: &str, headers: &str, request: &str, body: &str) -> (u16, String) {
    let authorization =
        if secret.is_empty() { String::new() } else { format!("Authorization: Bearer {secret}\r\n") };
    let message = format!(
        "{request} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{authorization}{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (status, _, body) = exchange(port, message.as_bytes());
    (status, String::from_utf8(body).unwrap())
}

pub(super) fn ask_as(port: u16, secret: &str, request: &str, body: &str) -> (u16, Value) {
    let (status, body) = ask_with(port, secret, "", request, body);
    (status, serde_json::from_str(&body).unwrap_or_default())
}

/// All audit entries that match a query, read page by page.
pub(super) fn entries(port: u16, query: &str) -> Vec<Value> {
    let (mut found, mut next_page): (Vec<Value>, _) = (Vec::new(), String::new());
    loop {
        let (status, page) =
            ask_as(port, "shared", &format!("GET /v1/audit?limit=500{query}{next_page}"), "");
        assert_eq!(status, 200, "{page}");
        found.extend(page["entries"].as_array().unwrap().iter().cloned());
        match page["after"].as_str() {
            Some(after) => next_page = format!("&after={}", after.replace('|', "%7C")),
            None => return found,
        }
    }
}

/// Each entry as `caller channel first..last count`.
pub(super) fn summaries(entries: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let each = entries.iter().map(|entry| {
        let [caller, channel, first, last] = ["who", "how", "first", "last"].map(|field| text(&entry[field]));
        format!("{caller} {channel} {first}..{last} {}", entry["count"])
    });
    each.collect()
}
