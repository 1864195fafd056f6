//! The secret that callers of a clip must present, stored only as its hash.

use std::fmt;

use pinion_text::hex;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::{ClipError, Code};

/// The SHA-256 of a secret. It is serialized as 64 hexadecimal digits and hidden in `Debug` output.
#[derive(Clone, Copy)]
pub struct CallSecret([u8; 32]);

impl CallSecret {
    /// Hashes a secret; `None` if it is empty, which means that there is none.
    pub fn of(secret: &str) -> Option<Self> {
        (!secret.is_empty()).then(|| Self(Sha256::digest(secret).into()))
    }

    /// Compares a presented secret in constant time.
    pub fn is(&self, given: &str) -> bool {
        let given: [u8; 32] = Sha256::digest(given).into();
        self.0.ct_eq(&given).into()
    }
}

/// Checks the secret `given` against `secret`. Without a secret, every caller passes.
pub(crate) fn check(secret: Option<&CallSecret>, given: Option<&str>) -> Result<(), ClipError> {
    match secret {
        Some(secret) if !secret.is(given.unwrap_or_default()) => {
            Err(ClipError::new(Code::PermissionDenied, "invalid clip token"))
        }
        _ => Ok(()),
    }
}

impl PartialEq for CallSecret {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for CallSecret {}

impl fmt::Debug for CallSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

impl Serialize for CallSecret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for CallSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = hex::decode(&text).and_then(|bytes| bytes.try_into().ok());
        bytes
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom("a SHA-256 has 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_secret_opens() {
        let secret = CallSecret::of("open sesame").unwrap();
        assert!(check(Some(&secret), Some("open sesame")).is_ok());
        for wrong in [None, Some(""), Some("Open sesame"), Some("open sesame ")] {
            let error = check(Some(&secret), wrong).unwrap_err();
            assert_eq!(
                (error.code, &*error.message),
                (Code::PermissionDenied, "invalid clip token")
            );
        }
        assert!(check(None, None).is_ok() && check(None, Some("x")).is_ok());
        assert_eq!(CallSecret::of(""), None);
    }

    #[test]
    fn only_the_hash_is_serialized() {
        let secret = CallSecret::of("abc").unwrap();
        let text = serde_json::to_string(&secret).unwrap();
        assert_eq!(
            text,
            "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\""
        );
        assert_eq!(serde_json::from_str::<CallSecret>(&text).unwrap(), secret);
        assert!(serde_json::from_str::<CallSecret>("\"abc\"").is_err());
        assert_eq!(format!("{secret:?}"), "***");
    }
}
