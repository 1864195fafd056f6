//! The address on this machine to which the browser returns after a sign-in.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use crate::config::OauthSettings;

/// The longest request that is read, in bytes.
const MAX_REQUEST_BYTES: usize = 16 << 10;
/// Time limit of one connection.
const CONNECTION_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// Waits for the browser.
pub(super) struct Callback {
    listener: TcpListener,
    /// The redirect URI.
    pub url: Url,
}

impl Callback {
    /// Opens the address that the settings require, else a free port.
    pub async fn open(settings: &OauthSettings) -> Result<Self, String> {
        let wanted = settings.callback_url.as_deref();
        let mut url = Url::parse(wanted.unwrap_or("http://127.0.0.1/callback"))
            .map_err(|error| error.to_string())?;
        let port = url.port().or(settings.callback_port).unwrap_or(0);
        let host = match url.host_str() {
            Some("[::1]") => "::1",
            _ => "127.0.0.1",
        };
        let address: SocketAddr = (
            host.parse::<std::net::IpAddr>()
                .map_err(|error| error.to_string())?,
            port,
        )
            .into();
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| format!("cannot listen on {address}: {error}"))?;
        let port = listener.local_addr().map_err(|error| error.to_string())?;
        if url.set_port(Some(port.port())).is_err() {
            return Err(format!("{url} cannot have a port"));
        }
        Ok(Self { listener, url })
    }

    /// Waits for the request of the browser and returns its parameters. Other requests are refused.
    pub async fn answer(&self) -> Result<Url, String> {
        loop {
            let (stream, _) = self
                .listener
                .accept()
                .await
                .map_err(|error| error.to_string())?;
            let served = tokio::time::timeout(CONNECTION_TIMEOUT, self.serve(stream)).await;
            if let Ok(Some(url)) = served {
                return Ok(url);
            }
        }
    }

    async fn serve(&self, mut stream: TcpStream) -> Option<Url> {
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
        let target = line.strip_prefix("GET ")?.split(' ').next()?;
        let url = self.url.join(target).ok()?;
        let is_answer = url.path() == self.url.path();
        let (status, text) = if is_answer {
            ("200 OK", "You can close this page and return to pinion.")
        } else {
            ("404 Not Found", "Not found.")
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
            text.len()
        );
        // The browser may be gone; its answer counts all the same.
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
        is_answer.then_some(url)
    }
}
