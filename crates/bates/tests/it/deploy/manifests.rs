//! The plain manifests equal the output of the chart. With `BATES_TEST_BLESS` set the test writes them.

use std::collections::BTreeMap;
use std::fs;

use super::{helm, root, run};

/// One file per template, without the labels that say that Helm manages the object.
fn expected() -> BTreeMap<String, String> {
    let mut command = helm("plain");
    command.args(["--namespace", "bates", "--kube-version", "1.30"]);
    let text = run(command).unwrap();
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for document in text.split("---\n").filter(|document| document.contains("kind:")) {
        let (source, manifest) = document.split_once('\n').unwrap();
        let name = source.rsplit_once('/').unwrap().1.to_owned();
        let is_helm_label = |line: &&str| line.contains("helm.sh/chart") || line.contains("managed-by: Helm");
        let lines: Vec<&str> = manifest.lines().filter(|line| !is_helm_label(line)).collect();
        let file = files.entry(name).or_insert_with(|| {
            "# Rendered from deploy/helm/bates with ci/plain.yaml. Not written by hand: see docs/deploy.md.\n".to_owned()
        });
        file.extend(["---\n", &lines.join("\n"), "\n"]);
    }
    files
}

#[test]
fn plain_manifests_equal_the_output_of_the_chart() {
    let folder = root().join("deploy/kubernetes");
    let expected = expected();
    if std::env::var_os("BATES_TEST_BLESS").is_some() {
        fs::create_dir_all(&folder).unwrap();
        for entry in fs::read_dir(&folder).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        for (name, text) in &expected {
            fs::write(folder.join(name), text).unwrap();
        }
    }
    let found = fs::read_dir(&folder).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap())
    });
    let found: BTreeMap<String, String> = found.collect();
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, text) in &expected {
        assert!(
            found[name] == *text,
            "deploy/kubernetes/{name} differs from the output of the chart; BATES_TEST_BLESS=1 writes it"
        );
    }
}
