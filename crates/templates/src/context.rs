//! The inputs of a rendering besides its data, and its limits.

use std::fmt;
use std::sync::Arc;

use jiff::Zoned;

/// Looks up an environment variable.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The inputs of a rendering besides its data: the clock, the environment, the random seed and the
/// limits.
#[derive(Clone)]
pub struct RenderContext {
    /// The result of `now`.
    pub now: Zoned,
    /// The variables that `env` and `expandenv` find. Empty by default.
    pub environment: Lookup,
    /// A fixed seed makes random functions repeatable, for tests.
    pub seed: Option<u64>,
    pub limits: Limits,
}

/// Limits of one rendering; a template that exceeds one fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of output, and of every intermediate text or value.
    pub output: usize,
    /// Units of work: actions, rounds of loops, and bytes that functions read and write (32 bytes
    /// are one unit).
    pub work: u64,
    /// Nesting of blocks, parentheses and template calls.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            output: 32 << 20,
            work: 5_000_000,
            depth: 250,
        }
    }
}

impl Default for RenderContext {
    fn default() -> Self {
        Self {
            now: pinion_text::zone::now(),
            environment: Arc::new(|_| None),
            seed: None,
            limits: Limits::default(),
        }
    }
}

impl fmt::Debug for RenderContext {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RenderContext")
            .field("now", &self.now)
            .field("seed", &self.seed)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
