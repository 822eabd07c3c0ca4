//! The command line as a user sees it: every transcript of the documentation is run and compared.

#[test]
fn transcripts_hold() {
    let cases = trycmd::TestCases::new();
    cases.case("../../README.md").case("../../docs/*.md").case("tests/cli/*.md");
    cases.env("BATES_PATTERN_KEY", "");
}
