//! The programs in `examples/`, run as a user runs them against a real server, with their output checked.

mod chat;
mod clients;
mod embedded;
mod process;
mod shortener;
mod upload;

use std::fs;
use std::path::{Path, PathBuf};

/// A longer program is hard to copy from.
const LINES_MAX: usize = 60;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// The binary of a Rust example, which `cargo test` builds and `cargo test --test it` does not.
fn example_binary(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples").join(name);
    let modified = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let source = modified(&folder().join(format!("{name}.rs"))).unwrap();
    let is_new = modified(&program).is_some_and(|built| built >= source);
    assert!(is_new, "{} is not built: run `cargo build --examples`", program.display());
    program
}

/// The words after this label, from every line that starts with it.
fn words_after<'a>(output: &'a str, label: &str) -> Vec<&'a str> {
    let lines = output.lines().filter_map(|line| line.strip_prefix(label)?.strip_prefix(' '));
    lines.flat_map(|rest| rest.split(' ')).collect()
}

#[test]
fn every_example_is_short_and_listed_in_the_readme() {
    let readme = fs::read_to_string(folder().join("README.md")).unwrap();
    let files = fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
    let examples: Vec<_> = files.filter(|path| path.extension().is_some_and(|kind| kind != "md")).collect();
    assert!(examples.len() >= 5, "{examples:?}");
    for path in examples {
        let name = path.file_name().unwrap().to_str().unwrap();
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines < LINES_MAX, "{name} has {lines} lines");
        assert!(readme.contains(&format!("[{name}]({name})")), "README.md does not list {name}");
    }
}
