//! Call secrets: what some clips want to hear before they answer.

use std::fmt;

use pinion_status::{Code, Failure};

use crate::token::{Fingerprint, hex, random, unhex};

/// How one begins when it is written down.
const FORM: &str = "sha256:";

/// The secret callers of a clip must know, hashed.
#[derive(Clone, PartialEq, Eq)]
pub struct CallSecret {
    salt: [u8; 16],
    hash: Fingerprint,
}

impl CallSecret {
    /// Of this plain text.
    pub fn new(secret: &str) -> Result<Self, Failure> {
        let salt = random::<16>()?;
        let hash = Fingerprint::salted(&salt, secret);
        Ok(Self { salt, hash })
    }

    /// As it was written down; `None` if this is something else, such as a secret in plain text.
    pub fn from_stored(text: &str) -> Option<Self> {
        let (salt, hash) = text.strip_prefix(FORM)?.split_once(':')?;
        let salt = unhex(salt)?.try_into().ok()?;
        let hash = Fingerprint::from_hex(hash)?;
        Some(Self { salt, hash })
    }

    /// To write down: `sha256:<salt>:<hash>`.
    pub fn to_stored(&self) -> String {
        format!("{FORM}{}:{}", hex(&self.salt), self.hash.to_hex())
    }

    /// Whether a caller knows the secret. How long this takes does not depend on how much of it is right.
    pub fn check(&self, presented: &str) -> Result<(), Failure> {
        if Fingerprint::salted(&self.salt, presented) == self.hash {
            Ok(())
        } else {
            Err(Failure::new(Code::PermissionDenied, "invalid clip token"))
        }
    }
}

impl fmt::Debug for CallSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CallSecret(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_wrong_secret_is_refused_in_the_words_peers_know() {
        let secret = CallSecret::new("open sesame").unwrap();
        assert_eq!(secret.check("open sesame"), Ok(()));
        for wrong in ["", "open", "open sesame ", "Open sesame"] {
            let failure = secret.check(wrong).unwrap_err();
            assert_eq!(
                (failure.code(), &*failure.message),
                ("permission_denied", "invalid clip token")
            );
        }
    }

    #[test]
    fn what_is_written_down_is_no_help_to_readers() {
        let (one, other) = (
            CallSecret::new("same").unwrap(),
            CallSecret::new("same").unwrap(),
        );
        assert_ne!(one.to_stored(), other.to_stored());
        assert!(!one.to_stored().contains("same"));
        assert_eq!(format!("{one:?}"), "CallSecret(***)");
        assert!(
            CallSecret::from_stored(&one.to_stored())
                .unwrap()
                .check("same")
                .is_ok()
        );
    }

    proptest! {
        #[test]
        fn only_what_was_written_down_is_read(text in "\\PC{0,120}") {
            if let Some(secret) = CallSecret::from_stored(&text) {
                prop_assert_eq!(secret.to_stored(), text.to_lowercase());
            }
        }
    }
}
