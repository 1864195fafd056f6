//! How much and how long: every limit of providers and runtimes in one place, for both sides of their streams.

use std::time::Duration;

/// The limits of providers and runtimes. The default is what the documentation says.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long the first message of a provider may take, and the answer to it.
    pub first_message: Duration,
    /// How long a provider may say nothing.
    pub silence: Duration,
    /// How often a provider is greeted that expects the hub to do so.
    pub heartbeat: Duration,
    /// Clips of one provider.
    pub clips: usize,
    /// Commands of one clip.
    pub commands: usize,
    /// Bytes of a message that registers clips.
    pub registration: usize,
    /// Calls, and requests for files, that a provider has at a time.
    pub calls: usize,
    /// Parts of one answer that wait to be read.
    pub chunks: usize,
    /// Bytes of one answer that wait to be read.
    pub chunk_bytes: usize,
    /// How long others wait, in all, for a caller that does not read before its call is cancelled.
    pub patience: Duration,
    /// How long a provider waits for a caller that does not read, if it has no other.
    pub patience_alone: Duration,
    /// Messages on their way to one peer; while there are more, senders wait.
    pub outgoing: usize,
    /// Bytes of them.
    pub outgoing_bytes: usize,
    /// How long a web file of a provider may take.
    pub web: Duration,
    /// How long an operation on files of a provider may take.
    pub data: Duration,
    /// How long a remote runtime may take to install or remove a clip.
    pub install: Duration,
    /// How long after that the clip may take to appear in the table, or to leave it.
    pub settling: Duration,
    /// How often a hub that was joined is greeted.
    pub ping: Duration,
    /// How long a hub that was joined may say nothing.
    pub dead: Duration,
    /// How long to wait before the first attempt to join again. It doubles with each.
    pub backoff: Duration,
    /// The longest wait, also after a refusal.
    pub longest_backoff: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            first_message: Duration::from_secs(10),
            silence: Duration::from_secs(90),
            heartbeat: Duration::from_secs(30),
            clips: 1000,
            commands: 500,
            registration: 4 * MIB,
            calls: 4096,
            chunks: 256,
            chunk_bytes: 8 * MIB,
            patience: Duration::from_millis(250),
            patience_alone: Duration::from_secs(20),
            outgoing: 4096,
            outgoing_bytes: 16 * MIB,
            web: Duration::from_secs(10),
            data: Duration::from_secs(30),
            install: Duration::from_secs(600),
            settling: Duration::from_secs(5),
            ping: Duration::from_secs(15),
            dead: Duration::from_secs(45),
            backoff: Duration::from_secs(1),
            longest_backoff: Duration::from_secs(30),
        }
    }
}
