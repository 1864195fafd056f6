//! Which tool calls of the model are made, which are refused, and which somebody is asked about.
//!
//! Rules name tools, paths and commands. The crate reads commands and resolves paths; it talks to nobody:
//! who asks is behind [`Ask`]. It is a fence, not a sandbox: what a permitted call does is not watched.

mod ask;
mod call;
mod command;
mod files;
mod gate;
mod line;
mod policy;
mod question;
mod rule;
mod shell;

pub use ask::{Absence, Answer, Ask, Nobody};
pub use gate::Approvals;
pub use policy::{Mode, Policy};
pub use question::Question;
pub use rule::{Origin, Rule, RuleError};
