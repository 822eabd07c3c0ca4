//! Signatures of Standard Webhooks 1.0: HMAC-SHA256 over id, time and body. Must sign exactly the bytes that are sent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::secret::Secret;

const PREFIX: &str = "whsec_";
/// Length of a decoded secret, from the specification.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// Every request has one signature for each secret.
const SECRETS_MAX: usize = 4;

/// The keys. Each one signs every request.
pub(super) struct Signer(Vec<Zeroizing<Vec<u8>>>);

impl Signer {
    pub(super) fn new(secret: &Secret) -> Result<Self, Box<str>> {
        let keys: Vec<_> = secret.reveal().split_ascii_whitespace().map(decode).collect::<Result<_, _>>()?;
        match keys.len() {
            0 => Err("the secret is empty".into()),
            1..=SECRETS_MAX => Ok(Self(keys)),
            _ => Err(format!("expected at most {SECRETS_MAX} secrets").into()),
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

/// An error must not quote the secret.
fn decode(text: &str) -> Result<Zeroizing<Vec<u8>>, Box<str>> {
    let encoded = text.strip_prefix(PREFIX).ok_or("expected a secret that begins with whsec_")?;
    let bytes = STANDARD.decode(encoded).map_err(|_| "expected base64 after whsec_")?;
    let bytes = Zeroizing::new(bytes);
    if BYTES.contains(&bytes.len()) {
        Ok(bytes)
    } else {
        Err(format!("expected {} to {} bytes after base64 is decoded", BYTES.start(), BYTES.end()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn the_example_of_the_specification_has_its_signature() {
        let signed = Signer::new(&Secret::new(SECRET)).unwrap().sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn the_error_of_an_invalid_secret_does_not_show_it() {
        let short = format!("whsec_{}", STANDARD.encode([7; 23]));
        let long = format!("whsec_{}", STANDARD.encode([7; 65]));
        let many = [SECRET; 5].join(" ");
        for wrong in ["", " ", "hunter2", "whsec_hunter2!", "whsec_", &short, &long, &many] {
            let problem = Signer::new(&Secret::new(wrong)).err().expect(wrong);
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }
}
