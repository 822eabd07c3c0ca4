//! The recipe of the image, as far as it can be judged without building it.

use super::{read, root};

/// The instructions, each on one line.
fn instructions() -> Vec<String> {
    let text = read("deploy/Dockerfile");
    let lines: Vec<&str> =
        text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).collect();
    lines.join("\n").replace("\\\n", " ").lines().map(str::to_owned).collect()
}

fn of<'a>(instructions: &'a [String], word: &'a str) -> impl Iterator<Item = &'a str> {
    instructions.iter().filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' ')).map(str::trim)
}

#[test]
fn the_image_is_built_in_stages_and_runs_as_nobody() {
    let all = instructions();
    let bases: Vec<&str> = of(&all, "FROM").collect();
    assert_eq!(bases.len(), 2, "what builds it is not in it");
    for base in &bases {
        let image = base.split(' ').next().unwrap();
        let tag = image.rsplit_once(':').map(|(_, tag)| tag);
        assert!(tag.is_some_and(|tag| tag != "latest"), "{image} is another one tomorrow");
    }
    let cargo = read("Cargo.toml");
    let rust = cargo.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(bases[0].starts_with(&format!("rust:{rust}")), "{bases:?}: Bates is built with {rust}");
    assert!(bases[1].contains("distroless"), "no shell, no package manager");
    let last = &all[all.iter().rposition(|line| line.starts_with("FROM")).unwrap()..];
    let user: Vec<&str> = of(last, "USER").collect();
    assert_eq!(
        user,
        ["65532:65532"],
        "by number: an orchestrator cannot tell from a name that it is not root"
    );
    assert_eq!(of(last, "ENTRYPOINT").collect::<Vec<_>>(), [r#"["/usr/local/bin/bates"]"#]);
    assert!(of(last, "RUN").next().is_none(), "there is nothing to run it with");
    assert_eq!(of(last, "EXPOSE").collect::<Vec<_>>(), ["8080 6380"]);
    assert!(of(last, "LABEL").any(|labels| labels.contains("org.opencontainers.image.revision")));
}

#[test]
fn what_is_copied_is_there_and_no_secret_is() {
    let all = instructions();
    for word in ["ARG", "ENV", "LABEL"] {
        for value in of(&all, word) {
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
    // Every member of the workspace has to be there for cargo to build one.
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
    for copied in of(&all, "COPY").filter(|copied| copied.contains("--from=build")) {
        let from = copied.split(' ').find(|word| word.starts_with('/')).unwrap();
        assert!(built.contains(from), "{from} is not made by {built}");
    }
}
