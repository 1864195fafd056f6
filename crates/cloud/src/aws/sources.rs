//! The servers that give credentials: STS, SSO, containers and instance metadata.

use std::net::IpAddr;
use std::time::Duration;

use pinion_http::{FetchRequest, Redirect, Url};
use pinion_message::now_millis;
use pinion_oauth::{Answer, HttpOptions, send};
use ring::digest;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use super::chain::{DEFAULT_REGION, of_json};
use super::profiles::Section;
use super::sign::hex;
use super::{AwsCredentials, Signature, sign};
use crate::variables::{in_home, read_file};
use crate::{Timestamp, Variables, parse_time};

/// Time limit of a request to a service of AWS.
const SERVICE_TIMEOUT: Duration = Duration::from_secs(15);
/// Time limit of a request to a server of this machine or of its host, which may not exist.
const METADATA_TIMEOUT: Duration = Duration::from_secs(2);
const FORM: &str = "application/x-www-form-urlencoded";
/// The host of the credentials of containers.
const CONTAINER_HOST: &str = "http://169.254.170.2";
/// The addresses of container hosts outside this machine to which a token may be sent without TLS.
const CONTAINER_ADDRESSES: [&str; 3] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];
const INSTANCE_HOST: &str = "http://169.254.169.254";
const METADATA_NAMES: [&str; 4] = ["AccessKeyId", "SecretAccessKey", "Token", "Expiration"];

async fn request(
    method: &str,
    url: &str,
    headers: Vec<(String, String)>,
    body: Option<String>,
    timeout: Duration,
) -> Result<Answer, String> {
    let request = FetchRequest {
        method: method.to_owned(),
        url: url.to_owned(),
        headers,
        body: body.map(Into::into),
        redirect: Redirect::Refuse,
    };
    send(request, HttpOptions { timeout }).await
}

/// Requests temporary credentials of a role, with the credentials `source`.
pub(super) async fn assume_role(
    variables: &dyn Variables,
    source: &AwsCredentials,
    region: Option<&str>,
    role: &str,
    session: &str,
    external: Option<&str>,
) -> Result<AwsCredentials, String> {
    let mut form = vec![
        ("Action", "AssumeRole"),
        ("Version", "2011-06-15"),
        ("RoleArn", role),
        ("RoleSessionName", session),
        ("DurationSeconds", "3600"),
    ];
    form.extend(external.map(|external| ("ExternalId", external)));
    sts(variables, Some(source), region, role, &form).await
}

/// Requests temporary credentials of a role, with a token of another identity provider.
pub(super) async fn assume_role_with_web_identity(
    variables: &dyn Variables,
    region: Option<&str>,
    role: &str,
    session: &str,
    token: &str,
) -> Result<AwsCredentials, String> {
    let form = [
        ("Action", "AssumeRoleWithWebIdentity"),
        ("Version", "2011-06-15"),
        ("RoleArn", role),
        ("RoleSessionName", session),
        ("WebIdentityToken", token),
    ];
    let granted = sts(variables, None, region, role, &form).await;
    // The server may repeat what it received.
    granted.map_err(|error| error.replace(token, "***"))
}

async fn sts(
    variables: &dyn Variables,
    source: Option<&AwsCredentials>,
    region: Option<&str>,
    role: &str,
    form: &[(&str, &str)],
) -> Result<AwsCredentials, String> {
    let configured = || {
        variables
            .get("AWS_REGION")
            .or_else(|| variables.get("AWS_DEFAULT_REGION"))
    };
    let region = region.map(str::to_owned).or_else(configured);
    let region = region.unwrap_or_else(|| DEFAULT_REGION.to_owned());
    let endpoint = variables
        .get("AWS_ENDPOINT_URL_STS")
        .unwrap_or_else(|| format!("https://sts.{region}.amazonaws.com"));
    let url = Url::parse(&endpoint)
        .map_err(|_| format!("The address of STS {endpoint:?} is not a URL."))?;
    let body = Serializer::new(String::new()).extend_pairs(form).finish();
    let mut headers = vec![("content-type".to_owned(), FORM.to_owned())];
    if let Some(source) = source {
        let signature = Signature {
            method: "POST",
            url: &url,
            headers: &headers,
            body: body.as_bytes(),
            region: &region,
            service: "sts",
            time: Timestamp::now(),
        };
        let added = sign(&signature, source);
        headers.extend(added);
    }
    let answer = request("POST", url.as_str(), headers, Some(body), SERVICE_TIMEOUT).await;
    let failed = |reason: &str| format!("AWS did not grant the role {role:?}: {reason}");
    let answer = answer.map_err(|error| failed(&error))?;
    let text = String::from_utf8_lossy(&answer.body);
    if !answer.is_success() {
        let status = answer.status;
        let code = element(&text, "Code").unwrap_or_default();
        let message = element(&text, "Message").unwrap_or_default();
        return Err(failed(&format!("HTTP {status} {code}: {message}")));
    }
    let value = |name: &str| element(&text, name);
    let (Some(id), Some(secret)) = (value("AccessKeyId"), value("SecretAccessKey")) else {
        return Err(failed("its answer has no credentials"));
    };
    let mut found = AwsCredentials::new(&id, &secret, value("SessionToken").as_deref());
    found.expires = value("Expiration").and_then(|end| parse_time(&end));
    Ok(found)
}

/// Returns the text of the first element with this name.
fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let text = text.trim().replace("&lt;", "<").replace("&gt;", ">");
    let text = text.replace("&quot;", "\"").replace("&apos;", "'");
    Some(text.replace("&amp;", "&"))
}

/// Exchanges the cached token of an SSO session for credentials.
pub(super) async fn sso(
    variables: &dyn Variables,
    name: &str,
    profile: &Section,
    session: Option<&Section>,
) -> Result<AwsCredentials, String> {
    let value = |member: &str| {
        let value = profile.get(member).or_else(|| session?.get(member));
        value.ok_or_else(|| format!("The AWS profile \"{name}\" has no \"{member}\"."))
    };
    let region = value("sso_region")?;
    // Profiles without a session cache their token under its address.
    let cached = match profile.get("sso_session") {
        Some(session) => session,
        None => value("sso_start_url")?,
    };
    let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, cached.as_bytes());
    let hash = hex(hash.as_ref());
    let again = || {
        format!(
            "The SSO session of the AWS profile \"{name}\" has expired or does not exist. Run: aws sso login --profile {name}"
        )
    };
    let file = in_home(variables, &format!(".aws/sso/cache/{hash}.json")).ok_or_else(again)?;
    let text = read_file(file).await?.ok_or_else(again)?;
    let token: Value = serde_json::from_str(&text).map_err(|_| again())?;
    let expires = token["expiresAt"].as_str().and_then(parse_time);
    let is_valid = expires.unwrap_or(i64::MAX) > now_millis();
    let access = token["accessToken"]
        .as_str()
        .filter(|_| is_valid)
        .ok_or_else(again)?;
    let endpoint = variables
        .get("AWS_ENDPOINT_URL_SSO")
        .unwrap_or_else(|| format!("https://portal.sso.{region}.amazonaws.com"));
    let address = format!("{}/federation/credentials", endpoint.trim_end_matches('/'));
    let mut url = Url::parse(&address)
        .map_err(|_| format!("The address of SSO {endpoint:?} is not a URL."))?;
    url.query_pairs_mut()
        .append_pair("account_id", value("sso_account_id")?)
        .append_pair("role_name", value("sso_role_name")?);
    let headers = vec![("x-amz-sso_bearer_token".to_owned(), access.to_owned())];
    let answer = request("GET", url.as_str(), headers, None, SERVICE_TIMEOUT).await?;
    if answer.status == 401 {
        return Err(again());
    }
    let failed = |reason: &str| {
        let reason = reason.replace(access, "***");
        format!("AWS SSO gave no credentials for the profile \"{name}\": {reason}")
    };
    let granted = answer.success().map_err(|error| failed(&error))?;
    let names = [
        "accessKeyId",
        "secretAccessKey",
        "sessionToken",
        "expiration",
    ];
    of_json(&granted["roleCredentials"], names).ok_or_else(|| failed("the answer has none"))
}

/// Returns the credentials of a container; `None` outside of one.
pub(super) async fn container(variables: &dyn Variables) -> Result<Option<AwsCredentials>, String> {
    let relative = variables.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    let full = variables.get("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    let url = match (relative, full) {
        (Some(path), _) => format!("{CONTAINER_HOST}{path}"),
        (None, Some(url)) => url,
        (None, None) => return Ok(None),
    };
    if !is_container_address(&url) {
        return Err(format!(
            "AWS_CONTAINER_CREDENTIALS_FULL_URI {url:?} is neither https nor an address of this machine, so no token is sent \
             to it."
        ));
    }
    let mut token = variables.get("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    if let Some(file) = variables.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        token = read_file(file.into())
            .await?
            .map(|text| text.trim().to_owned());
    }
    let headers = token.map(|token| ("authorization".to_owned(), token));
    let answer = request(
        "GET",
        &url,
        headers.into_iter().collect(),
        None,
        METADATA_TIMEOUT,
    )
    .await;
    let failed = |reason: String| format!("The container's credentials cannot be read: {reason}");
    let granted = answer.and_then(|answer| answer.success()).map_err(failed)?;
    let found = of_json(&granted, METADATA_NAMES);
    found
        .map(Some)
        .ok_or_else(|| failed("the answer has none".to_owned()))
}

fn is_container_address(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let is_near = host == "localhost"
        || address.is_ok_and(|address| {
            address.is_loopback() || CONTAINER_ADDRESSES.contains(&address.to_string().as_str())
        });
    url.scheme() == "https" || url.scheme() == "http" && is_near
}

/// Returns the credentials of this instance from its metadata, version 2; `None` on other machines.
pub(super) async fn instance(variables: &dyn Variables) -> Result<Option<AwsCredentials>, String> {
    let disabled = variables.get("AWS_EC2_METADATA_DISABLED");
    if disabled.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let host = variables
        .get("AWS_EC2_METADATA_SERVICE_ENDPOINT")
        .unwrap_or_else(|| INSTANCE_HOST.to_owned());
    let host = host.trim_end_matches('/');
    let lifetime = (
        "x-aws-ec2-metadata-token-ttl-seconds".to_owned(),
        "21600".to_owned(),
    );
    let token_url = format!("{host}/latest/api/token");
    // Another machine does not answer.
    let token = match request("PUT", &token_url, vec![lifetime], None, METADATA_TIMEOUT).await {
        Ok(token) if token.is_success() => String::from_utf8_lossy(&token.body).trim().to_owned(),
        _ => return Ok(None),
    };
    let headers = || vec![("x-aws-ec2-metadata-token".to_owned(), token.clone())];
    let roles = format!("{host}/latest/meta-data/iam/security-credentials/");
    let listed = request("GET", &roles, headers(), None, METADATA_TIMEOUT).await?;
    let text = String::from_utf8_lossy(&listed.body).into_owned();
    let role = text.lines().next().unwrap_or_default().trim();
    if !listed.is_success() || role.is_empty() {
        return Ok(None);
    }
    let url = format!("{roles}{role}");
    let granted = request("GET", &url, headers(), None, METADATA_TIMEOUT).await?;
    let granted = granted
        .success()
        .map_err(|error| format!("The credentials of this instance cannot be read: {error}"))?;
    Ok(of_json(&granted, METADATA_NAMES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_token_goes_to_tls_and_to_this_machine_only() {
        for (url, sound) in [
            ("https://credentials.example/x", true),
            ("http://127.0.0.1:9/x", true),
            ("http://localhost/x", true),
            ("http://[::1]/x", true),
            ("http://169.254.170.2/x", true),
            ("http://[fd00:ec2::23]/x", true),
            ("http://169.254.169.254/x", false),
            ("http://credentials.example/x", false),
            ("file:///etc/passwd", false),
            ("nonsense", false),
        ] {
            assert_eq!(is_container_address(url), sound, "{url}");
        }
    }

    #[test]
    fn elements_of_an_answer_are_found() {
        let xml = "<A><Code>Access&amp;Denied</Code><Message> no &lt;x&gt; </Message></A>";
        assert_eq!(element(xml, "Code").as_deref(), Some("Access&Denied"));
        assert_eq!(element(xml, "Message").as_deref(), Some("no <x>"));
        assert_eq!(element(xml, "None"), None);
    }
}
