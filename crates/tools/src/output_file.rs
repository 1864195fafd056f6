//! Files in the temporary directory for results that are too long for the model.

use std::io::{self, Write};
use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use crate::run_blocking;

/// Writes a new file that only the user can read, and returns its path.
pub async fn write_output_file(
    prefix: &'static str,
    extension: &'static str,
    content: Vec<u8>,
) -> io::Result<PathBuf> {
    let write = move || {
        let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
        let name = format!("{prefix}-{:016x}.{extension}", high ^ low);
        let path = std::env::temp_dir().join(name);
        let written =
            pinion_files::create_new(&path, 0o600).and_then(|mut file| file.write_all(&content));
        if written.is_err() {
            // An incomplete file is not worth the space.
            let _ = std::fs::remove_file(&path);
        }
        written.map(|()| path)
    };
    let written = run_blocking(&CancellationToken::new(), write).await;
    written.unwrap_or_else(|error| Err(io::Error::other(error)))
}
