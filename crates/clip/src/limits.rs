//! How much and how long: every limit of a clip's process in one place.

use std::time::Duration;

/// The limits of one clip. The default is what the documentation says.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Calls a process has at once; more wait.
    pub pending: usize,
    /// Calls that may wait; more fail.
    pub waiting: usize,
    /// Parts of one answer that wait to be read.
    pub chunks: usize,
    /// Bytes of one answer that wait to be read.
    pub chunk_bytes: usize,
    /// Bytes of all answers of the clip that wait to be read before each has `unread_share` and not `chunk_bytes`.
    pub unread: usize,
    /// Bytes of one answer that wait to be read while `unread` are waiting.
    pub unread_share: usize,
    /// Bytes of one answer that wait to be read while nobody else waits for the process, which then waits for its caller.
    pub alone_bytes: usize,
    /// How long others wait, in all, for a caller that does not read before its call is cancelled.
    pub slow_reader_time: Duration,
    /// The longest line a clip may print.
    pub line_in: usize,
    /// The longest line a clip is sent.
    pub line_out: usize,
    /// Bytes on their way to a clip; while there are more, calls wait.
    pub outgoing: usize,
    /// Lines in a row that make no sense before the process is killed.
    pub junk: usize,
    /// Calls that are unanswered `late_time` after their deadline before the process is killed.
    pub late_calls: usize,
    /// How long after its deadline a call counts as late, and how long the process must have done nothing for others.
    pub late_time: Duration,
    /// How long a process with late calls may do nothing while other calls, whose time is not over, wait for it.
    pub hung_time: Duration,
    /// Requests of a clip that are served at once; more wait.
    pub requests: usize,
    /// Requests of a clip that may wait, and the bytes in them; with more the process is killed.
    pub waiting_requests: (usize, usize),
    /// How long a clip waits for other clips and for data.
    pub request_time: Duration,
    /// How long a clip whose dialect is not known may be silent before calls are written to it all the same.
    pub first_line: Duration,
    /// How long a clip may take to register.
    pub registration: Duration,
    /// How long a process may have nothing to do; `None` for ever.
    pub idle: Option<Duration>,
    /// How long a process may take to end by itself, and again after it was told to.
    pub shutdown_time: Duration,
    /// Crashes this close to each other delay the next start.
    pub crash_window: Duration,
    /// The first delay. It doubles with each crash.
    pub backoff: Duration,
    /// The longest delay.
    pub longest_backoff: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            pending: 256,
            waiting: 4096,
            chunks: 256,
            chunk_bytes: 8 * MIB,
            unread: 128 * MIB,
            unread_share: 16 * 1024,
            alone_bytes: MIB / 2,
            slow_reader_time: Duration::from_millis(250),
            line_in: 32 * MIB,
            line_out: 8 * MIB,
            outgoing: 16 * MIB,
            junk: 100,
            late_calls: 3,
            late_time: Duration::from_secs(60),
            hung_time: Duration::from_secs(300),
            requests: 256,
            waiting_requests: (4096, 64 * MIB),
            request_time: Duration::from_secs(600),
            first_line: Duration::from_millis(1500),
            registration: Duration::from_secs(10),
            idle: Some(Duration::from_secs(300)),
            shutdown_time: Duration::from_secs(5),
            crash_window: Duration::from_secs(60),
            backoff: Duration::from_secs(1),
            longest_backoff: Duration::from_secs(30),
        }
    }
}
