//! The token of the command line on the hub's own machine.

use std::path::Path;

use pinion_status::Failure;

use crate::{Token, disk};

/// The file under the root directory that holds the local super token.
pub const LOCAL_TOKEN: &str = "local.token";

/// Reads the local super token under `root`, if a hub has created one. A file that others can read is rejected.
pub fn local_token(root: &Path) -> Result<Option<Token>, Failure> {
    let content = disk::read_private(&root.join(LOCAL_TOKEN))?;
    let text = content.map(|content| String::from_utf8_lossy(&content.bytes).into_owned());
    Ok(text.and_then(|text| Token::given(&text)))
}
