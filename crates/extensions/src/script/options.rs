//! How an engine is set up.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Generation;
use crate::Bridge;
use crate::services::{NoServices, Services};

/// What went wrong outside of any call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uncaught {
    /// Where.
    pub generation: Generation,
    /// How.
    pub kind: UncaughtKind,
    /// The message of the error, or the thrown value as text.
    pub message: String,
    /// Where it was thrown, if the error knows.
    pub stack: Option<String>,
}

/// How an error got past everyone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UncaughtKind {
    /// A promise was rejected and nobody listened.
    Rejection,
    /// A timer or another callback of the host threw.
    Callback,
    /// Work in the background was interrupted.
    Interrupted,
    /// The scripts held too much memory: all generations are gone. Reported once for all of them.
    Exhausted,
}

/// How an engine is set up.
#[derive(Clone)]
pub struct ScriptOptions {
    /// How much memory scripts may hold; `None` for as much as there is.
    pub memory_limit: Option<usize>,
    /// How long a script may run without returning to the loop.
    pub busy_limit: Duration,
    /// How deep calls may nest, in bytes of stack.
    pub stack_size: usize,
    /// Where transformed scripts are kept; `None` to transform every time.
    pub cache_dir: Option<PathBuf>,
    /// What operations may ask of the program.
    pub services: Arc<dyn Services>,
    /// The way to the session extensions take part in; `None` for scripts on their own.
    pub bridge: Option<Arc<dyn Bridge>>,
    /// Is told of errors nobody caught.
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
