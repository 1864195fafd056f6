//! Random texts and the proof key of an authorization request (RFC 7636).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// Random bytes of a verifier, a state and a nonce.
const RANDOM_BYTES: usize = 32;

/// The verifier that stays here and the challenge that the browser carries.
#[derive(Clone)]
pub struct Pkce {
    /// The secret half.
    pub verifier: String,
    /// The SHA-256 of the verifier.
    pub challenge: String,
}

impl Pkce {
    /// Creates a new pair.
    ///
    /// # Errors
    ///
    /// When the system provides no random bytes.
    pub fn new() -> Result<Self, String> {
        Ok(Self::of(random_text()?))
    }

    /// Returns the pair of a verifier.
    pub fn of(verifier: String) -> Self {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
        Self {
            verifier,
            challenge,
        }
    }
}

/// The verifier is a secret.
impl std::fmt::Debug for Pkce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pkce").finish_non_exhaustive()
    }
}

/// Returns 256 random bits as 43 characters of base64url.
///
/// # Errors
///
/// When the system provides no random bytes.
pub fn random_text() -> Result<String, String> {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| format!("the system provides no random bytes: {error}"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_pair_is_computed() {
        let bytes: Vec<u8> = (0..32).map(|number: u32| (1 + 7 * number) as u8).collect();
        let pair = Pkce::of(URL_SAFE_NO_PAD.encode(bytes));
        assert_eq!(pair.verifier, "AQgPFh0kKzI5QEdOVVxjanF4f4aNlJuiqbC3vsXM09o");
        assert_eq!(
            pair.challenge,
            "VyPBtyVuugUHgdQvfU_ZYgHEt112c7GoL_vLptwuHCM"
        );
        assert!(!format!("{pair:?}").contains("AQgP"));
    }

    #[test]
    fn random_texts_are_long_and_differ() {
        assert_eq!(random_text().unwrap().len(), 43);
        assert_ne!(random_text(), random_text());
    }
}
