//! The values of the control bucket, as JSON. Readers ignore members that they do not know and values of another version.

use std::io::{Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use pinion_hub::SharedRoute;
use pinion_proto::hub::ClipRegistration;
use pinion_proto::{Message, Strictness};
use pinion_status::{Code, Failure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The version of the values.
const VERSION: u32 = 1;
/// The largest manifest in its compressed form.
const MAX_MANIFEST: usize = 512 * 1024;
/// The largest manifest that is read.
const MAX_READ_MANIFEST: u64 = 16 << 20;

/// `hub.<id>`: a hub, as long as its lease lasts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubValue {
    pub v: u32,
    pub name: String,
    pub url: String,
    pub version: String,
    /// The lowest and the highest version of conversations.
    pub wire: [i32; 2],
    pub started: i64,
    pub mode: String,
}

/// `a.<alias>`: a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteValue {
    pub v: u32,
    pub hub: String,
    #[serde(default)]
    pub session: String,
    pub provider: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    pub guarded: bool,
    pub web: bool,
    /// The key of the manifest, behind `m.`.
    pub manifest: String,
    pub state: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    pub since: i64,
}

/// `p.<hash of the name>`: a connected provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderValue {
    pub v: u32,
    pub name: String,
    pub hub: String,
    pub session: String,
    /// The identity of the token, which decides who may replace the provider; never the token itself.
    pub token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    pub manages: bool,
    pub since: i64,
}

/// A value of the bucket.
pub trait Value: Serialize + DeserializeOwned {
    /// The version that the value was written with.
    fn version(&self) -> u32;

    fn to_bytes(&self) -> Bytes {
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// Reads a value; `None` if it is damaged or of another version.
    fn read(bytes: &[u8]) -> Option<Self> {
        let value: Self = serde_json::from_slice(bytes).ok()?;
        (value.version() == VERSION).then_some(value)
    }
}

impl Value for HubValue {
    fn version(&self) -> u32 {
        self.v
    }
}

impl Value for RouteValue {
    fn version(&self) -> u32 {
        self.v
    }
}

impl Value for ProviderValue {
    fn version(&self) -> u32 {
        self.v
    }
}

impl HubValue {
    pub const VERSION: u32 = VERSION;
}

impl RouteValue {
    pub fn of(shared: &SharedRoute, hub: &str, manifest: &Manifest, since: i64) -> Self {
        Self {
            v: VERSION,
            hub: hub.to_owned(),
            session: shared.session.clone(),
            provider: shared.provider.to_string(),
            scope: shared.scope.as_ref().map(|scope| scope.as_str().to_owned()),
            guarded: shared.guarded,
            web: shared.registration.has_web,
            manifest: manifest.hash.clone(),
            state: shared.state_name().to_owned(),
            message: shared.status.message.clone(),
            since,
        }
    }

    /// Returns the route that the value describes.
    pub fn shared(&self, alias: &str, registration: Option<Arc<ClipRegistration>>) -> SharedRoute {
        let mut registration =
            registration.map_or_else(ClipRegistration::default, |it| (*it).clone());
        registration.alias = alias.to_owned().into();
        registration.name = registration.alias.clone();
        SharedRoute {
            alias: alias.to_owned(),
            provider: self.provider.as_str().into(),
            scope: self.scope.as_ref().and_then(|scope| scope.parse().ok()),
            guarded: self.guarded,
            status: pinion_clip::Status {
                state: pinion_hub::state_of(&self.state),
                message: self.message.clone(),
            },
            session: self.session.clone(),
            registration,
        }
    }
}

impl ProviderValue {
    pub const VERSION: u32 = VERSION;
}

/// A manifest in its stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub hash: String,
    pub bytes: Bytes,
}

impl Manifest {
    /// Encodes a manifest without its alias, so that equal clips share it.
    pub fn of(registration: &ClipRegistration) -> Result<Self, Failure> {
        let mut registration = registration.clone();
        registration.alias = pinion_proto::Text::default();
        registration.name = pinion_proto::Text::default();
        let json = registration.to_json();
        let digest = Sha256::digest(json.as_bytes());
        let hash: String = digest
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let written = encoder.write_all(json.as_bytes());
        let bytes = written.and_then(|()| encoder.finish()).map_err(|error| {
            Failure::new(
                Code::Internal,
                format!("the manifest cannot be compressed: {error}"),
            )
        })?;
        if bytes.len() > MAX_MANIFEST {
            let message = format!(
                "the manifest has {} bytes after compression; a cluster shares at most {MAX_MANIFEST}",
                bytes.len()
            );
            return Err(Failure::new(Code::ResourceExhausted, message));
        }
        Ok(Self {
            hash,
            bytes: bytes.into(),
        })
    }

    /// Decodes a stored manifest; `None` if it is damaged.
    pub fn read(bytes: &[u8]) -> Option<ClipRegistration> {
        let mut json = Vec::new();
        let decoder = GzDecoder::new(bytes);
        decoder
            .take(MAX_READ_MANIFEST)
            .read_to_end(&mut json)
            .ok()?;
        ClipRegistration::decode_json(&json, Strictness::Lenient).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_come_back_and_equal_ones_share_a_key() {
        let mut registration = ClipRegistration {
            alias: "todo".into(),
            package: "@acme/todo".into(),
            has_web: true,
            ..ClipRegistration::default()
        };
        let one = Manifest::of(&registration).unwrap();
        registration.alias = "other".into();
        let other = Manifest::of(&registration).unwrap();
        assert_eq!(one, other);
        let read = Manifest::read(&one.bytes).unwrap();
        assert_eq!(
            (&*read.alias, &*read.package, read.has_web),
            ("", "@acme/todo", true)
        );
        assert_eq!(Manifest::read(b"x"), None);
    }

    #[test]
    fn values_of_another_version_are_ignored() {
        let value = r#"{"v":1,"name":"a","url":"u","version":"1","wire":[1,1],"started":0,"mode":"full","new":[]}"#;
        assert!(HubValue::read(value.as_bytes()).is_some());
        let later = value.replace("\"v\":1", "\"v\":2");
        assert_eq!(HubValue::read(later.as_bytes()), None);
        assert_eq!(HubValue::read(b"{"), None);
    }
}
