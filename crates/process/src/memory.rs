//! Returns memory that is no longer needed to the operating system.
//!
//! glibc retains the memory of many small allocations: after 10,000 hub streams whose callers read slowly, 590 MiB stayed
//! resident where 70 MiB were in use, and after 500 closed sessions 48 MiB where 13 MiB were. Trimming takes time in
//! proportion to the free memory, so a small process does not trim.

use std::time::Duration;

/// Time between two checks of a hub's memory.
const INTERVAL: Duration = Duration::from_secs(1);
/// Bytes of a hub's heap above which trimming is worthwhile. An idle hub has about a tenth of it.
const LARGE_HUB: u64 = 48 << 20;
/// Bytes of the heap of a process with several sessions above which trimming is worthwhile. Without an open session it
/// has about a third of it.
const LARGE_SESSIONS: u64 = 16 << 20;
/// Wait for further sessions to close, so that a client that closes many causes one trim.
const SETTLE: Duration = Duration::from_millis(100);

/// Trims the heap while it is large, for as long as the hub runs.
pub async fn trim_when_large() {
    loop {
        tokio::time::sleep(INTERVAL).await;
        trim(LARGE_HUB).await;
    }
}

/// Trims the heap after sessions have closed. Each future of `closed` ends when one has.
pub async fn trim_after_sessions<F: Future<Output = ()>>(closed: impl Fn() -> F) {
    loop {
        closed().await;
        tokio::time::sleep(SETTLE).await;
        trim(LARGE_SESSIONS).await;
    }
}

async fn trim(large: u64) {
    // The next trim makes up for one that failed.
    let _ = tokio::task::spawn_blocking(move || heap::trim_if_over(large)).await;
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod heap {
    #[allow(unsafe_code, reason = "a function of the C library")]
    pub(super) fn trim_if_over(large: u64) {
        if resident().is_some_and(|bytes| bytes > large) {
            // SAFETY: malloc_trim takes the locks of the allocator and changes only memory that is free.
            unsafe { libc::malloc_trim(0) };
        }
    }

    /// Returns the bytes of this process in memory that no file backs.
    fn resident() -> Option<u64> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes << 10)
    }
}

/// Other allocators return memory by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod heap {
    pub(super) fn trim_if_over(_: u64) {}
}
