//! Installs the client libraries of other languages that the tests use into folders under `target/`, with the package
//! manager of their language. Must never change the packages of the machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use bates_testkit::clients::{
    HELM, IOREDIS, KUBERNETES_VALIDATE, Library, NODE_REDIS, REDIS_PY, SCHEMATHESIS, helm,
};

/// The file from which pip reads the digest.
const PINNED: &str = "pinned.txt";

/// Installs missing libraries; needs no network if none is missing.
pub(crate) fn prepare() -> Result<()> {
    for library in [REDIS_PY, IOREDIS, NODE_REDIS, HELM, KUBERNETES_VALIDATE, SCHEMATHESIS] {
        // The Helm package exists for one kind of machine only; other machines need their own Helm.
        if library.is_installed() || library == HELM && helm().is_ok() {
            continue;
        }
        let library = &library;
        install(library)
            .with_context(|| format!("cannot install {} {}", library.package, library.version))?;
    }
    Ok(())
}

/// Installs into a temporary folder and renames it when complete, so that an interrupted installation does not count.
fn install(library: &Library) -> Result<()> {
    eprintln!("    installing {} {}, for {}", library.package, library.version, library.interpreter);
    let folder = library.folder();
    let unfinished = folder.with_added_extension("unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    fs::create_dir_all(&unfinished)?;
    if let Some(sha256) = library.sha256 {
        let pinned = format!("{}=={} --hash=sha256:{sha256}\n", library.package, library.version);
        fs::write(unfinished.join(PINNED), pinned)?;
    }
    let mut command = command(library, &unfinished);
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(fs::rename(&unfinished, folder)?)
}

fn command(library: &Library, folder: &Path) -> Command {
    let Library { interpreter, package, version, .. } = library;
    let mut command = match *interpreter {
        "python3" => {
            let mut pip = Command::new(interpreter);
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]);
            pip.arg(folder);
            match library.sha256 {
                Some(_) => pip.args(["--require-hashes", "--requirement"]).arg(folder.join(PINNED)),
                None => pip.arg(format!("{package}=={version}")),
            };
            pip
        }
        _ => {
            let mut npm = Command::new("npm");
            npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]);
            npm.arg(folder).arg(format!("{package}@{version}"));
            npm
        }
    };
    command.stdin(std::process::Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_library_is_installed_at_its_pinned_version() {
        let line = |library| format!("{:?}", command(library, Path::new("there")));
        assert!(line(&REDIS_PY).contains(r#""python3" "-m" "pip""#));
        assert!(line(&REDIS_PY).ends_with(&format!(r#""there" "redis=={}""#, REDIS_PY.version)));
        assert!(line(&HELM).ends_with(r#""--require-hashes" "--requirement" "there/pinned.txt""#));
        assert!(line(&IOREDIS).contains(r#""npm" "install""#));
        assert!(line(&IOREDIS).ends_with(&format!(r#""there" "ioredis@{}""#, IOREDIS.version)));
    }
}
