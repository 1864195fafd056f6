//! Signatures of version 4: a pure function from a request to the headers that it needs.

use pinion_http::Url;
use ring::{digest, hmac};
use secrecy::ExposeSecret;

use super::AwsCredentials;
use crate::Timestamp;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// A request to sign.
#[derive(Debug, Clone, Copy)]
pub struct Signature<'a> {
    /// The method, in capitals.
    pub method: &'a str,
    /// The address. Its path is signed with its percent escapes escaped once more.
    pub url: &'a Url,
    /// The headers to sign besides `host` and those that the signature adds; names in lower case.
    pub headers: &'a [(String, String)],
    /// The whole body.
    pub body: &'a [u8],
    /// The region in the scope of the signature.
    pub region: &'a str,
    /// The service in the scope of the signature.
    pub service: &'a str,
    /// The time of the request.
    pub time: Timestamp,
}

impl Signature<'_> {
    /// Returns the value of the header `host`.
    fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        match self.url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    fn scope(&self) -> String {
        let (date, region, service) = (self.time.date(), self.region, self.service);
        format!("{date}/{region}/{service}/aws4_request")
    }

    /// Returns the canonical request and the names of its signed headers.
    fn canonical(&self, added: &[(String, String)]) -> (String, String) {
        let mut headers: Vec<(String, String)> = vec![("host".to_owned(), self.host())];
        let all = self.headers.iter().chain(added);
        headers.extend(all.map(|(name, value)| (name.to_ascii_lowercase(), trimmed(value))));
        headers.sort();
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(";");
        let lines: String = headers
            .iter()
            .map(|(name, value)| format!("{name}:{value}\n"))
            .collect();
        let request = format!(
            "{}\n{}\n{}\n{lines}\n{names}\n{}",
            self.method,
            escaped(self.url.path(), true),
            canonical_query(self.url),
            hex(digest::digest(&digest::SHA256, self.body).as_ref()),
        );
        (request, names)
    }

    fn string_to_sign(&self, canonical: &str) -> String {
        let hash = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
        format!(
            "{ALGORITHM}\n{}\n{}\n{hash}",
            self.time.basic(),
            self.scope()
        )
    }
}

/// Signs a request and returns the headers to add: `x-amz-date`, `x-amz-security-token` if there is one, and
/// `authorization`.
pub fn sign(request: &Signature<'_>, credentials: &AwsCredentials) -> Vec<(String, String)> {
    let mut added = vec![("x-amz-date".to_owned(), request.time.basic())];
    if let Some(token) = &credentials.session_token {
        added.push((
            "x-amz-security-token".to_owned(),
            token.expose_secret().to_owned(),
        ));
    }
    let (canonical, names) = request.canonical(&added);
    let text = request.string_to_sign(&canonical);
    let secret = format!("AWS4{}", credentials.secret_access_key.expose_secret());
    let date = request.time.date();
    let parts = [
        date.as_str(),
        request.region,
        request.service,
        "aws4_request",
        &text,
    ];
    let mut key = secret.into_bytes();
    for part in parts {
        let signed = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), part.as_bytes());
        key = signed.as_ref().to_vec();
    }
    let id = &credentials.access_key_id;
    let (scope, signature) = (request.scope(), hex(&key));
    added.push((
        "authorization".to_owned(),
        format!(
            "{ALGORITHM} Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
        ),
    ));
    added
}

/// Removes blanks at the ends and makes inner runs of blanks one.
fn trimmed(value: &str) -> String {
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn canonical_query(url: &Url) -> String {
    let mut pairs: Vec<(String, String)> = url
        .query_pairs()
        .map(|(name, value)| (escaped(&name, false), escaped(&value, false)))
        .collect();
    pairs.sort();
    let pairs: Vec<String> = pairs
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join("&")
}

/// Escapes every byte that is not unreserved (RFC 3986).
fn escaped(text: &str, keep_slashes: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte));
            }
            b'/' if keep_slashes => escaped.push('/'),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::parse_time;

    fn pairs(object: &Value) -> Vec<(String, String)> {
        let members = object.as_object().into_iter().flatten();
        members
            .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
            .collect()
    }

    #[test]
    fn the_published_cases_are_reproduced() {
        let mut checked = 0;
        for line in include_str!("../../tests/vectors/sigv4.jsonl").lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| case[name].as_str().unwrap();
            let url = Url::parse(text("url")).unwrap();
            let headers = pairs(&case["headers"]);
            let request = Signature {
                method: text("method"),
                url: &url,
                headers: &headers,
                body: text("body").as_bytes(),
                region: text("region"),
                service: text("service"),
                time: Timestamp(parse_time(text("time")).unwrap() / 1000),
            };
            let credentials = AwsCredentials::new(
                text("accessKeyId"),
                text("secretAccessKey"),
                case["sessionToken"].as_str(),
            );
            let added = sign(&request, &credentials);
            let name = text("name");
            let unsigned = &added[..added.len() - 1];
            let (canonical, _) = request.canonical(unsigned);
            assert_eq!(canonical, text("canonicalRequest"), "{name}");
            assert_eq!(
                request.string_to_sign(&canonical),
                text("stringToSign"),
                "{name}"
            );
            assert_eq!(added.last().unwrap().1, text("authorization"), "{name}");
            checked += 1;
        }
        assert_eq!(checked, 13);
    }

    proptest! {
        #[test]
        fn a_signature_depends_on_every_part(body in any::<Vec<u8>>(), path in "[a-z:/ é%]{0,20}", value in "[ a-z]{0,12}") {
            let url = Url::parse("http://127.0.0.1:81").unwrap().join(&format!("/m/{path}")).unwrap();
            let headers = [("x-extra".to_owned(), value)];
            let request = Signature {
                method: "POST", url: &url, headers: &headers, body: &body, region: "us-east-1", service: "bedrock",
                time: Timestamp(1_767_323_045),
            };
            let signed = |request: &Signature<'_>, secret: &str| {
                sign(request, &AwsCredentials::new("AK", secret, None)).pop().unwrap().1
            };
            let first = signed(&request, "s");
            prop_assert_eq!(&first, &signed(&request, "s"));
            prop_assert_ne!(&first, &signed(&request, "t"));
            prop_assert_ne!(&first, &signed(&Signature { region: "eu-west-1", ..request }, "s"));
            let other = [body.as_slice(), b"x"].concat();
            prop_assert_ne!(&first, &signed(&Signature { body: &other, ..request }, "s"));
            prop_assert!(!first.contains('\n'));
        }
    }
}
