//! The programs in `examples/`, run as a user runs them, against a real server: what they say has to hold.

mod chat;
mod clients;
mod embedded;
mod process;
mod shortener;
mod upload;

use std::fs;
use std::path::{Path, PathBuf};

/// A program that is longer is nothing to copy from.
const LINES_MAX: usize = 60;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// An example in Rust, as cargo built it: `cargo test` does so, `cargo test --test it` does not.
fn built(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples").join(name);
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let source = changed(&folder().join(format!("{name}.rs"))).unwrap();
    let is_new = changed(&program).is_some_and(|built| built >= source);
    assert!(is_new, "{} is not built: run `cargo build --examples`", program.display());
    program
}

/// The words behind a first word, of each line that has it.
fn said<'a>(output: &'a str, first: &str) -> Vec<&'a str> {
    let lines = output.lines().filter_map(|line| line.strip_prefix(first)?.strip_prefix(' '));
    lines.flat_map(|rest| rest.split(' ')).collect()
}

#[test]
fn every_example_is_short_and_told_of() {
    let told = fs::read_to_string(folder().join("README.md")).unwrap();
    let files = fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let examples: Vec<_> = files.filter(|path| path.extension().is_some_and(|kind| kind != "md")).collect();
    assert!(examples.len() >= 5, "{examples:?}");
    for path in examples {
        let name = path.file_name().unwrap().to_str().unwrap();
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines < LINES_MAX, "{name} has {lines} lines");
        assert!(told.contains(&format!("[{name}]({name})")), "README.md says nothing of {name}");
    }
}
