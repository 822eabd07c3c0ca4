//! Fuzzes the template parser: a template is refused at a column, or compiles and keeps its promises.
#![no_main]

#[path = "../../crates/bates-pattern/tests/it/claims.rs"]
#[allow(dead_code)]
mod claims;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &str)| {
    let (choice, template) = input;
    claims::check_template(template, choice);
});
