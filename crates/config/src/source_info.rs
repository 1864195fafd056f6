//! The source of a resource, in the form clients expect.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::Serialize;

use crate::paths;

/// The place where a template, a skill or an extension was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceInfo {
    #[serde(serialize_with = "paths::lossy")]
    pub path: PathBuf,
    /// `auto` (found), `local` (settings), `cli` (flag), or the source of a package as it was
    /// written.
    pub source: Cow<'static, str>,
    /// `user`, `project` or `temporary`.
    pub scope: &'static str,
    /// `top-level` or `package`.
    pub origin: &'static str,
    /// The directory that led to it: `.pi`, the agent directory or the package's root.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "paths::lossy_if_some"
    )]
    pub base_dir: Option<PathBuf>,
}

/// The owner of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The user's: the agent directory.
    User,
    /// The project's: `.pi` in the working directory.
    Project,
    /// Named by a flag, for this run only.
    Temporary,
}

impl Scope {
    /// The value in protocols.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Temporary => "temporary",
        }
    }
}
