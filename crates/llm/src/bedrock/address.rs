//! The endpoint and the region of a request.

use crate::http_request::base_url;
use crate::identity::CloudIdentity;
use crate::request::Request;

const DEFAULT_REGION: &str = "us-east-1";

/// The address of a request and the region that signs it.
pub(super) struct Address {
    pub(super) url: String,
    pub(super) region: String,
}

pub(super) fn address(request: &Request) -> Address {
    let base = base_url(request).trim_end_matches('/');
    let standard = standard_region(base);
    let configured = configured_region(request);
    let has_profile = request.options.environment.get("AWS_PROFILE").is_some();
    let uses_base = standard.is_none() || configured.is_none() && !has_profile;
    let region = arn_region(&request.model.id)
        .or(configured)
        .or_else(|| standard.clone().filter(|_| uses_base))
        .or_else(|| profile_region(request))
        .unwrap_or_else(|| DEFAULT_REGION.to_owned());
    let endpoint = if uses_base && !base.is_empty() {
        base.to_owned()
    } else {
        let domain = if region.starts_with("cn-") {
            "amazonaws.com.cn"
        } else {
            "amazonaws.com"
        };
        format!("https://bedrock-runtime.{region}.{domain}")
    };
    let id = escaped(&request.model.id);
    Address {
        url: format!("{endpoint}/model/{id}/converse-stream"),
        region,
    }
}

/// Reports whether the request goes to a partition for governments, whose models know fewer settings.
pub(super) fn is_government(request: &Request) -> bool {
    let id = request.model.id.to_lowercase();
    address(request).region.starts_with("us-gov-")
        || id.starts_with("us-gov.")
        || id.starts_with("arn:aws-us-gov:")
}

/// The region in the ARN of a model.
fn arn_region(id: &str) -> Option<String> {
    let mut parts = id.split(':');
    let (arn, partition, service, region) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_bedrock = arn == "arn" && partition.starts_with("aws") && service == "bedrock";
    Some(region.to_owned()).filter(|region| is_bedrock && !region.is_empty())
}

fn configured_region(request: &Request) -> Option<String> {
    let environment = &request.options.environment;
    environment
        .get("AWS_REGION")
        .or_else(|| environment.get("AWS_DEFAULT_REGION"))
}

fn profile_region(request: &Request) -> Option<String> {
    match &request.options.identity {
        Some(CloudIdentity::Aws { profile_region, .. }) => profile_region.clone(),
        _ => None,
    }
}

/// The region of a standard endpoint; `None` for any other address.
fn standard_region(base: &str) -> Option<String> {
    let host = base.strip_prefix("https://")?;
    let rest = host.strip_prefix("bedrock-runtime")?;
    let rest = rest
        .strip_prefix("-fips")
        .unwrap_or(rest)
        .strip_prefix('.')?;
    let region = rest
        .strip_suffix(".amazonaws.com")
        .or_else(|| rest.strip_suffix(".amazonaws.com.cn"))?;
    let is_name = region
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    Some(region.to_owned()).filter(|region| is_name && !region.is_empty())
}

/// Escapes an id as one segment of a path.
fn escaped(id: &str) -> String {
    let mut escaped = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_endpoints_are_recognised() {
        for (base, region) in [
            (
                "https://bedrock-runtime.eu-west-1.amazonaws.com",
                Some("eu-west-1"),
            ),
            (
                "https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com",
                Some("us-gov-west-1"),
            ),
            (
                "https://bedrock-runtime.cn-north-1.amazonaws.com.cn",
                Some("cn-north-1"),
            ),
            (
                "https://bedrock-runtime.x.evil.example/.amazonaws.com",
                None,
            ),
            ("https://proxy.example", None),
            ("http://127.0.0.1:1", None),
        ] {
            assert_eq!(standard_region(base).as_deref(), region, "{base}");
        }
        assert_eq!(
            arn_region("arn:aws:bedrock:eu-west-1:1:x/y").as_deref(),
            Some("eu-west-1")
        );
        assert_eq!(
            arn_region("arn:aws-us-gov:bedrock:us-gov-west-1:1:x").as_deref(),
            Some("us-gov-west-1")
        );
        assert_eq!(arn_region("anthropic.claude-v1:0"), None);
        assert_eq!(escaped("a.b-v1:0/é"), "a.b-v1%3A0%2F%C3%A9");
    }
}
