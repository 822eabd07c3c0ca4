//! The Dockerfile, checked as far as possible without building the image.

use super::{read, root};

/// The instructions of the Dockerfile, one per line.
fn instructions() -> Vec<String> {
    let text = read("deploy/Dockerfile");
    let lines: Vec<&str> =
        text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).collect();
    lines.join("\n").replace("\\\n", " ").lines().map(str::to_owned).collect()
}

fn arguments<'a>(instructions: &'a [String], keyword: &'a str) -> impl Iterator<Item = &'a str> {
    instructions.iter().filter_map(move |line| line.strip_prefix(keyword)?.strip_prefix(' ')).map(str::trim)
}

#[test]
fn the_image_is_built_in_stages_and_runs_as_an_unprivileged_user() {
    let all = instructions();
    let bases: Vec<&str> = arguments(&all, "FROM").collect();
    assert_eq!(bases.len(), 2, "a build stage and the final image");
    for base in &bases {
        let image = base.split(' ').next().unwrap();
        let tag = image.rsplit_once(':').map(|(_, tag)| tag);
        assert!(tag.is_some_and(|tag| tag != "latest"), "{image} is not pinned to a version");
    }
    let cargo = read("Cargo.toml");
    let rust = cargo.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(bases[0].starts_with(&format!("rust:{rust}")), "{bases:?}: Bates is built with {rust}");
    assert!(bases[1].contains("distroless"), "no shell, no package manager");
    let last = &all[all.iter().rposition(|line| line.starts_with("FROM")).unwrap()..];
    let user: Vec<&str> = arguments(last, "USER").collect();
    assert_eq!(user, ["65532:65532"], "Kubernetes cannot check from a name that the user is not root");
    assert_eq!(arguments(last, "ENTRYPOINT").collect::<Vec<_>>(), [r#"["/usr/local/bin/bates"]"#]);
    assert!(arguments(last, "RUN").next().is_none(), "the base image has no shell to run it");
    assert_eq!(arguments(last, "EXPOSE").collect::<Vec<_>>(), ["8080 6380"]);
    assert!(arguments(last, "LABEL").any(|labels| labels.contains("org.opencontainers.image.revision")));
}

#[test]
fn the_image_copies_only_built_files_and_no_secret() {
    let all = instructions();
    for word in ["ARG", "ENV", "LABEL"] {
        for value in arguments(&all, word) {
            let value = value.to_lowercase();
            assert!(!["secret", "password", "token"].iter().any(|secret| value.contains(secret)), "{value}");
        }
    }
    let ignored = read(".dockerignore");
    let ignored: Vec<&str> = ignored.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(
        [".git", "**/target", "**/.env", "**/bates-data"].iter().all(|path| ignored.contains(path)),
        "{ignored:?}"
    );
    // Cargo builds a package only if every member of the workspace is present.
    let cargo = read("Cargo.toml");
    let members = cargo.split_once("members = [").unwrap().1.split_once(']').unwrap().0;
    for member in members.split('"').skip(1).step_by(2) {
        assert!(!ignored.iter().any(|path| member.starts_with(path)), "{member} is ignored");
    }
    assert!(root().join("Cargo.lock").is_file(), "--locked needs it");
    let built = all.iter().find(|line| line.contains("cargo build")).unwrap();
    assert!(
        built.contains("--locked") && built.contains("--release") && built.contains("--package bates"),
        "{built}"
    );
    for copied in arguments(&all, "COPY").filter(|copied| copied.contains("--from=build")) {
        let from = copied.split(' ').find(|word| word.starts_with('/')).unwrap();
        assert!(built.contains(from), "{built} does not build {from}");
    }
}
