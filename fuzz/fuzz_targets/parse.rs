//! Fuzzes `parse` and `validate`: a text is refused with a reason, or renders back to itself.
#![no_main]

#[path = "../../crates/bates-pattern/tests/it/claims.rs"]
#[allow(dead_code)]
mod claims;

use std::sync::LazyLock;

use bates_pattern::Pattern;
use libfuzzer_sys::fuzz_target;

/// Patterns of every kind; the first byte of the input picks one.
static PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    let templates = [
        ("{project}-{type}-{seq}", 0),
        ("{seq:base62:6}", 35),
        ("{seq:crockford32:6}{check:mod37-36}", 0),
        ("{seq:crockford32}-{check:mod97}x", 0),
        ("{seq:11}{check:verhoeff}", 100),
        ("{period}/{date:%Y}/{seq}", 4),
        ("{period:yy-yy}/{seq}", 4),
        ("{seq:4}{period:yyyy}", 4),
        ("{date:%y%m%d}{seq:6}", 3),
        ("{date:%j}.{date:%m}-{seq:hex}", 0),
        ("{a:upper}{b:digits:2}№{seq:4}{check:mod97}", 0),
        ("{kind:INV|BRN|X}{seq:[ACGT]:9}-{n:[a-z]:1-3}", 35),
        ("{seq}{date:%Y}", 1),
    ];
    let compile = |(template, choice)| Pattern::compile(template, claims::options(choice)).expect("a good template");
    templates.into_iter().map(compile).collect()
});

fuzz_target!(|input: (u8, &str)| {
    let (choice, text) = input;
    let patterns = &*PATTERNS;
    claims::check_text(&patterns[usize::from(choice) % patterns.len()], text);
});
