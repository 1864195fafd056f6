//! The limits of a clip's process: numbers of calls, bytes and times.

use std::time::Duration;

/// The limits of one clip. The defaults are the numbers in `docs/clips.md`.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Calls that one process handles at once; further calls wait.
    pub pending: usize,
    /// Calls that may wait for the process; further calls fail.
    pub waiting: usize,
    /// Parts of one answer that may be unread.
    pub chunks: usize,
    /// Bytes of one answer that may be unread.
    pub chunk_bytes: usize,
    /// Unread bytes of all answers of the clip above which each answer has `unread_share` instead of `chunk_bytes`.
    pub unread: usize,
    /// Bytes of one answer that may be unread while `unread` is exceeded.
    pub unread_share: usize,
    /// Bytes of one answer that may be unread while no other call waits for the process. The process waits for its
    /// caller then.
    pub alone_bytes: usize,
    /// Total time that other calls wait for a caller that does not read; after it the caller's call is cancelled.
    pub slow_reader_time: Duration,
    /// The longest line that a clip may print, in bytes.
    pub line_in: usize,
    /// The longest line that a clip is sent, in bytes.
    pub line_out: usize,
    /// Bytes queued for a clip's stdin; while there are more, calls wait.
    pub outgoing: usize,
    /// Consecutive lines that are not messages after which the process is killed.
    pub junk: usize,
    /// Number of calls, unanswered `late_time` after their deadlines, at which the process is killed.
    pub late_calls: usize,
    /// Time after its deadline at which a call counts as late, and for which the process must have done nothing for
    /// other calls.
    pub late_time: Duration,
    /// Time that a process with late calls may do nothing while other calls, whose deadlines have not passed, wait for
    /// it.
    pub hung_time: Duration,
    /// Requests of a clip that are served at once; further requests wait.
    pub requests: usize,
    /// Requests of a clip that may be unanswered, and the bytes in them; beyond either the process is killed.
    pub waiting_requests: (usize, usize),
    /// Time after which a clip's request for another clip or for data fails.
    pub request_time: Duration,
    /// Time that a clip whose dialect is unknown may print nothing before calls are written to it anyway.
    pub first_line: Duration,
    /// Time that a clip may take to register.
    pub registration: Duration,
    /// Time after which a process without work is stopped; `None` for never.
    pub idle: Option<Duration>,
    /// Time from closing the stdin of a process to SIGTERM, and from SIGTERM to SIGKILL.
    pub shutdown_time: Duration,
    /// Crashes within this time of each other delay the next start.
    pub crash_window: Duration,
    /// The first delay of a start. It doubles with each crash.
    pub backoff: Duration,
    /// The longest delay of a start.
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
