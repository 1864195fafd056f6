//! The address on this machine to which the browser returns after a sign-in.
//!
//! Only a GET of the exact path counts, and only until one was accepted. Every answer closes its connection, so that a
//! later sign-in in the same process is never answered by the server of an earlier one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// The longest request that is read, in bytes.
const MAX_REQUEST_BYTES: usize = 16 << 10;
/// Time limit of one connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// The decision about a request of the browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is the answer; the browser shows that the user can return.
    Accept,
    /// It is the answer, and it reports a failure. The text is shown in the browser.
    Fail(String),
    /// It does not belong to this sign-in. The server continues to wait.
    Ignore(String),
}

/// Waits for the browser.
#[derive(Debug)]
pub struct Callback {
    listener: TcpListener,
    /// The redirect URI.
    pub url: Url,
}

impl Callback {
    /// Listens at the host, the port and the path of `url`. Without a port any free one is used.
    ///
    /// # Errors
    ///
    /// When the port is taken. The error names the address.
    pub async fn open(url: &str) -> Result<Self, String> {
        let mut url = Url::parse(url).map_err(|error| format!("{url}: {error}"))?;
        let host: IpAddr = match url.host_str() {
            Some("[::1]") => Ipv6Addr::LOCALHOST.into(),
            _ => Ipv4Addr::LOCALHOST.into(),
        };
        let address = SocketAddr::new(host, url.port().unwrap_or(0));
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| format!("cannot listen on {address}: {error}"))?;
        let port = listener.local_addr().map_err(|error| error.to_string())?;
        if url.set_port(Some(port.port())).is_err() {
            return Err(format!("{url} cannot have a port"));
        }
        Ok(Self { listener, url })
    }

    /// Waits for the request of the browser that `judge` accepts or fails, and returns its address.
    ///
    /// # Errors
    ///
    /// When the socket fails.
    pub async fn answer(&self, judge: impl Fn(&Url) -> Verdict) -> Result<Url, String> {
        loop {
            let (stream, _) = self
                .listener
                .accept()
                .await
                .map_err(|error| error.to_string())?;
            let served = tokio::time::timeout(CONNECTION_TIMEOUT, self.serve(stream, &judge)).await;
            if let Ok(Some(url)) = served {
                return Ok(url);
            }
        }
    }

    async fn serve(&self, mut stream: TcpStream, judge: &impl Fn(&Url) -> Verdict) -> Option<Url> {
        let mut request = Vec::new();
        let mut buffer = [0; 1024];
        while !request.windows(4).any(|end| end == b"\r\n\r\n") {
            let count = stream.read(&mut buffer).await.ok()?;
            request.extend_from_slice(buffer.get(..count)?);
            if count == 0 || request.len() > MAX_REQUEST_BYTES {
                return None;
            }
        }
        let line =
            String::from_utf8_lossy(request.split(|byte| *byte == b'\r').next()?).into_owned();
        let (status, title, text, answer) = match self.requested(&line) {
            None => ("404 Not Found", "Not found", String::new(), None),
            Some(url) => match judge(&url) {
                Verdict::Accept => (
                    "200 OK",
                    "Signed in",
                    "You can close this page and return to pinion.".to_owned(),
                    Some(url),
                ),
                Verdict::Fail(reason) => ("400 Bad Request", "Sign-in failed", reason, Some(url)),
                Verdict::Ignore(reason) => ("400 Bad Request", "Not this sign-in", reason, None),
            },
        };
        let page = page(title, &text);
        let answered = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncache-control: no-store\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{page}",
            page.len()
        );
        // The browser may be gone; its answer counts all the same.
        let _ = stream.write_all(answered.as_bytes()).await;
        let _ = stream.shutdown().await;
        answer
    }

    /// Returns the address of a GET of the path of the callback.
    fn requested(&self, line: &str) -> Option<Url> {
        let target = line.strip_prefix("GET ")?.split(' ').next()?;
        if !target.starts_with('/') || target.starts_with("//") {
            return None;
        }
        let url = self.url.join(target).ok()?;
        (url.path() == self.url.path()).then_some(url)
    }
}

/// A page without scripts. Its text may come from outside.
fn page(title: &str, text: &str) -> String {
    let escaped = |text: &str| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        text.replace('>', "&gt;").replace('"', "&quot;")
    };
    let (title, text) = (escaped(title), escaped(text));
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
         <body style=\"font-family:sans-serif;margin:4rem\"><h1>{title}</h1><p>{text}</p></body></html>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn request(callback: &Url, line: &str) -> String {
        let address = (callback.host_str().unwrap(), callback.port().unwrap());
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{line}\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    fn judge(url: &Url) -> Verdict {
        match url.query() {
            Some("state=s") => Verdict::Accept,
            Some("error=denied") => Verdict::Fail("<denied>".into()),
            _ => Verdict::Ignore("another".into()),
        }
    }

    #[tokio::test]
    async fn only_the_answer_to_this_sign_in_ends_the_wait() {
        let callback = Callback::open("http://127.0.0.1/auth/callback")
            .await
            .unwrap();
        let url = callback.url.clone();
        let waiting = tokio::spawn(async move { callback.answer(judge).await });
        for (line, status) in [
            ("GET / HTTP/1.1", "404"),
            ("GET //auth/callback?state=s HTTP/1.1", "404"),
            ("POST /auth/callback?state=s HTTP/1.1", "404"),
            ("GET http://127.0.0.1/auth/callback?state=s HTTP/1.1", "404"),
            ("GET /auth/callback?state=t HTTP/1.1", "400"),
            ("GET /auth/callback HTTP/1.1", "400"),
        ] {
            let answer = request(&url, line).await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{line}: {answer}"
            );
            assert!(answer.contains("cache-control: no-store"), "{answer}");
            assert!(!waiting.is_finished(), "{line}");
        }
        let answer = request(&url, "GET /auth/callback?state=s HTTP/1.1").await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.contains("text/html; charset=utf-8"), "{answer}");
        let found = waiting.await.unwrap().unwrap();
        assert_eq!(found.query(), Some("state=s"));
    }

    #[tokio::test]
    async fn a_refusal_ends_the_wait_and_its_text_is_escaped() {
        let callback = Callback::open("http://127.0.0.1/cb").await.unwrap();
        let url = callback.url.clone();
        let waiting = tokio::spawn(async move { callback.answer(judge).await });
        let answer = request(&url, "GET /cb?error=denied HTTP/1.1").await;
        assert!(
            answer.starts_with("HTTP/1.1 400 ") && answer.contains("&lt;denied&gt;"),
            "{answer}"
        );
        assert!(waiting.await.unwrap().is_ok());
    }

    #[tokio::test]
    async fn a_port_that_is_taken_is_named() {
        let first = Callback::open("http://127.0.0.1/cb").await.unwrap();
        let error = Callback::open(first.url.as_str()).await.unwrap_err();
        let port = first.url.port().unwrap();
        assert!(
            error.contains(&format!("cannot listen on 127.0.0.1:{port}")),
            "{error}"
        );
    }
}
