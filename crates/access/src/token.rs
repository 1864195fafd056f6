//! Token strings and their hashes.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pinion_status::{Code, Failure};
use pinion_text::hex;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

/// The fewest characters of a super token that a user chooses.
const MIN_CHOSEN_LENGTH: usize = 16;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenKind {
    /// A user of the hub, with a scope.
    Hub,
    /// A clip that calls the hub.
    Clip,
    /// May do everything.
    Super,
    /// Reads the hub's metrics, and nothing else.
    Metrics,
}

impl TokenKind {
    /// Returns the prefix of tokens of this kind.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Hub => "pnx_",
            Self::Clip => "pnc_",
            Self::Super => "pns_",
            Self::Metrics => "pnm_",
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hub => "hub",
            Self::Clip => "clip",
            Self::Super => "super",
            Self::Metrics => "metrics",
        }
    }
}

impl std::str::FromStr for TokenKind {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let kinds = [Self::Hub, Self::Clip, Self::Super, Self::Metrics];
        let named = kinds.into_iter().find(|kind| kind.as_str() == text);
        named.ok_or_else(|| {
            Failure::invalid(format!(
                "unknown kind of token {text:?}; use hub, clip, super or metrics"
            ))
        })
    }
}

impl fmt::Display for TokenKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A token in plain text. Its `Debug` form does not contain it, and it is compared in constant time.
#[derive(Clone, Eq)]
pub struct Token(Box<str>);

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl Token {
    /// Creates a token of this kind, with 256 random bits from the operating system.
    pub fn random(kind: TokenKind) -> Result<Self, Failure> {
        let mut text = String::from(kind.prefix());
        URL_SAFE_NO_PAD.encode_string(random::<32>()?, &mut text);
        Ok(Self(text.into()))
    }

    /// Accepts a super token that a user chose, which must not be short.
    pub fn chosen(text: &str) -> Result<Self, Failure> {
        let text = text.trim();
        if text.chars().count() < MIN_CHOSEN_LENGTH {
            return Err(Failure::invalid(format!(
                "a super token has at least {MIN_CHOSEN_LENGTH} characters; omit it to create a random one"
            )));
        }
        Ok(Self(text.into()))
    }

    /// Reads a token from a file, a variable or a flag; `None` if it is empty.
    pub fn given(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.into()))
    }

    /// Returns the plain text, to be passed on and not to be stored.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(***)")
    }
}

/// The public id of a token, which lists show and that revokes the token.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenId(Arc<str>);

impl TokenId {
    /// Creates an id of forty random bits: eight letters and digits, without those that look alike.
    pub(crate) fn random() -> Result<Self, Failure> {
        const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        let bytes = random::<8>()?;
        let letters = bytes
            .iter()
            .map(|byte| char::from(LETTERS[usize::from(byte & 31)]));
        Ok(Self(letters.collect::<String>().into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for TokenId {
    fn from(text: &str) -> Self {
        Self(text.trim().into())
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// SHA-256 of a secret. Two of them are compared in constant time.
#[derive(Clone, Copy)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(crate) fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// Returns the first bytes, for lookups. They reveal nothing about the secret.
    pub(crate) fn bucket(&self) -> u64 {
        self.0
            .iter()
            .take(8)
            .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
    }

    pub(crate) fn to_hex(self) -> String {
        hex::encode(&self.0)
    }

    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        Some(Self(hex::decode(text)?.try_into().ok()?))
    }
}

impl PartialEq for Fingerprint {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Fingerprint {}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Fingerprint(***)")
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&self.to_hex())
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::from_hex(&text)
            .ok_or_else(|| serde::de::Error::custom("sha256 is not 64 hexadecimal digits"))
    }
}

/// Random bytes from the operating system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        Failure::new(
            Code::Internal,
            format!("the system cannot provide random numbers: {error}"),
        )
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tokens_are_a_prefix_and_43_characters_of_base64url() {
        for (kind, prefix) in [
            (TokenKind::Hub, "pnx_"),
            (TokenKind::Clip, "pnc_"),
            (TokenKind::Super, "pns_"),
            (TokenKind::Metrics, "pnm_"),
        ] {
            let (one, other) = (Token::random(kind).unwrap(), Token::random(kind).unwrap());
            let body = one.reveal().strip_prefix(prefix).unwrap();
            assert_eq!(body.len(), 43);
            assert_eq!(URL_SAFE_NO_PAD.decode(body).unwrap().len(), 32);
            assert_ne!(one, other);
        }
    }

    #[test]
    fn nothing_secret_is_printed() {
        let token = Token::random(TokenKind::Super).unwrap();
        let fingerprint = Fingerprint::of(token.reveal());
        let printed = format!("{token:?} {fingerprint:?}");
        assert_eq!(printed, "Token(***) Fingerprint(***)");
    }

    #[test]
    fn chosen_super_tokens_are_not_short() {
        assert!(Token::chosen(" fifteen-letters ").is_err());
        assert_eq!(
            Token::chosen(" sixteen-letters! ").unwrap().reveal(),
            "sixteen-letters!"
        );
        assert!(Token::chosen(&"\u{e9}".repeat(15)).is_err());
    }

    #[test]
    fn a_fingerprint_is_sha256() {
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Fingerprint::of("abc").to_hex(), known);
        assert!(Fingerprint::from_hex(known).unwrap() == Fingerprint::of("abc"));
        assert!(Fingerprint::from_hex(&known[1..]).is_none());
        assert!(Fingerprint::from_hex(&known.replace('b', "g")).is_none());
    }

    proptest! {
        #[test]
        fn hexadecimal_reads_back(bytes in prop::collection::vec(any::<u8>(), 0..40), text in "\\PC{0,20}") {
            prop_assert_eq!(hex::decode(&hex::encode(&bytes)), Some(bytes));
            let _ = hex::decode(&text);
        }
    }
}
