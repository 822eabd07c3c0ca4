//! Signatures of Standard Webhooks 1.0: HMAC-SHA256 over id, time and body. Must never sign what is not sent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::secret::Secret;

const PREFIX: &str = "whsec_";
/// Length of a secret, from the specification.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// Each costs every request a signature.
const SECRETS_MAX: usize = 4;

/// Signs with every key.
pub(super) struct Signer(Vec<Zeroizing<Vec<u8>>>);

impl Signer {
    pub(super) fn new(secret: &Secret) -> Result<Self, Box<str>> {
        let keys: Vec<_> = secret.reveal().split_ascii_whitespace().map(key).collect::<Result<_, _>>()?;
        match keys.len() {
            0 => Err("it is empty".into()),
            1..=SECRETS_MAX => Ok(Self(keys)),
            _ => Err(format!("at most {SECRETS_MAX} secrets").into()),
        }
    }

    /// The header `webhook-signature`: a signature for each secret, with spaces between them.
    pub(super) fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let signatures = self.0.iter().map(|key| {
            let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
            mac.update(format!("{id}.{timestamp}.").as_bytes());
            mac.update(body);
            format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
        });
        signatures.collect::<Vec<_>>().join(" ")
    }
}

/// The problems must not quote the secret.
fn key(text: &str) -> Result<Zeroizing<Vec<u8>>, Box<str>> {
    let encoded = text.strip_prefix(PREFIX).ok_or("a secret begins with whsec_")?;
    let bytes = STANDARD.decode(encoded).map_err(|_| "what follows whsec_ is base64, and this is not")?;
    let bytes = Zeroizing::new(bytes);
    if BYTES.contains(&bytes.len()) {
        Ok(bytes)
    } else {
        Err(format!("a secret has {} to {} bytes before base64", BYTES.start(), BYTES.end()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    /// The example that the libraries of the specification share.
    #[test]
    fn the_example_of_the_specification_is_signed_as_there() {
        let signed = Signer::new(&Secret::new(SECRET)).unwrap().sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_that_cannot_be_one_is_refused_without_showing_it() {
        let short = format!("whsec_{}", STANDARD.encode([7; 23]));
        let long = format!("whsec_{}", STANDARD.encode([7; 65]));
        let many = [SECRET; 5].join(" ");
        for wrong in ["", " ", "hunter2", "whsec_hunter2!", "whsec_", &short, &long, &many] {
            let problem = Signer::new(&Secret::new(wrong)).err().expect(wrong);
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }
}
