//! Checks of what pinion depends on, and a report of them as text or JSON. No check changes anything; only
//! [`check_keys_online`] uses the network.

mod clips;
mod directories;
mod models;
mod online;
mod report;
mod system;

pub use clips::check_clips;
pub use directories::check_directory;
pub use models::check_models;
pub use online::check_keys_online;
pub use report::{Check, Finding, Report};
pub use system::{check_kernel, check_shell};
