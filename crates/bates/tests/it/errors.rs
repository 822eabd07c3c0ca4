//! `docs/errors.md` is generated from the error table of the core.

use std::fmt::Write as _;

use bates_core::ErrorCode;

const HEAD: &str = "# Errors

Every error has a stable code. Programs compare the code; messages may change.

| where | the code is |
|---|---|
| HTTP | the field `code` of an `application/problem+json` answer |
| Redis protocol | the second word: `-ERR exhausted: …` |
| commands | printed with the message; the command ends with the exit code below |

Errors that Redis has as well use the words of Redis, without a code: an unknown command, a wrong
number of arguments, a value that is not an integer, `NOAUTH`, `WRONGPASS`.

`may burn` is yes if a number may have been taken without reaching the caller. Such a number is a gap and
is never issued again. Repeating the request is safe.

This page is generated from the table in `crates/bates-core/src/code.rs`:
`BATES_TEST_BLESS=1 cargo test -p bates --test it errors`.

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
