//! Settings of an engine.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Generation;
use crate::Bridge;
use crate::services::{NoServices, Services};

/// An error outside of any call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uncaught {
    pub generation: Generation,
    pub kind: UncaughtKind,
    /// The message of the error, or the thrown value as text.
    pub message: String,
    /// The stack trace, if the error has one.
    pub stack: Option<String>,
}

/// The origin of an uncaught error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UncaughtKind {
    /// A promise without a handler was rejected.
    Rejection,
    /// A timer or another callback of the host threw.
    Callback,
    /// Background work was interrupted.
    Interrupted,
    /// The scripts used too much memory and all generations were dropped. Reported once for all of them.
    Exhausted,
}

/// Settings of an engine.
#[derive(Clone)]
pub struct ScriptOptions {
    /// Bytes that scripts may hold; `None` for no limit.
    pub memory_limit: Option<usize>,
    /// Time that a script may run without returning to the event loop.
    pub busy_limit: Duration,
    /// Bytes of stack for nested calls.
    pub stack_size: usize,
    /// The directory of the cache of transformed scripts; `None` to transform every time.
    pub cache_dir: Option<PathBuf>,
    /// The parts of the program that operations may use.
    pub services: Arc<dyn Services>,
    /// The connection to the session that extensions are hooks of; `None` for scripts without a session.
    pub bridge: Option<Arc<dyn Bridge>>,
    /// Receives uncaught errors.
    pub on_uncaught: Arc<dyn Fn(Uncaught) + Send + Sync>,
}

impl std::fmt::Debug for ScriptOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ScriptOptions")
            .field("memory_limit", &self.memory_limit)
            .field("busy_limit", &self.busy_limit)
            .field("stack_size", &self.stack_size)
            .field("cache_dir", &self.cache_dir)
            .finish_non_exhaustive()
    }
}

impl Default for ScriptOptions {
    fn default() -> Self {
        Self {
            memory_limit: Some(512 << 20),
            busy_limit: Duration::from_secs(10),
            stack_size: 4 << 20,
            cache_dir: None,
            services: Arc::new(NoServices),
            bridge: None,
            on_uncaught: Arc::new(|uncaught| eprintln!("Uncaught {}", uncaught.message)),
        }
    }
}
