//! Text that people read: "did you mean" suggestions and time zones by name.

mod nearest;
pub mod zone;

pub use nearest::{distance, nearest};
