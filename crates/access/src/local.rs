//! The token that lets the command line in on the machine of the hub.

use std::path::Path;

use pinion_status::Failure;

use crate::{Token, disk};

/// The file under the root directory that holds the local super token.
pub const LOCAL_TOKEN: &str = "local.token";

/// The local super token under `root`, if a hub has made one. A file that others can read is refused.
pub fn local_token(root: &Path) -> Result<Option<Token>, Failure> {
    let content = disk::read_private(&root.join(LOCAL_TOKEN))?;
    let text = content.map(|content| String::from_utf8_lossy(&content.bytes).into_owned());
    Ok(text.and_then(|text| Token::given(&text)))
}
