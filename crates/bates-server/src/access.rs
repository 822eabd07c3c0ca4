//! The one shared secret, and the one place where it is checked. Every front end asks here, none compares by
//! itself. Must never keep, show or log the secret: what is kept is its digest.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Who may use the server: whoever knows the secret, or everybody where there is none.
#[derive(Clone)]
pub struct Access {
    digest: Option<[u8; 32]>,
}

impl Access {
    /// Guarded by `secret`; open to everybody who can connect if there is none.
    pub fn new(secret: Option<&str>) -> Self {
        Self { digest: secret.map(|secret| digest(secret.as_bytes())) }
    }

    /// Whether there is no secret.
    pub fn is_open(&self) -> bool {
        self.digest.is_none()
    }

    /// Whether `given` is the secret. Takes as long for a wrong secret as for the right one: digests have one
    /// length, and all of it is compared. Where there is no secret, everything is admitted.
    pub fn admits(&self, given: &[u8]) -> bool {
        self.digest.is_none_or(|kept| kept.ct_eq(&digest(given)).into())
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_open() { "Access(open)" } else { "Access(guarded)" })
    }
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_secret_is_admitted() {
        let access = Access::new(Some("open sesame"));
        assert!(!access.is_open());
        assert!(access.admits(b"open sesame"));
        for wrong in [&b""[..], b"open", b"open sesame ", b"Open sesame", b"open sesamf", b"\xff"] {
            assert!(!access.admits(wrong), "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn without_a_secret_everybody_is_admitted() {
        let access = Access::new(None);
        assert!(access.is_open() && access.admits(b"") && access.admits(b"anything"));
    }

    #[test]
    fn neither_the_secret_nor_its_digest_is_shown() {
        assert_eq!(format!("{:?}", Access::new(Some("open sesame"))), "Access(guarded)");
    }
}
