//! The chains of AWS and Google and the workload identity of Anthropic, against servers on loopback.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a vector that does not read is a failed test"
)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use futures_util::future::BoxFuture;
use pinion_cloud::aws::AwsChain;
use pinion_cloud::{CommandRunner, anthropic, google};
use pinion_message::now_millis;
use ring::signature::{self, KeyPair};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

/// A request: its first line, its headers in lower case, its body.
type Seen = (String, BTreeMap<String, String>, String);

/// Answers by path.
struct Server {
    base: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    fn start(answer: fn(&str) -> (u16, String)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or_default() == 0 {
                    continue;
                }
                let mut headers = BTreeMap::new();
                loop {
                    let mut header = String::new();
                    reader.read_line(&mut header).unwrap();
                    let Some((name, value)) = header.trim_end().split_once(": ") else {
                        break;
                    };
                    headers.insert(name.to_owned(), value.to_owned());
                }
                let length = headers
                    .get("content-length")
                    .map_or(0, |length| length.parse().unwrap());
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let line = line.trim().trim_end_matches(" HTTP/1.1").to_owned();
                let (status, text) = answer(&line);
                shared
                    .lock()
                    .unwrap()
                    .push((line, headers, String::from_utf8(body).unwrap()));
                let head = format!(
                    "HTTP/1.1 {status} S\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    text.len()
                );
                let _ = (&stream).write_all(format!("{head}{text}").as_bytes());
            }
        });
        Self { base, seen }
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn aws(line: &str) -> (u16, String) {
    let keys = |id: &str, token: &str| {
        json!({"AccessKeyId": id, "SecretAccessKey": "sk", "Token": token, "Expiration": "2099-01-01T00:00:00Z"}).to_string()
    };
    match line {
        "POST /" => (
            200,
            "<AssumeRoleResponse><Credentials><AccessKeyId>AKSTS</AccessKeyId><SecretAccessKey>s</SecretAccessKey>\
             <SessionToken>tok9</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResponse>"
                .to_owned(),
        ),
        "GET /federation/credentials?account_id=123456789012&role_name=Dev" => (
            200,
            json!({"roleCredentials": {"accessKeyId": "AKSSO", "secretAccessKey": "s", "sessionToken": "tok5", "expiration": 4_070_908_800_000_i64}})
                .to_string(),
        ),
        "GET /creds" => (200, keys("AKECS", "tok4")),
        "PUT /latest/api/token" => (200, "imds-token".to_owned()),
        "GET /latest/meta-data/iam/security-credentials/" => (200, "my-role\n".to_owned()),
        "GET /latest/meta-data/iam/security-credentials/my-role" => (200, keys("AKEC2", "tok6")),
        _ => (404, String::new()),
    }
}

/// Prints what `HOME/proc.sh` prints.
struct Commands;

impl CommandRunner for Commands {
    fn run(&self, command: String) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move {
            if !command.ends_with("/proc.sh") {
                return Err("it does not exist".to_owned());
            }
            Ok(json!({"Version": 1, "AccessKeyId": "AKPROC", "SecretAccessKey": "s", "SessionToken": "tok3"}).to_string())
        })
    }
}

/// A home directory with the recorded files.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    std::fs::create_dir_all(at(".aws/sso/cache")).unwrap();
    for name in ["config", "credentials"] {
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/vectors/aws-home")
            .join(name);
        let text = std::fs::read_to_string(recorded).unwrap();
        let text = text.replace("HOME", home.path().to_str().unwrap());
        std::fs::write(at(&format!(".aws/{name}")), text).unwrap();
    }
    std::fs::write(at("web.jwt"), "WEB.JWT\n").unwrap();
    // sha1 of "my".
    let cache = ".aws/sso/cache/8d2e4a1c.json";
    let hash = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, b"my");
    let name: String = hash
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let cache = cache.replace("8d2e4a1c", &name);
    std::fs::write(
        at(&cache),
        r#"{"accessToken":"ssotok","expiresAt":"2099-01-01T00:00:00Z"}"#,
    )
    .unwrap();
    home
}

/// The environment of a case: its own variables, this home, and the server for side requests.
fn environment(case: &Value, home: &Path, base: &str) -> BTreeMap<String, String> {
    let mut variables: BTreeMap<String, String> = [
        ("HOME", home.to_str().unwrap()),
        ("AWS_ENDPOINT_URL_STS", base),
        ("AWS_ENDPOINT_URL_SSO", base),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    for (name, value) in case["environment"].as_object().unwrap() {
        let value = value
            .as_str()
            .unwrap()
            .replace("HOME", home.to_str().unwrap());
        variables.insert(name.clone(), value.replace("BASE", base));
    }
    variables
}

#[tokio::test]
async fn every_recorded_case_finds_its_credentials() {
    let mut checked = 0;
    for line in include_str!("vectors/credentials.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let name = case["name"].as_str().unwrap();
        if case["used"].get("bearer").is_some() {
            // The caller prefers a bearer token to the chain.
            continue;
        }
        let (home, server) = (home(), Server::start(aws));
        let variables = environment(&case, home.path(), &server.base);
        let variables = move |name: &str| variables.get(name).cloned();
        let chain = AwsChain {
            variables: &variables,
            profile: case["options"]["env"]["AWS_PROFILE"].as_str(),
            commands: Arc::new(Commands),
        };
        let region = chain.profile_region().await;
        let found = match &region {
            Err(error) => Err(error.clone()),
            Ok(_) => chain.credentials().await,
        };
        match (found, case["error"].as_str()) {
            (Ok(found), None) => {
                let used = &case["used"];
                assert_eq!(
                    found.access_key_id,
                    used["accessKeyId"].as_str().unwrap(),
                    "{name}"
                );
                let token = found
                    .session_token
                    .as_ref()
                    .map(ExposeSecret::expose_secret);
                assert_eq!(token, used["securityToken"].as_str(), "{name}");
                let named = case["environment"].get("AWS_PROFILE").is_some();
                if named && case["environment"].get("AWS_REGION").is_none() {
                    assert_eq!(
                        region.unwrap().as_deref(),
                        used["region"].as_str(),
                        "{name}"
                    );
                }
            }
            (Err(error), Some(expected)) => assert!(error.starts_with(expected), "{name}: {error}"),
            (found, expected) => panic!("{name}: {found:?}, expected {expected:?}"),
        }
        compare_side_requests(name, &case, &server.seen());
        checked += 1;
    }
    assert_eq!(checked, 16);
}

fn compare_side_requests(name: &str, case: &Value, seen: &[Seen]) {
    let expected = case["sideRequests"].as_array().unwrap();
    assert_eq!(seen.len(), expected.len(), "{name}: {seen:?}");
    for (expected, (line, headers, body)) in expected.iter().zip(seen) {
        let (method, path) = (
            expected["method"].as_str().unwrap(),
            expected["path"].as_str().unwrap(),
        );
        assert_eq!(line, &format!("{method} {path}"), "{name}");
        for (header, value) in expected["headers"].as_object().unwrap() {
            let sent = headers
                .get(header)
                .unwrap_or_else(|| panic!("{name}: {header}"));
            let value = value.as_str().unwrap();
            match value.split_once("DATE") {
                Some((before, after)) => {
                    let scope = after.split(',').next().unwrap();
                    assert!(
                        sent.starts_with(before) && sent.contains(scope),
                        "{name}: {sent}"
                    );
                }
                None => assert_eq!(sent, value, "{name}: {header}"),
            }
        }
        let recorded = expected["body"].as_str().unwrap_or_default();
        let parts: Vec<&str> = recorded.split("<generated>").collect();
        let [first, rest @ ..] = parts.as_slice() else {
            continue;
        };
        assert!(body.starts_with(first), "{name}: {body}");
        if let [last] = rest {
            assert!(body.ends_with(last), "{name}: {body}");
        } else {
            assert_eq!(body, first, "{name}");
        }
    }
}

#[tokio::test]
async fn an_instance_gives_its_credentials_after_all_other_sources() {
    let (home, server) = (home(), Server::start(aws));
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in [
        ("HOME", home.path().to_str().unwrap()),
        ("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent"),
        ("AWS_CONFIG_FILE", "/nonexistent"),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", &server.base),
    ] {
        variables.insert(name.to_owned(), value.to_owned());
    }
    let variables = move |name: &str| variables.get(name).cloned();
    let chain = AwsChain {
        variables: &variables,
        profile: None,
        commands: Arc::new(Commands),
    };
    let found = chain.credentials().await.unwrap();
    assert_eq!(found.access_key_id, "AKEC2");
    assert!(found.expires.unwrap() > now_millis());
    let seen = server.seen();
    assert_eq!(seen[0].1["x-aws-ec2-metadata-token-ttl-seconds"], "21600");
    assert_eq!(seen[2].1["x-aws-ec2-metadata-token"], "imds-token");
}

#[tokio::test]
async fn refusals_name_the_profile_and_hold_no_token() {
    fn refused(line: &str) -> (u16, String) {
        match line {
            "POST /" => (
                403,
                "<E><Code>AccessDenied</Code><Message>no WEB.JWT</Message></E>".to_owned(),
            ),
            _ => (500, json!({"message": "no ssotok"}).to_string()),
        }
    }
    for (profile, part) in [
        (
            "web",
            "AWS did not grant the role \"arn:aws:iam::123456789012:role/w\": HTTP 403 AccessDenied: no ***",
        ),
        (
            "sso",
            "AWS SSO gave no credentials for the profile \"sso\": HTTP 500: no ***",
        ),
        ("nope", "The AWS profile \"nope\" has no credentials."),
    ] {
        let (home, server) = (home(), Server::start(refused));
        let variables = environment(&json!({"environment": {}}), home.path(), &server.base);
        let variables = move |name: &str| variables.get(name).cloned();
        let chain = AwsChain {
            variables: &variables,
            profile: Some(profile),
            commands: Arc::new(Commands),
        };
        let error = chain.credentials().await.unwrap_err();
        assert!(error.starts_with(part), "{error}");
    }
}

fn google_server(line: &str) -> (u16, String) {
    match line {
        "POST /token" => (
            200,
            json!({"access_token": "ya29.TOKEN", "expires_in": 3599}).to_string(),
        ),
        "POST /revoked" => (
            400,
            json!({"error": "invalid_grant", "error_description": "Token has been revoked."})
                .to_string(),
        ),
        "POST /impersonate" => (
            200,
            json!({"accessToken": "ya29.OTHER", "expireTime": "2099-01-01T00:00:00Z"}).to_string(),
        ),
        "GET /computeMetadata/v1/instance/service-accounts/default/token" => (
            200,
            json!({"access_token": "ya29.MACHINE", "expires_in": 100}).to_string(),
        ),
        _ => (404, String::new()),
    }
}

async fn google_token(credentials: &Value) -> Result<google::GoogleToken, String> {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("adc.json");
    std::fs::write(&file, credentials.to_string()).unwrap();
    let file = file.to_str().unwrap().to_owned();
    let variables =
        move |name: &str| (name == "GOOGLE_APPLICATION_CREDENTIALS").then(|| file.clone());
    google::token(&variables).await
}

#[tokio::test]
async fn application_default_credentials_are_exchanged_as_recorded() {
    let pem = include_str!("service-account-test-only.key");
    let mut checked = 0;
    for line in include_str!("../../llm/tests/vectors/vertex-adc.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let name = case["name"].as_str().unwrap();
        let server = Server::start(google_server);
        let requests = case["requests"].as_array().unwrap();
        let Some(expected) = requests.first() else {
            // The address fails before a token is requested.
            continue;
        };
        let path = if name.ends_with("revoked") {
            "revoked"
        } else {
            "token"
        };
        let mut credentials = case["credentialsFile"].clone();
        credentials["token_uri"] = format!("{}/{path}", server.base).into();
        if credentials["private_key"] == "<pem>" {
            credentials["private_key"] = pem.into();
        }
        let token = google_token(&credentials).await;
        let seen = server.seen();
        let body = &seen[0].2;
        if let Some(assertion) = expected.get("assertion") {
            let sent = body
                .strip_prefix(
                    "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=",
                )
                .unwrap();
            check_assertion(
                sent,
                assertion,
                pem,
                credentials["token_uri"].as_str().unwrap(),
            );
        } else {
            assert_eq!(body, expected["body"].as_str().unwrap(), "{name}");
        }
        match token {
            Ok(token) => {
                assert_eq!(token.token.expose_secret(), "ya29.TOKEN");
                assert_eq!(
                    token.quota_project.as_deref(),
                    credentials["quota_project_id"].as_str()
                );
            }
            Err(error) => {
                assert!(
                    name.ends_with("revoked") && error.contains("invalid_grant"),
                    "{name}: {error}"
                );
                assert!(
                    !error.contains("1//rt") && !error.contains("sec\""),
                    "{error}"
                );
            }
        }
        checked += 1;
    }
    assert_eq!(checked, 6);
}

fn check_assertion(sent: &str, expected: &Value, pem: &str, audience: &str) {
    let parts: Vec<&str> = sent.split('.').collect();
    let read = |part: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    assert_eq!(read(parts[0])["alg"], expected["header"]["alg"]);
    let (claims, recorded) = (read(parts[1]), &expected["claims"]);
    for name in ["iss", "scope"] {
        assert_eq!(claims[name], recorded[name]);
    }
    assert_eq!(claims["aud"], audience);
    let (issued, expires) = (
        claims["iat"].as_i64().unwrap(),
        claims["exp"].as_i64().unwrap(),
    );
    assert_eq!(expires - issued, 3600);
    let key: String = pem
        .lines()
        .filter(|line| !line.starts_with("-----"))
        .collect();
    let key = signature::RsaKeyPair::from_pkcs8(&STANDARD.decode(key).unwrap()).unwrap();
    let public =
        signature::UnparsedPublicKey::new(&signature::RSA_PKCS1_2048_8192_SHA256, key.public_key());
    let signed = format!("{}.{}", parts[0], parts[1]);
    public
        .verify(
            signed.as_bytes(),
            &URL_SAFE_NO_PAD.decode(parts[2]).unwrap(),
        )
        .unwrap();
}

#[tokio::test]
async fn other_kinds_of_google_credentials() {
    let server = Server::start(google_server);
    let user = json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
        "token_uri": format!("{}/token", server.base)});
    let impersonated = json!({"type": "impersonated_service_account", "source_credentials": user,
        "service_account_impersonation_url": format!("{}/impersonate", server.base)});
    let token = google_token(&impersonated).await.unwrap();
    assert_eq!(token.token.expose_secret(), "ya29.OTHER");
    let (_, headers, _) = &server.seen()[1];
    assert_eq!(headers["authorization"], "Bearer ya29.TOKEN");

    let host = server.base.trim_start_matches("http://").to_owned();
    let variables = move |name: &str| (name == "GCE_METADATA_HOST").then(|| host.clone());
    let token = google::token(&variables).await.unwrap();
    assert_eq!(token.token.expose_secret(), "ya29.MACHINE");
    assert_eq!(server.seen()[2].1["metadata-flavor"], "Google");

    for (credentials, part) in [
        (json!({"type": "external_account"}), "external_account"),
        (
            json!({"type": "authorized_user", "client_id": "c"}),
            "has no \"refresh_token\"",
        ),
        (
            json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
                "token_uri": "http://elsewhere.example/token"}),
            "does not begin with https://",
        ),
        (
            json!({"type": "service_account", "private_key": "nonsense", "client_email": "e"}),
            "not an RSA key",
        ),
    ] {
        let error = google_token(&credentials).await.unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    let variables =
        |name: &str| (name == "GOOGLE_APPLICATION_CREDENTIALS").then(|| "/nonexistent".to_owned());
    let error = google::token(&variables).await.unwrap_err();
    assert!(error.contains("which does not exist"), "{error}");
}

#[tokio::test]
async fn a_workload_exchanges_its_token_at_anthropic() {
    fn granted(_: &str) -> (u16, String) {
        (
            200,
            json!({"access_token": "sk-ant-wif", "expires_in": 600}).to_string(),
        )
    }
    fn refused(_: &str) -> (u16, String) {
        (
            401,
            json!({"error": {"message": "bad assertion ID.TOKEN.JWT"}}).to_string(),
        )
    }
    let case: Value =
        serde_json::from_str(include_str!("vectors/anthropic-workload-identity.json")).unwrap();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("token");
    std::fs::write(&file, "ID.TOKEN.JWT\n").unwrap();
    let mut environment: BTreeMap<String, String> =
        serde_json::from_value(case["environment"].clone()).unwrap();
    environment.insert(
        "ANTHROPIC_IDENTITY_TOKEN_FILE".into(),
        file.to_str().unwrap().into(),
    );
    let variables = move |name: &str| environment.get(name).cloned();
    assert!(anthropic::is_configured(&variables));
    let server = Server::start(granted);
    let token = anthropic::token(&variables, &server.base).await.unwrap();
    assert_eq!(token.token.expose_secret(), "sk-ant-wif");
    let (line, headers, body) = &server.seen()[0];
    let expected = &case["requests"][0];
    assert_eq!(line, "POST /v1/oauth/token");
    assert_eq!(
        headers["anthropic-beta"],
        expected["headers"]["anthropic-beta"].as_str().unwrap()
    );
    let (body, recorded): (Value, Value) = (
        serde_json::from_str(body).unwrap(),
        serde_json::from_str(expected["body"].as_str().unwrap()).unwrap(),
    );
    assert_eq!(body, recorded);
    let server = Server::start(refused);
    let error = anthropic::token(&variables, &server.base)
        .await
        .unwrap_err();
    assert!(error.contains("bad assertion ***"), "{error}");
}
