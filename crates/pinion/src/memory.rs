//! Returns the memory of closed sessions to the operating system.

use pinion_pi::OpenIds;

/// Trims the heap after sessions have closed.
pub(crate) async fn trim_after_sessions(open: &OpenIds) {
    pinion_process::memory::trim_after_sessions(|| open.closed()).await;
}
