//! The HTTP client for registries. It limits sizes and times, and sends the token only to the registry.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use pinion_http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use pinion_http::{
    BodyError, ClientOptions, Method, Redirects, RequestBuilder, Response, StatusCode, Trust, Url,
    is_loopback, root_cause,
};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::Address;
use crate::clip::Token;
use crate::install::MAX_ARCHIVE;
use crate::{ClipError, Code};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for a whole document.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for a whole archive, and time without a byte of it.
const ARCHIVE_TIMEOUT: Duration = Duration::from_secs(900);
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_DOCUMENT: usize = 16 * 1024 * 1024;
/// Characters of a registry's error message that are shown.
const SHOWN_CHARACTERS: usize = 500;

/// An HTTP client that is set up when it is first needed.
#[derive(Debug)]
pub(super) struct Client {
    /// The address of the registry; `None` for a directory, which is read without HTTP.
    base: Option<Url>,
    token: Option<Token>,
    made: OnceCell<pinion_http::Client>,
}

impl Client {
    pub(super) fn new(address: &Address, token: Option<Token>) -> Self {
        let base = match address {
            Address::Service(url) | Address::Index(url) => Some(url.clone()),
            Address::Directory(_) => None,
        };
        Self {
            base,
            token,
            made: OnceCell::new(),
        }
    }

    async fn request(&self, method: Method, url: &Url) -> Result<RequestBuilder, ClipError> {
        let is_local = url.scheme() == "http" && is_loopback(url);
        let client = self
            .made
            .get_or_try_init(|| async move {
                // Reading the system's certificates blocks for a while.
                let options = client_options(is_local);
                let built = tokio::task::spawn_blocking(move || pinion_http::build(&options)).await;
                let built = built.map_err(|error| error.to_string()).flatten();
                built.map_err(|error| ClipError::new(Code::Internal, error))
            })
            .await?;
        let request = client.request(method, url.clone());
        let own = self
            .base
            .as_ref()
            .is_some_and(|base| base.origin() == url.origin());
        let Some(token) = self.token.as_ref().filter(|_| own) else {
            return Ok(request);
        };
        must_be_private(url, "token")?;
        let value = HeaderValue::try_from(format!("Bearer {}", token.reveal()));
        let mut value = value.map_err(|_| {
            ClipError::invalid("the token for the registry has characters that cannot be sent")
        })?;
        value.set_sensitive(true);
        Ok(request.header(AUTHORIZATION, value))
    }

    /// Fetches a JSON document.
    pub(super) async fn json(&self, url: &Url) -> Result<Value, ClipError> {
        let request = self.request(Method::GET, url).await?;
        document(request, url).await
    }

    /// Posts a body that contains a secret. Fails if the connection would not be private.
    pub(super) async fn ask(&self, url: &Url, secret: &Value) -> Result<Value, ClipError> {
        must_be_private(url, "password")?;
        let request = self.request(Method::POST, url).await?;
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .body(secret.to_string());
        document(request, url).await
    }

    /// Uploads a body.
    pub(super) async fn put(
        &self,
        url: &Url,
        content_type: &str,
        body: Bytes,
    ) -> Result<(), ClipError> {
        let request = self.request(Method::PUT, url).await?;
        let request = request.header(CONTENT_TYPE, content_type).body(body);
        within(ARCHIVE_TIMEOUT, url, async {
            answered(request, url).await.map(drop)
        })
        .await
    }

    /// Downloads an archive to `place`. Fails if its length differs from `size`, where that is known.
    pub(super) async fn download(
        &self,
        url: &Url,
        place: &Path,
        size: Option<u64>,
    ) -> Result<(), ClipError> {
        let request = self.request(Method::GET, url).await?;
        let fetched = async {
            let mut response = answered(request, url).await?;
            let mut file = pinion_files::create_or_empty(place, 0o600)
                .map_err(|error| ClipError::io(place.display(), &error))?;
            let mut length = 0;
            loop {
                let part = within(STALL_TIMEOUT, url, async { Ok(response.chunk().await) }).await?;
                let Some(part) = part.map_err(|error| unreachable(url, &error))? else {
                    break;
                };
                length += part.len() as u64;
                if length > MAX_ARCHIVE {
                    let message = format!("{url} is larger than 256 MiB");
                    return Err(ClipError::new(Code::ResourceExhausted, message));
                }
                file.write_all(&part)
                    .map_err(|error| ClipError::io(place.display(), &error))?;
            }
            match size {
                Some(size) if size != length => {
                    let message = format!("{url} has {length} bytes where {size} were announced");
                    Err(ClipError::new(Code::Unavailable, message))
                }
                _ => Ok(()),
            }
        };
        within(ARCHIVE_TIMEOUT, url, fetched).await
    }
}

/// Fails if `url` would be reached unencrypted over a network.
fn must_be_private(url: &Url, what: &str) -> Result<(), ClipError> {
    if url.scheme() == "http" && !is_loopback(url) {
        let message =
            format!("the {what} for {url} would be sent unencrypted; use an https address");
        return Err(ClipError::new(Code::FailedPrecondition, message));
    }
    Ok(())
}

async fn document(request: RequestBuilder, url: &Url) -> Result<Value, ClipError> {
    let asked = async {
        let response = answered(request, url).await?;
        let bytes = whole(response, url).await?;
        serde_json::from_slice(&bytes).map_err(|error| {
            ClipError::new(Code::Unavailable, format!("{url} is not JSON: {error}"))
        })
    };
    within(DOCUMENT_TIMEOUT, url, asked).await
}

async fn within<T>(
    time: Duration,
    url: &Url,
    work: impl Future<Output = Result<T, ClipError>>,
) -> Result<T, ClipError> {
    match tokio::time::timeout(time, work).await {
        Ok(done) => done,
        Err(_) => Err(ClipError::new(
            Code::DeadlineExceeded,
            format!("{url} did not answer within {} seconds", time.as_secs()),
        )),
    }
}

async fn answered(request: RequestBuilder, url: &Url) -> Result<Response, ClipError> {
    let response = request
        .send()
        .await
        .map_err(|error| unreachable(url, &error))?;
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status();
    let body = whole(response, url).await.unwrap_or_default();
    Err(refusal(url, status, &body))
}

/// Reads a body up to [`MAX_DOCUMENT`] bytes.
async fn whole(response: Response, url: &Url) -> Result<Vec<u8>, ClipError> {
    let body = pinion_http::read_body(response, MAX_DOCUMENT).await;
    body.map_err(|error| match error {
        BodyError::Broken(error) => unreachable(url, &error),
        BodyError::TooLong => {
            let message = format!("{url} is longer than 16 MiB");
            ClipError::new(Code::ResourceExhausted, message)
        }
    })
}

fn refusal(url: &Url, status: StatusCode, body: &[u8]) -> ClipError {
    let code = match status.as_u16() {
        400 | 422 => Code::InvalidArgument,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 | 410 => Code::NotFound,
        409 => Code::AlreadyExists,
        413 | 429 => Code::ResourceExhausted,
        500..=599 => Code::Unavailable,
        _ => Code::FailedPrecondition,
    };
    let reported = serde_json::from_slice::<Value>(body).ok();
    let reported = reported.as_ref().and_then(|reported| {
        let error = reported.get("error")?;
        error.as_str().or_else(|| error.get("message")?.as_str())
    });
    let reported: String = reported
        .unwrap_or_default()
        .chars()
        .take(SHOWN_CHARACTERS)
        .collect();
    let colon = if reported.is_empty() { "" } else { ": " };
    ClipError::new(code, format!("{url} answered {status}{colon}{reported}"))
}

fn unreachable(url: &Url, error: &pinion_http::Error) -> ClipError {
    let cause = root_cause(error);
    ClipError::new(Code::Unavailable, format!("{url} cannot be read: {cause}"))
}

fn client_options(is_local: bool) -> ClientOptions {
    ClientOptions {
        // Connections to this machine need neither certificates nor a proxy.
        trust: if is_local {
            Trust::Nothing
        } else {
            Trust::System
        },
        proxies: !is_local,
        // The token is not sent to other hosts.
        redirects: Redirects::NoDowngrade,
        // Archives must be verified and unpacked as they were sent.
        gzip: false,
        ..ClientOptions::new(CONNECT_TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    /// Serves `body` to one request and returns its address.
    fn serve(body: &'static str) -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            let _ = socket.read(&mut head).unwrap();
            let length = body.len();
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
            socket.write_all(answer.as_bytes()).unwrap();
        });
        url.parse().unwrap()
    }

    #[tokio::test]
    async fn an_archive_is_written_to_a_regular_file_only() {
        let dir = tempfile::tempdir().unwrap();
        let device = dir.path().join("device");
        std::os::unix::fs::symlink("/dev/null", &device).unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "longer than the archive").unwrap();
        let url = serve("archive");
        let client = Client::new(&Address::Service(url.clone()), None);
        let refused = client.download(&url, &device, None).await.unwrap_err();
        assert!(refused.message.contains("is a device"), "{refused}");
        let url = serve("archive");
        client.download(&url, &file, Some(7)).await.unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"archive");
    }
}
