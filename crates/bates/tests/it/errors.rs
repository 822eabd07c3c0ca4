//! `docs/errors.md`: written from the table of the core, and compared with it.

use std::fmt::Write as _;

use bates_core::ErrorCode;

const HEAD: &str = "# Errors

Every error has a stable code: programs compare it, sentences may change. Over HTTP it stands in `code` of an
`application/problem+json` answer, in the Redis protocol behind the first word (`-ERR exhausted: …`), and the commands end
with its exit code. What Redis itself would say (an unknown command, a wrong number of arguments, no integer, `NOAUTH`,
`WRONGPASS`) is said in its words.

`may burn`: whether a number may have been taken that nobody was given. It is then a gap, and never comes again; asking
once more is safe.

This page is written from the table in `crates/bates-core/src/code.rs`: `BATES_TEST_BLESS=1 cargo test -p bates errors`.

| code | HTTP | Redis | exit | may burn | what happened | what to do |
|---|---:|---|---:|---|---|---|
";

#[test]
fn the_page_of_errors_is_the_table_of_the_core() {
    let mut page = HEAD.to_owned();
    for code in ErrorCode::ALL {
        let burn = if code.may_burn() { "yes" } else { "no" };
        let (http, resp, exit) = (code.http_status(), code.resp_prefix(), code.exit_code());
        let (meaning, remedy) = (code.meaning(), code.remedy());
        writeln!(page, "| `{code}` | {http} | `{resp}` | {exit} | {burn} | {meaning} | {remedy} |").unwrap();
    }
    let kept = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
    if std::env::var_os("BATES_TEST_BLESS").is_some() {
        std::fs::write(&kept, &page).unwrap();
    }
    let kept = std::fs::read_to_string(kept).unwrap_or_default();
    assert!(page == kept, "docs/errors.md is not what the table says; BATES_TEST_BLESS=1 writes it");
}
