//! A connection to a server, as an epoch: it never reconnects. When it is lost, everything on it fails at once and
//! nothing that was in flight is sent later; the next connection begins empty.
//!
//! The client library would reconnect by itself and then send what had gathered. It asks for credentials on every
//! connection; after the first, it receives none and gives up.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::{
    Client, ConnectErrorKind, ConnectOptions, Event, HeaderMap, Message, RequestErrorKind,
};
use bytes::Bytes;
use pinion_status::{Code, Failure};
use pinion_sync::lock;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::credentials::Credentials;
use crate::servers::{Encryption, Server};

/// The oldest version of the servers.
pub const LEAST_VERSION: (u64, u64, u64) = (2, 12, 5);
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(2);
const PING_INTERVAL: Duration = Duration::from_secs(2);
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// Messages that a subscription holds for its reader. The window of conversations is smaller.
const SUBSCRIPTION_CAPACITY: usize = 65_536;

/// The properties of a program's connections.
#[derive(Debug, Clone)]
pub struct BusOptions {
    /// The name that the servers list.
    pub name: String,
    /// The prefix of the subjects of answers.
    pub inbox: String,
    pub credentials: Credentials,
    pub tls: TlsFiles,
}

/// Files for TLS, in PEM.
#[derive(Debug, Clone, Default)]
pub struct TlsFiles {
    /// Certificates to trust besides those of the system.
    pub authority: Option<PathBuf>,
    /// The program's certificate and its key.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// A connection from its beginning to its end.
pub struct Epoch {
    client: Client,
    server: Server,
    version: String,
    server_name: String,
    /// Further addresses of the cluster's servers.
    discovered: Vec<String>,
    ended: CancellationToken,
    reason: Arc<Mutex<Option<String>>>,
    leaving: CancellationToken,
    /// The server's report of a missing right.
    denied: watch::Receiver<Option<String>>,
}

/// The end of an epoch, as the failure of everything on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended;

/// The failure of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestError {
    /// The servers report that nothing listens on the subject: the request was not received.
    NoResponders,
    /// The request may have been received.
    TimedOut,
    /// The epoch has ended; the request may have been received.
    Ended,
    /// The request is larger than the server permits; it was not sent.
    TooLarge,
}

impl fmt::Debug for Epoch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Epoch")
            .field("server", &self.server.url())
            .field("ended", &self.ended.is_cancelled())
            .finish_non_exhaustive()
    }
}

impl Epoch {
    /// Connects to `server`. Fails for servers that are too old or without JetStream.
    pub async fn open(server: &Server, options: &BusOptions) -> Result<Arc<Self>, Failure> {
        let ended = CancellationToken::new();
        let leaving = CancellationToken::new();
        let reason = Arc::new(Mutex::new(None));
        let (deny, denied) = watch::channel(None);
        let connecting = connect_options(options, server, &ended, &leaving, &reason, deny);
        let client = connecting.connect(server.url()).await;
        let client = client.map_err(|error| cannot_connect(server, &error))?;
        let info = client.server_info();
        check_version(&info.version)?;
        if !info.jetstream {
            let message = format!(
                "the NATS server {server} runs without JetStream; start it with `jetstream {{}}`"
            );
            return Err(Failure::new(Code::FailedPrecondition, message));
        }
        Ok(Arc::new(Self {
            server: server.clone(),
            version: info.version,
            server_name: info.server_name,
            discovered: info.connect_urls,
            client,
            ended,
            reason,
            leaving,
            denied,
        }))
    }

    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The version of the server.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The name that the server gives itself.
    pub fn server_name(&self) -> &str {
        &self.server_name
    }

    /// The addresses of further servers, as the server knows them.
    pub fn discovered(&self) -> &[String] {
        &self.discovered
    }

    /// Returns a token that is cancelled at the end of the epoch.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Returns a token that is cancelled when the server announces that it will stop.
    pub fn server_leaving(&self) -> &CancellationToken {
        &self.leaving
    }

    /// Waits until the server reports that it does not permit a message or a subscription, and returns the report. It
    /// answers nothing to the message itself.
    pub async fn denied(&self) -> String {
        let mut denied = self.denied.clone();
        let report = match denied.wait_for(Option::is_some).await {
            Ok(report) => report.clone(),
            Err(_) => None,
        };
        match report {
            Some(report) => report,
            None => std::future::pending().await,
        }
    }

    /// Ends the epoch. Only the first reason is stored.
    pub fn end(&self, reason: &str) {
        end(&self.ended, &self.reason, reason);
    }

    /// Returns the reason of the end; empty before.
    pub fn reason(&self) -> String {
        lock(&self.reason).clone().unwrap_or_default()
    }

    /// Hands a message to the connection. Success does not mean that it arrives.
    pub async fn publish(
        &self,
        subject: String,
        reply: Option<String>,
        payload: Bytes,
    ) -> Result<(), Ended> {
        let sending = async {
            match reply {
                Some(reply) => {
                    self.client
                        .publish_with_reply(subject, reply, payload)
                        .await
                }
                None => self.client.publish(subject, payload).await,
            }
        };
        tokio::select! {
            biased;
            () = self.ended.cancelled() => Err(Ended),
            sent = sending => sent.map_err(|_| Ended),
        }
    }

    /// Publishes a message with headers and the subject of an answer.
    pub async fn publish_with_headers(
        &self,
        subject: String,
        reply: String,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Result<(), Ended> {
        let sending = self
            .client
            .publish_with_reply_and_headers(subject, reply, headers, payload);
        tokio::select! {
            biased;
            () = self.ended.cancelled() => Err(Ended),
            sent = sending => sent.map_err(|_| Ended),
        }
    }

    /// Sends a request with a subject of its own for the answer. An answer that comes late or twice is ignored.
    pub async fn request(
        &self,
        subject: String,
        headers: Option<HeaderMap>,
        payload: Bytes,
        limit: Duration,
    ) -> Result<Message, RequestError> {
        let mut request = async_nats::Request::new()
            .payload(payload)
            .timeout(Some(limit));
        if let Some(headers) = headers {
            request = request.headers(headers);
        }
        tokio::select! {
            biased;
            () = self.ended.cancelled() => Err(RequestError::Ended),
            answer = self.client.send_request(subject, request) => answer.map_err(|error| match error.kind() {
                RequestErrorKind::NoResponders => RequestError::NoResponders,
                RequestErrorKind::TimedOut => RequestError::TimedOut,
                RequestErrorKind::MaxPayloadExceeded => RequestError::TooLarge,
                RequestErrorKind::InvalidSubject | RequestErrorKind::Other => RequestError::Ended,
            }),
        }
    }

    /// Subscribes to a subject. The subscription is active at the server once [`Self::flush`] has returned.
    pub async fn subscribe(&self, subject: String) -> Result<async_nats::Subscriber, Ended> {
        tokio::select! {
            biased;
            () = self.ended.cancelled() => Err(Ended),
            subscriber = self.client.subscribe(subject) => subscriber.map_err(|_| Ended),
        }
    }

    /// Returns a new subject for answers.
    pub fn new_inbox(&self) -> String {
        self.client.new_inbox()
    }

    /// Waits until the server has received everything that was published.
    pub async fn flush(&self) -> Result<(), Ended> {
        let flushing = async {
            let flushed = tokio::time::timeout(FLUSH_TIMEOUT, self.client.flush()).await;
            matches!(flushed, Ok(Ok(())))
        };
        tokio::select! {
            biased;
            () = self.ended.cancelled() => Err(Ended),
            flushed = flushing => if flushed { Ok(()) } else { Err(Ended) },
        }
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

fn end(ended: &CancellationToken, stored: &Mutex<Option<String>>, reason: &str) {
    lock(stored).get_or_insert_with(|| reason.to_owned());
    ended.cancel();
}

fn connect_options(
    options: &BusOptions,
    server: &Server,
    ended: &CancellationToken,
    leaving: &CancellationToken,
    reason: &Arc<Mutex<Option<String>>>,
    deny: watch::Sender<Option<String>>,
) -> ConnectOptions {
    let credentials = options.credentials.clone();
    let has_connected = Arc::new(AtomicBool::new(false));
    let authenticate = move |nonce: Vec<u8>| {
        let answer = if has_connected.swap(true, Ordering::Relaxed) {
            Err(async_nats::AuthError::new("the epoch has ended"))
        } else {
            credentials.answer(&nonce)
        };
        async move { answer }
    };
    let (ended, leaving, reason) = (ended.clone(), leaving.clone(), reason.clone());
    let note = move |event: Event| {
        match &event {
            Event::Disconnected | Event::Closed => end(&ended, &reason, "the connection was lost"),
            Event::SlowConsumer(_) => end(
                &ended,
                &reason,
                "messages arrived faster than they were read",
            ),
            Event::LameDuckMode => leaving.cancel(),
            Event::ServerError(error) => {
                let report = error.to_string();
                tracing::warn!(report, "the NATS server reports an error");
                if report.to_lowercase().contains("permissions violation") {
                    deny.send_replace(Some(report));
                }
            }
            Event::Connected | Event::Draining | Event::ClientError(_) => {}
        }
        async {}
    };
    let mut connecting = ConnectOptions::with_auth_callback(authenticate)
        .max_reconnects(1)
        .ignore_discovered_servers()
        .connection_timeout(CONNECTION_TIMEOUT)
        .ping_interval(PING_INTERVAL)
        .subscription_capacity(SUBSCRIPTION_CAPACITY)
        .custom_inbox_prefix(&options.inbox)
        .name(&options.name)
        .event_callback(note)
        .require_tls(server.encryption == Encryption::Always);
    if let Some(authority) = &options.tls.authority {
        connecting = connecting.add_root_certificates(authority.clone());
    }
    if let Some((certificate, key)) = &options.tls.client {
        connecting = connecting.add_client_certificate(certificate.clone(), key.clone());
    }
    connecting
}

fn cannot_connect(server: &Server, error: &async_nats::ConnectError) -> Failure {
    let (code, why) = match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => (
            Code::PermissionDenied,
            "it rejects the credentials; PINION_CLUSTER_CREDS or --cluster-creds name a file with others".to_owned(),
        ),
        ConnectErrorKind::TimedOut => (Code::Unavailable, "it did not answer in time".to_owned()),
        ConnectErrorKind::Tls => (
            Code::Unavailable,
            format!("TLS failed: {error}; --cluster-ca names the certificate of its authority"),
        ),
        ConnectErrorKind::Dns => (Code::Unavailable, "its name has no address".to_owned()),
        _ => (Code::Unavailable, error.to_string()),
    };
    Failure::new(
        code,
        format!("cannot connect to the NATS server {server}: {why}"),
    )
}

/// Rejects servers with known faults, by name.
pub(crate) fn check_version(version: &str) -> Result<(), Failure> {
    let plain = version.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = plain
        .split('.')
        .map(|number| number.parse::<u64>().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    if (next(), next(), next()) >= LEAST_VERSION {
        return Ok(());
    }
    let (major, minor, patch) = LEAST_VERSION;
    let message = format!(
        "nats-server {version} is too old for a cluster: {major}.{minor}.{patch} or newer is needed"
    );
    Err(Failure::new(Code::FailedPrecondition, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_servers_are_refused_by_name() {
        for good in ["2.12.5", "2.12.10", "2.13.0", "3.0.0", "2.15.1-beta.2"] {
            check_version(good).unwrap();
        }
        for bad in ["2.9.10", "2.12.4", "2.10.26", "1.99.9", "", "dev"] {
            let refused = check_version(bad).unwrap_err();
            let words =
                format!("nats-server {bad} is too old for a cluster: 2.12.5 or newer is needed");
            assert_eq!(refused.message, words);
        }
    }
}
