//! `cargo xtask tidy`: the style rules that a program can check. Reads the files, runs the rules and prints the
//! findings; each rule is a pure function in its own module. With `--bless` it lowers the figures of the ratchets; it
//! must never change another file.

use std::{fs, path::Path, process::ExitCode};

use anyhow::{Context as _, Result};

use finding::Finding;
use tree::{Source, Tree};

mod direction;
mod finding;
mod links;
mod map;
mod markdown;
mod names;
mod opening;
mod phrases;
mod ratchet;
mod size;
mod tree;
mod words;

const RATCHET: &str = "tidy-ratchet.txt";
const PHRASES: &str = "tidy-words.txt";
const MAP: &str = "ARCHITECTURE.md";
/// Other pages that name paths of the code.
const GUIDES: [&str; 2] = ["CONTRIBUTING.md", "docs/faults.md"];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Lower the figures in tidy-ratchet.txt and tidy-words.txt to the current values; never raises one
    #[arg(long)]
    bless: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let root = crate::root();
    let tree = Tree::read(root)?;
    let (sizes, unreadable) = size::measure_all(&tree.sources);
    let mut ratchet = read_or_empty(&root.join(RATCHET))?;
    let mut phrases = read_or_empty(&root.join(PHRASES))?;
    let texts: Vec<&Source> = tree.sources.iter().chain(&tree.documents).collect();
    if arguments.bless {
        ratchet = ratchet::bless(&ratchet, &sizes);
        fs::write(root.join(RATCHET), &ratchet).with_context(|| format!("cannot write {RATCHET}"))?;
        phrases = phrases::bless(&phrases, &texts);
        fs::write(root.join(PHRASES), &phrases).with_context(|| format!("cannot write {PHRASES}"))?;
    }

    let mut findings = unreadable;
    findings.extend(opening::check(&tree.sources));
    findings.extend(words::check(&tree.sources));
    findings.extend(names::check(&tree.sources));
    findings.extend(ratchet::check(RATCHET, &ratchet, &sizes));
    findings.extend(phrases::check(PHRASES, &phrases, &texts));
    findings.extend(markdown::check(&tree.documents));
    findings.extend(direction::check(&direction::read_packages(root)?));
    let map = read_or_empty(&root.join(MAP))?;
    findings.extend(map::check(MAP, &map, &tree.crates(), |path| root.join(path).exists()));
    for page in GUIDES {
        let text = read_or_empty(&root.join(page))?;
        findings.extend(map::check_paths(page, &text, &tree.crates(), |path| root.join(path).exists()));
    }
    findings.extend(links::check(&tree.documents, |path| root.join(path).exists()));
    Ok(report(findings, tree.sources.len()))
}

fn report(mut findings: Vec<Finding>, sources: usize) -> ExitCode {
    if findings.is_empty() {
        println!("tidy: {sources} Rust files, nothing found");
        return ExitCode::SUCCESS;
    }
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} found", findings.len());
    ExitCode::FAILURE
}

/// A missing file counts as empty; the rules decide whether that is an error.
fn read_or_empty(path: &Path) -> Result<String> {
    if !path.exists() {
        return Ok(String::new());
    }
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
