//! The identity of a cloud that a request carries instead of a key.

use pinion_cloud::Timestamp;
use pinion_cloud::aws::{AwsCredentials, Signature, sign};
use pinion_http::Url;
use pinion_message::Secret;

use crate::http_request::HttpRequest;

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

impl CloudIdentity {
    /// Every secret of the identity, for masks.
    pub fn secrets(&self) -> Vec<Secret> {
        match self {
            Self::Aws {
                keys: Some(keys), ..
            } => {
                let token = keys.session_token.iter();
                token.chain([&keys.secret_access_key]).cloned().collect()
            }
            Self::Google { token, .. } => vec![token.clone()],
            Self::Aws { keys: None, .. } | Self::Workload => Vec::new(),
        }
    }
}

/// A signature that a request needs when it is sent.
#[derive(Debug, Clone)]
pub(crate) struct RequestSigner {
    pub(crate) keys: AwsCredentials,
    pub(crate) region: String,
}

impl RequestSigner {
    /// Returns the headers of the request with its signature at this moment.
    pub(crate) fn signed(&self, request: &HttpRequest, url: &Url) -> Vec<(String, String)> {
        let mut headers = request.headers.clone();
        let signature = Signature {
            method: "POST",
            url,
            headers: &headers,
            body: &request.body,
            region: &self.region,
            service: "bedrock",
            time: Timestamp::now(),
        };
        let added = sign(&signature, &self.keys);
        headers.extend(added);
        headers
    }
}
