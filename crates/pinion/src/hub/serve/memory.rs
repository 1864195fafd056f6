//! Memory that a hub no longer needs, returned to the operating system.
//!
//! glibc keeps what many small allocations leave behind: after 10,000 streams whose callers read slowly, 590 MiB stayed
//! resident where 70 MiB were in use. Trimming costs time in proportion to what is free, so a hub of ordinary size does
//! not pay for it.

use std::time::Duration;

/// How often to look.
const INTERVAL: Duration = Duration::from_secs(1);

/// Trims the heap while it is large, for as long as the hub runs.
pub(super) async fn trim_when_large() {
    loop {
        tokio::time::sleep(INTERVAL).await;
        // A trim that failed to start or to finish is repeated.
        let _ = tokio::task::spawn_blocking(heap::trim_if_large).await;
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod heap {
    /// Bytes of a heap that is worth trimming. An idle hub has about a tenth of it.
    const LARGE: u64 = 48 << 20;

    #[allow(unsafe_code, reason = "a function of the C library")]
    pub(super) fn trim_if_large() {
        if resident().is_some_and(|bytes| bytes > LARGE) {
            // SAFETY: malloc_trim takes the locks of the allocator and changes only memory that is free.
            unsafe { libc::malloc_trim(0) };
        }
    }

    /// The memory of this process that is not backed by files.
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
    pub(super) fn trim_if_large() {}
}
