//! Names of clusters and processes, and the subjects and keys made of them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use pinion_status::{Code, Failure};
use sha2::{Digest, Sha256};

/// The longest name of a cluster.
const MAX_NAME_LENGTH: usize = 32;
/// The letters of names that are made of hashes; subjects distinguish upper and lower case, people do not.
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// The number of letters of a hashed name: 130 bits.
const HASHED_LENGTH: usize = 26;

/// The name of a cluster: `[a-z0-9-]{1,32}`. Clusters of different names share servers without seeing each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterName(Arc<str>);

impl ClusterName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a subject of the cluster: `pn.<cluster>.<rest>`.
    pub fn subject(&self, rest: impl fmt::Display) -> String {
        format!("pn.{}.{rest}", self.0)
    }

    /// The control bucket of the hubs.
    pub fn control_bucket(&self) -> Bucket {
        Bucket {
            name: format!("PN_{}", self.0),
            feed: self.subject("kv"),
        }
    }
}

impl Default for ClusterName {
    fn default() -> Self {
        Self("pinion".into())
    }
}

impl FromStr for ClusterName {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let fits = |letter: u8| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if text.is_empty() || text.len() > MAX_NAME_LENGTH || !text.bytes().all(fits) {
            return Err(Failure::invalid(format!(
                "{text:?} is not a name of a cluster; use a-z, 0-9 and -, at most {MAX_NAME_LENGTH} of them"
            )));
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A bucket of keys, and the subject on which its server publishes every change again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    pub name: String,
    pub feed: String,
}

impl Bucket {
    /// The stream that holds the keys.
    pub fn stream(&self) -> String {
        format!("KV_{}", self.name)
    }

    /// The subject that a value of `key` is published to.
    pub fn subject(&self, key: &str) -> String {
        format!("$KV.{}.{key}", self.name)
    }

    /// The subjects of every key.
    pub fn subjects(&self) -> String {
        self.subject(">")
    }

    /// The subjects of the feed.
    pub fn feed_subjects(&self) -> String {
        format!("{}.>", self.feed)
    }

    /// Returns the key of a message of the stream or of its feed.
    pub fn key_of<'a>(&self, subject: &'a str) -> Option<&'a str> {
        let stored = subject
            .strip_prefix("$KV.")
            .and_then(|rest| rest.strip_prefix(self.name.as_str()));
        stored
            .or_else(|| subject.strip_prefix(self.feed.as_str()))
            .and_then(|rest| rest.strip_prefix('.'))
            .map(|key| {
                // The feed repeats the whole subject of the message behind its own prefix.
                let whole = key
                    .strip_prefix("$KV.")
                    .and_then(|rest| rest.strip_prefix(self.name.as_str()));
                whole.and_then(|rest| rest.strip_prefix('.')).unwrap_or(key)
            })
    }
}

/// The id of a process in a cluster, random at each start: `h` and 16 hex digits for a hub.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(Arc<str>);

impl ProcessId {
    /// Creates the id of a hub that has just started.
    pub fn of_new_hub() -> Result<Self, Failure> {
        Ok(Self(format!("h{:016x}", random()?).into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads the id of another process; `None` if it could not be part of a subject.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(['h', 'w'])?;
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let fits = digits.len() == 16 && digits.bytes().all(is_hex);
        fits.then(|| Self(text.into()))
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Returns the name of a hub among the members of its cluster: that of its machine and its port.
pub fn member_name(host: &str, port: u16) -> String {
    let letters = host.to_ascii_lowercase();
    let words: Vec<&str> = letters
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    match words.as_slice() {
        [] => format!("hub-{port}"),
        words => format!("{}-{port}", words.join("-")),
    }
}

/// Returns a random number.
pub(crate) fn random() -> Result<u64, Failure> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| {
        let message = format!("the system has no random numbers: {error}");
        Failure::new(Code::Internal, message)
    })?;
    Ok(u64::from_le_bytes(bytes))
}

/// Returns a name that fits into a key for any text: the first 130 bits of its SHA-256 in base 32.
pub fn hashed(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let bit = |at: usize| usize::from(digest[at / 8] >> (7 - at % 8) & 1);
    (0..HASHED_LENGTH)
        .map(|letter| {
            let index = (0..5).fold(0, |index, at| index << 1 | bit(letter * 5 + at));
            char::from(BASE32[index])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_clusters_fit_into_subjects() {
        for good in ["pinion", "a", "prod-2"] {
            assert_eq!(good.parse::<ClusterName>().unwrap().as_str(), good);
        }
        for bad in ["", "Prod", "a.b", "a b", "a*", ">", &"x".repeat(33)] {
            let refused = bad.parse::<ClusterName>().unwrap_err();
            assert!(refused.message.contains("a-z, 0-9"), "{bad}: {refused}");
        }
    }

    #[test]
    fn keys_are_found_in_stored_and_republished_subjects() {
        let bucket = ClusterName::default().control_bucket();
        assert_eq!(bucket.stream(), "KV_PN_pinion");
        for subject in [
            "$KV.PN_pinion.a.todo",
            "pn.pinion.kv.a.todo",
            "pn.pinion.kv.$KV.PN_pinion.a.todo",
        ] {
            assert_eq!(bucket.key_of(subject), Some("a.todo"), "{subject}");
        }
        for subject in ["$KV.PN_pinion2.a.todo", "pn.pinion.kvf.a.todo", "x"] {
            assert_eq!(bucket.key_of(subject), None, "{subject}");
        }
    }

    #[test]
    fn members_are_named_after_host_and_port() {
        assert_eq!(member_name("My.Box", 9001), "my-box-9001");
        assert_eq!(member_name("..", 1), "hub-1");
    }

    #[test]
    fn hashed_names_are_short_and_differ() {
        // The first bytes of the SHA-256 of "abc" are ba 78 16 bf.
        assert!(hashed("abc").starts_with("xj4bnp"));
        assert_eq!(hashed("abc").len(), 26);
        assert_ne!(hashed("a"), hashed("b"));
    }

    #[test]
    fn ids_of_processes_are_checked() {
        let id = ProcessId::of_new_hub().unwrap();
        assert_eq!(ProcessId::parse(id.as_str()), Some(id));
        for bad in [
            "",
            "h",
            "h.0123456789abcde",
            "x0123456789abcdef",
            "h0123456789abcdeF",
            "h0123456789abcdef0",
        ] {
            assert_eq!(ProcessId::parse(bad), None, "{bad}");
        }
    }
}
