//! The settings of a server.

use std::time::Duration;

use super::tls::Tls;

/// The settings of a server.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// Paths that contain the methods, each with a slash at both ends.
    pub prefixes: Vec<String>,
    /// Web pages that may call. The server's own pages always may.
    pub origins: Origins,
    /// Host names that the server answers to, without ports; `None` accepts any. A server on loopback should list its
    /// own, or any web page can reach it through a name that resolves to loopback.
    pub hosts: Option<Vec<String>>,
    /// The certificate for TLS. If set, connections without TLS are not accepted.
    pub tls: Option<Tls>,
    /// Limits on sizes, numbers and times.
    pub limits: Limits,
}

impl ServerOptions {
    /// Creates the default settings for methods under these paths.
    pub fn at<P: Into<String>>(prefixes: impl IntoIterator<Item = P>) -> Self {
        Self {
            prefixes: prefixes.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Restricts the host names to the loopback names and `others`.
    #[must_use]
    pub fn loopback_and<H: Into<String>>(mut self, others: impl IntoIterator<Item = H>) -> Self {
        let own = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        self.hosts = Some(
            own.into_iter()
                .chain(others.into_iter().map(Into::into))
                .collect(),
        );
        self
    }
}

/// Web pages that may call, identified by the `Origin` header of their browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origins {
    /// Only these origins, such as `https://example.org`.
    Listed(Vec<String>),
    /// Every origin.
    Any,
}

impl Default for Origins {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

/// Limits on sizes, numbers and times.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of one message, compressed and uncompressed. The default leaves room for 32 MiB of payload in base64.
    pub message: usize,
    /// Bytes of the headers of one request.
    pub head: u32,
    /// Concurrent connections. When there are more, those without an authenticated caller are closed, oldest first; if
    /// there are none, new connections wait.
    pub connections: usize,
    /// Concurrent calls on one HTTP/2 connection.
    pub streams: u32,
    /// Time limit for the head of a request, a TLS handshake, or the first request over HTTP/2.
    pub head_timeout: Duration,
    /// Time limit for a connection without a call.
    pub idle_timeout: Duration,
    /// Longest wait for the next bytes of a request with one message.
    pub body_timeout: Duration,
    /// Longest time without a write after which an HTTP/1.1 client that has closed its sending side counts as gone.
    pub half_close_timeout: Duration,
    /// Interval of the pings to an HTTP/2 client.
    pub ping_interval: Duration,
    /// Time limit for the answer to a ping.
    pub ping_timeout: Duration,
    /// Time limit of a unary call whose caller sets none.
    pub unary_timeout: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: 44 * 1024 * 1024,
            head: 64 * 1024,
            connections: 1024,
            streams: 256,
            head_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(120),
            body_timeout: Duration::from_secs(30),
            half_close_timeout: Duration::from_millis(250),
            ping_interval: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(20),
            unary_timeout: None,
        }
    }
}
