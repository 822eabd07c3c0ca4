//! `docs/errors.md` is generated from the error table of the core.

use std::fmt::Write as _;

use bates_core::ErrorCode;

const HEAD: &str = "# Errors

Every error has a stable code that programs can compare; the messages may change. HTTP answers have
it in the field `code` of `application/problem+json`, the Redis protocol after the first word
(`-ERR exhausted: …`), and commands end with its exit code. Errors that Redis itself has (an unknown
command, a wrong number of arguments, no integer, `NOAUTH`, `WRONGPASS`) keep the words of Redis.

`may burn`: whether a number may have been taken without reaching the caller. That number is then a
gap and is never issued again; retrying is safe.

This page comes from the table in `crates/bates-core/src/code.rs`:
`BATES_TEST_BLESS=1 cargo test -p bates errors`.

| code | HTTP | Redis | exit | may burn | what happened | what to do |
|---|---:|---|---:|---|---|---|
";

#[test]
fn the_errors_page_matches_the_table_of_the_core() {
    let mut page = HEAD.to_owned();
    for code in ErrorCode::ALL {
        let burn = if code.may_burn() { "yes" } else { "no" };
        let (http, resp, exit) = (code.http_status(), code.resp_prefix(), code.exit_code());
        let (meaning, remedy) = (code.meaning(), code.remedy());
        writeln!(page, "| `{code}` | {http} | `{resp}` | {exit} | {burn} | {meaning} | {remedy} |").unwrap();
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
    if std::env::var_os("BATES_TEST_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(page == committed, "docs/errors.md differs from the table; BATES_TEST_BLESS=1 rewrites it");
}
