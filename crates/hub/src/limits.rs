//! All limits of providers and runtimes, for both sides of their streams.

use std::time::Duration;

/// The limits of providers and runtimes. The defaults are documented in `docs/hub.md`.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The longest wait for a provider's first message, and for the answer to it.
    pub first_message_timeout: Duration,
    /// The longest time without a message from a provider.
    pub heartbeat_timeout: Duration,
    /// The time between heartbeats to a provider that expects them from the hub.
    pub heartbeat_interval: Duration,
    /// The most clips of one provider.
    pub clips: usize,
    /// The most commands of one clip.
    pub commands: usize,
    /// The most bytes of a message that registers clips.
    pub registration: usize,
    /// The most simultaneous calls and file requests of one provider.
    pub calls: usize,
    /// The most parts of one answer that wait to be read.
    pub chunks: usize,
    /// The most bytes of one answer that wait to be read.
    pub chunk_bytes: usize,
    /// The total time that other calls wait for a caller that does not read before the hub cancels that caller's call.
    pub slow_reader_wait: Duration,
    /// The longest wait for a caller that does not read if the provider has no other call.
    pub lone_reader_wait: Duration,
    /// The most messages queued for one peer; senders wait while the queue is full.
    pub outgoing: usize,
    /// The most bytes queued for one peer.
    pub outgoing_bytes: usize,
    /// The longest wait for a web file of a provider.
    pub web_timeout: Duration,
    /// The longest wait for an operation on a provider's files.
    pub data_timeout: Duration,
    /// The longest wait for a remote runtime to install or remove a clip.
    pub install_timeout: Duration,
    /// The longest wait after that until the clip is in the table, or has left it.
    pub settle_timeout: Duration,
    /// The time between pings to a hub that was joined.
    pub ping_interval: Duration,
    /// The longest time without a message from a hub that was joined.
    pub ping_timeout: Duration,
    /// The wait before the first attempt to join again. It doubles with each attempt.
    pub backoff: Duration,
    /// The longest wait between attempts, and the wait after a refusal.
    pub max_backoff: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            first_message_timeout: Duration::from_secs(10),
            heartbeat_timeout: Duration::from_secs(90),
            heartbeat_interval: Duration::from_secs(30),
            clips: 1000,
            commands: 500,
            registration: 4 * MIB,
            calls: 4096,
            chunks: 256,
            chunk_bytes: 8 * MIB,
            slow_reader_wait: Duration::from_millis(250),
            lone_reader_wait: Duration::from_secs(20),
            outgoing: 4096,
            outgoing_bytes: 16 * MIB,
            web_timeout: Duration::from_secs(10),
            data_timeout: Duration::from_secs(30),
            install_timeout: Duration::from_secs(600),
            settle_timeout: Duration::from_secs(5),
            ping_interval: Duration::from_secs(15),
            ping_timeout: Duration::from_secs(45),
            backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(30),
        }
    }
}
