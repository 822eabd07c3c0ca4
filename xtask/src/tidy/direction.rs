//! Rule: dependencies point one way. Owns the table of allowed dependencies between the crates of this
//! workspace. Must never judge external crates; `deny.toml` does.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::finding::Finding;
use crate::cargo;

const TESTKIT: &str = "bates-testkit";

/// A crate, and the crates it may depend on. Adapters do not see each other; front ends do not see adapters.
const MAY_SEE: [(&str, &[&str]); 15] = [
    ("bates-pattern", &[]),
    ("bates-process", &[]),
    ("bates-core", &["bates-pattern", "bates-process"]),
    ("bates-connect", &[]),
    ("bates-api", &["bates-pattern"]),
    ("bates-sqlite", &["bates-core", "bates-pattern"]),
    ("bates-postgres", &["bates-connect", "bates-core", "bates-pattern"]),
    ("bates-redis", &["bates-api", "bates-core", "bates-pattern"]),
    ("bates-sinks", &["bates-connect", "bates-core", "bates-pattern"]),
    ("bates-server", &["bates-api", "bates-core", "bates-pattern"]),
    ("bates-prefetch", &["bates-pattern", "bates-process"]),
    ("bates-client", &["bates-api", "bates-pattern", "bates-prefetch", "bates-process"]),
    (
        "bates",
        &[
            "bates-pattern",
            "bates-api",
            "bates-core",
            "bates-sqlite",
            "bates-postgres",
            "bates-redis",
            "bates-sinks",
            "bates-server",
            "bates-prefetch",
            "bates-client",
        ],
    ),
    (TESTKIT, &["bates-core", "bates-pattern"]),
    ("xtask", &[TESTKIT]),
];

/// A member of the workspace.
pub(super) struct Package {
    name: String,
    manifest: String,
    manifest_text: String,
    dependencies: Vec<Dependency>,
}

struct Dependency {
    name: String,
    /// Tests may use the testkit, and features of their own crate, in addition to the table.
    is_dev: bool,
}

pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    packages.iter().flat_map(|package| check_one(package, packages)).collect()
}

fn check_one(package: &Package, packages: &[Package]) -> Vec<Finding> {
    let Some((_, allowed)) = MAY_SEE.iter().find(|(name, _)| *name == package.name) else {
        let message = format!("`{}` is missing from the table in xtask/src/tidy/direction.rs", package.name);
        return vec![Finding::new(&package.manifest, 1, message)];
    };
    let is_ours = |name: &str| {
        MAY_SEE.iter().any(|(ours, _)| *ours == name) || packages.iter().any(|package| package.name == name)
    };
    let is_for_tests = |name: &str| name == TESTKIT || name == package.name;
    let is_allowed = |dependency: &Dependency| {
        allowed.contains(&dependency.name.as_str()) || dependency.is_dev && is_for_tests(&dependency.name)
    };
    let ours = package.dependencies.iter().filter(|dependency| is_ours(&dependency.name));
    let wrong = ours.filter(|dependency| !is_allowed(dependency));
    wrong.map(|dependency| wrong_dependency(package, dependency, allowed)).collect()
}

fn wrong_dependency(package: &Package, dependency: &Dependency, allowed: &[&str]) -> Finding {
    let allowed = if allowed.is_empty() { "no crate of ours".to_owned() } else { allowed.join(", ") };
    let message = format!("`{}` depends on `{}`; it may see {allowed}", package.name, dependency.name);
    let line = package.manifest_text.lines().position(|line| line.contains(&dependency.name));
    Finding::new(&package.manifest, line.map_or(1, |index| index + 1), message)
}

/// Asks cargo, because a manifest alone hides targets, features and renamed packages.
pub(super) fn read_packages(root: &Path) -> Result<Vec<Package>> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps", "--offline"];
    let output = cargo::command().args(arguments).output().context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    let mut packages = parse(&output.stdout)?;
    for package in &mut packages {
        package.manifest_text = fs::read_to_string(&package.manifest)
            .with_context(|| format!("cannot read {}", package.manifest))?;
        if let Ok(relative) = Path::new(&package.manifest).strip_prefix(root) {
            package.manifest = relative.display().to_string();
        }
    }
    Ok(packages)
}

fn parse(metadata: &[u8]) -> Result<Vec<Package>> {
    let metadata: Value = serde_json::from_slice(metadata).context("cargo metadata is not JSON")?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    packages.iter().map(parse_package).collect()
}

fn parse_package(package: &Value) -> Result<Package> {
    let text = |value: &Value| value.as_str().map(str::to_owned).context("cargo metadata is not as expected");
    let dependencies = package["dependencies"].as_array().context("a package without dependencies")?;
    let dependency = |dependency: &Value| {
        Ok(Dependency { name: text(&dependency["name"])?, is_dev: dependency["kind"] == "dev" })
    };
    Ok(Package {
        name: text(&package["name"])?,
        manifest: text(&package["manifest_path"])?,
        manifest_text: String::new(),
        dependencies: dependencies.iter().map(dependency).collect::<Result<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages for one package with one dependency of a kind.
    fn messages(name: &str, dependency: &str, kind: &str) -> Vec<String> {
        let metadata = format!(
            r#"{{"packages": [{{"name": "{name}", "manifest_path": "crates/{name}/Cargo.toml",
                "dependencies": [{{"name": "{dependency}", "kind": {kind}, "target": null}}]}}]}}"#
        );
        let mut packages = parse(metadata.as_bytes()).unwrap();
        packages[0].manifest_text = format!("[package]\n[dependencies]\n{dependency}.workspace = true\n");
        check(&packages).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_dependency_against_the_direction_is_found_on_its_line() {
        let found = messages("bates-pattern", "bates-core", "null");
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/bates-pattern/Cargo.toml:3: "), "{}", found[0]);
    }

    #[test]
    fn a_build_dependency_counts_like_any_other() {
        assert_eq!(messages("bates-server", "bates-sqlite", r#""build""#).len(), 1);
    }

    #[test]
    fn only_tests_may_use_the_testkit() {
        assert_eq!(messages("bates-core", TESTKIT, r#""dev""#), [""; 0]);
        assert_eq!(messages("bates-core", TESTKIT, "null").len(), 1);
        assert_eq!(messages("bates", TESTKIT, "null").len(), 1);
    }

    #[test]
    fn tests_may_use_features_of_their_own_crate() {
        assert_eq!(messages("bates-sqlite", "bates-sqlite", r#""dev""#), [""; 0]);
        assert_eq!(messages("bates-sqlite", "bates-sqlite", "null").len(), 1);
    }

    /// Planted bugs are for tests: `cargo build` and `cargo install` must not include them.
    #[test]
    fn a_shipped_build_has_no_planted_bugs() {
        assert!(tree(&["--edges", "features"]).contains("planted-bugs"));
        assert!(!tree(&["--edges", "features,no-dev"]).contains("planted-bugs"));
    }

    /// A program that embeds Bates does not use the default features.
    #[test]
    fn an_embedding_program_builds_no_dependency_of_the_binary() {
        let crates = |features: &[&str]| {
            let tree = tree(&[&["--edges", "normal,build", "--prefix", "none"], features].concat());
            let names = tree.lines().filter_map(|line| line.split(' ').next());
            names.map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
        };
        let (whole, embedded) = (crates(&[]), crates(&["--no-default-features"]));
        for heavy in ["axum", "clap", "hyper", "redis", "reqwest", "rustls", "tokio-postgres"] {
            assert!(whole.contains(heavy), "the binary no longer depends on {heavy}: update this list");
            assert!(!embedded.contains(heavy), "{heavy}");
        }
        let ours: Vec<_> = embedded.iter().filter(|name| name.starts_with("bates")).collect();
        assert_eq!(
            ours,
            ["bates", "bates-core", "bates-pattern", "bates-prefetch", "bates-process", "bates-sqlite"]
        );
    }

    fn tree(arguments: &[&str]) -> String {
        let command = ["tree", "--offline", "--package", "bates"];
        let output = cargo::command().args(command).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_crate_outside_the_table_is_found() {
        assert!(messages("bates-extra", "serde", "null")[0].contains("is missing from the table"));
    }

    #[test]
    fn allowed_and_external_dependencies_pass() {
        assert_eq!(messages("bates-core", "bates-pattern", "null"), [""; 0]);
        assert_eq!(messages("bates-pattern", "thiserror", "null"), [""; 0]);
        assert_eq!(messages("bates", "bates-server", "null"), [""; 0]);
    }

    #[test]
    fn the_table_allows_no_mutual_dependency() {
        let sees =
            |from: &str, to: &str| MAY_SEE.iter().any(|(name, seen)| *name == from && seen.contains(&to));
        for (from, seen) in MAY_SEE {
            assert!(seen.iter().all(|to| !sees(to, from)), "{from}");
        }
    }
}
