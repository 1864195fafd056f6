//! What a template may know of the world, and how much it may do.

use std::fmt;
use std::sync::Arc;

use jiff::Zoned;

/// Looks up a variable of the environment.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The world around a template: the clock, the environment, chance, and its limits.
#[derive(Clone)]
pub struct Surroundings {
    /// What `now` says.
    pub now: Zoned,
    /// What `env` and `expandenv` find. Nothing by default.
    pub environment: Lookup,
    /// Makes random functions repeat themselves, for tests.
    pub seed: Option<u64>,
    /// How much a template may do.
    pub limits: Limits,
}

/// How much one rendering may do before it is stopped with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of output, and of any text or value on the way.
    pub output: usize,
    /// Units of work: actions, rounds of loops, and what functions read and write (32 bytes are one).
    pub work: u64,
    /// How deep blocks, parentheses and calls of templates may be nested.
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

impl Default for Surroundings {
    fn default() -> Self {
        Self {
            now: pinion_zones::now(),
            environment: Arc::new(|_| None),
            seed: None,
            limits: Limits::default(),
        }
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Surroundings")
            .field("now", &self.now)
            .field("seed", &self.seed)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
