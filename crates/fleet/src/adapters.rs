//! The adapters, one file per kind of child.

mod claude;
mod codex;
mod jsonl;
mod opencode;
mod pi;

pub(crate) use self::claude::Claude;
pub(crate) use self::codex::Codex;
pub(crate) use self::jsonl::Jsonl;
pub(crate) use self::opencode::Opencode;
pub(crate) use self::pi::Pi;
