//! AWS: the chain of credentials, profiles, and signatures of version 4.

mod chain;
mod profiles;
mod sign;
mod sources;

use pinion_message::{Millis, Secret};

pub use chain::{AwsChain, is_configured};
pub use sign::{Signature, sign};

/// The credentials that sign requests.
#[derive(Debug, Clone)]
pub struct AwsCredentials {
    /// The id of the key, which is not secret.
    pub access_key_id: String,
    /// The key.
    pub secret_access_key: Secret,
    /// The token of temporary credentials.
    pub session_token: Option<Secret>,
    /// The end of temporary credentials, in milliseconds since 1970.
    pub expires: Option<Millis>,
}

impl AwsCredentials {
    /// Makes permanent credentials.
    pub fn new(id: &str, secret: &str, token: Option<&str>) -> Self {
        Self {
            access_key_id: id.to_owned(),
            secret_access_key: Secret::from(secret),
            session_token: token.map(Secret::from),
            expires: None,
        }
    }
}
