//! What the owner of a server decides.

use std::time::Duration;

use super::tls::Tls;

/// What the owner of a server decides.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// Paths under which the methods stand, each with a slash at both ends.
    pub prefixes: Vec<String>,
    /// Web pages that may call; those of the server itself always may.
    pub origins: Origins,
    /// Names under which the server may be reached, without ports; `None` is any. A server on loopback should list its
    /// own, or any page can reach it through a name that points here.
    pub hosts: Option<Vec<String>>,
    /// Speak TLS, and nothing else.
    pub tls: Option<Tls>,
    /// How much of everything.
    pub limits: Limits,
}

impl ServerOptions {
    /// Methods under these paths, everything else as it is by default.
    pub fn at<P: Into<String>>(prefixes: impl IntoIterator<Item = P>) -> Self {
        Self {
            prefixes: prefixes.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Restricts the names to those of this machine for itself, and those given.
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

/// Web pages that may call, told by the `Origin` their browser sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origins {
    /// These, as `https://example.org`.
    Listed(Vec<String>),
    /// All there are.
    Any,
}

impl Default for Origins {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

/// How much of everything.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of one message, packed and unpacked. The default takes 32 MiB of payload also in base64.
    pub message: usize,
    /// Bytes of the headers of one request.
    pub head: u32,
    /// Connections at a time. For more, those without a call of a known caller are closed, oldest first; else more wait.
    pub connections: usize,
    /// Calls at a time on one HTTP/2 connection.
    pub streams: u32,
    /// How long the head of a request, a TLS handshake, or the first request over HTTP/2 may take.
    pub head_time: Duration,
    /// How long a connection may have no call.
    pub idle_time: Duration,
    /// How long the next bytes of a request with one message may take.
    pub body_time: Duration,
    /// How long a client over HTTP/1.1 that has closed its side may hear nothing before it is taken to have left.
    pub farewell_time: Duration,
    /// How often an HTTP/2 peer is asked whether it is there.
    pub ping_every: Duration,
    /// How long it may take to say so.
    pub ping_time: Duration,
    /// How long a unary call may take if the caller does not say.
    pub unary_time: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: 44 * 1024 * 1024,
            head: 64 * 1024,
            connections: 1024,
            streams: 256,
            head_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(120),
            body_time: Duration::from_secs(30),
            farewell_time: Duration::from_millis(250),
            ping_every: Duration::from_secs(30),
            ping_time: Duration::from_secs(20),
            unary_time: None,
        }
    }
}
