//! The surroundings in which a command line is parsed: a directory, an environment, standard input, a clock.

use std::fmt;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Zoned;
use pinion_templates::Lookup;

/// The most bytes that are read from one file or from standard input.
pub(crate) const MAX_FILE_BYTES: u64 = 64 << 20;

/// The surroundings of a command. It never reads the state of the process itself.
pub struct World {
    /// The directory that relative paths start from.
    pub directory: PathBuf,
    /// Looks up an environment variable.
    pub environment: Lookup,
    /// The input for `-`. It is read once; every `-` is the same text.
    pub stdin: Box<dyn Read + Send>,
    /// The time that words such as `yesterday` refer to.
    pub now: Zoned,
    read: Option<Arc<str>>,
    /// The option that uses standard input itself.
    claimed: Option<String>,
}

impl World {
    /// Creates surroundings with an empty environment and empty standard input.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            environment: Arc::new(|_| None),
            stdin: Box::new(std::io::empty()),
            now: pinion_text::zone::now(),
            read: None,
            claimed: None,
        }
    }

    /// Sets the environment.
    #[must_use]
    pub fn with_environment(
        mut self,
        environment: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.environment = Arc::new(environment);
        self
    }

    /// Sets standard input.
    #[must_use]
    pub fn with_stdin(mut self, stdin: impl Read + Send + 'static) -> Self {
        self.stdin = Box::new(stdin);
        self
    }

    /// Sets the time.
    #[must_use]
    pub fn at(mut self, now: Zoned) -> Self {
        self.now = now;
        self
    }

    /// Reserves standard input, so that no field may read it.
    pub(crate) fn claim_stdin(&mut self, option: &str) {
        self.claimed = Some(option.to_owned());
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Reads a file, or standard input for `-`.
    pub(crate) fn text(&mut self, name: &str) -> Result<Arc<str>, String> {
        if name == "-" {
            return self.input();
        }
        let path = self.path(name);
        let file = pinion_files::open_named(&path).map_err(|error| match error.kind() {
            ErrorKind::IsADirectory => format!("{name} is a directory, expected a file"),
            ErrorKind::InvalidInput => format!("{name} {error}"),
            _ => format!("cannot open {name}: {error}"),
        })?;
        limited(file, name)
    }

    fn input(&mut self) -> Result<Arc<str>, String> {
        if let Some(option) = &self.claimed {
            return Err(format!(
                "--{option} uses standard input; name a file instead of -"
            ));
        }
        if let Some(text) = &self.read {
            return Ok(Arc::clone(text));
        }
        let text = limited(&mut self.stdin, "standard input")?;
        self.read = Some(Arc::clone(&text));
        Ok(text)
    }
}

fn limited(source: impl Read, name: &str) -> Result<Arc<str>, String> {
    let mut bytes = Vec::new();
    source
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot read {name}: {error}"))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!(
            "{name} is larger than {} MiB",
            MAX_FILE_BYTES >> 20
        ));
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into(),
    })
}

/// Returns a path relative to a directory.
pub(crate) fn relative_to(path: &Path, directory: &Path) -> String {
    path.strip_prefix(directory)
        .unwrap_or(path)
        .display()
        .to_string()
}

impl fmt::Debug for World {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("World")
            .field("directory", &self.directory)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}
