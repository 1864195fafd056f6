//! The identity of a cloud that a request carries instead of a key.

use pinion_cloud::aws::AwsCredentials;
use pinion_message::Secret;

/// The identity of a request at a cloud.
#[derive(Debug, Clone)]
pub enum CloudIdentity {
    /// Amazon's. Without keys the request carries a bearer token.
    Aws {
        /// The keys that sign the request.
        keys: Option<AwsCredentials>,
        /// The region of the profile that the environment names.
        profile_region: Option<String>,
    },
    /// Google's application default credentials.
    Google {
        /// The token.
        token: Secret,
        /// The project that is charged, if the credentials name one.
        quota_project: Option<String>,
    },
    /// The key is a token of Anthropic's workload identity.
    Workload,
}
