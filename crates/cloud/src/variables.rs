//! The surroundings of a chain: variables, files and commands.

use std::path::PathBuf;

use futures_util::future::BoxFuture;

/// More than any file of credentials needs.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Runs the commands that the user's own configuration names.
pub trait CommandRunner: Send + Sync {
    /// Returns the output of a command of the shell. The error completes "the command …".
    fn run(&self, command: String) -> BoxFuture<'_, Result<String, String>>;
}

/// The variables of an environment.
pub trait Variables: Send + Sync {
    /// The value of a variable that is set and not empty.
    fn get(&self, name: &str) -> Option<String>;
}

impl<F: Fn(&str) -> Option<String> + Send + Sync> Variables for F {
    fn get(&self, name: &str) -> Option<String> {
        self(name)
    }
}

/// Returns a path below the home directory.
pub(crate) fn in_home(variables: &dyn Variables, path: &str) -> Option<PathBuf> {
    variables
        .get("HOME")
        .map(|home| PathBuf::from(home).join(path))
}

/// Reads a file off the async threads; `None` if there is none. The error names the file.
pub(crate) async fn read_file(path: PathBuf) -> Result<Option<String>, String> {
    let shown = path.display().to_string();
    let read = tokio::task::spawn_blocking(move || pinion_files::read_text(&path, MAX_FILE_BYTES));
    match read.await {
        Ok(Ok(text)) => Ok(Some(text)),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Ok(Err(error)) => Err(format!("{shown}: {error}")),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}
