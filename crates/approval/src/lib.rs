//! Approvals: decides which tool calls of the model run, which are refused, and which require a question to the user.
//!
//! Rules name tools, paths and commands. The crate parses commands and resolves paths; questions go through the [`Ask`]
//! trait. It is not a sandbox: it does not observe what a permitted call does.

mod ask;
mod call;
mod client;
mod command;
mod files;
mod gate;
mod policy;
mod question;
mod rule;
mod settings;
mod shell;
mod simple_command;

pub use ask::{Absence, Answer, Ask, Unattended};
pub use client::ClientQuestions;
pub use gate::Approvals;
pub use policy::{Mode, Policy};
pub use question::{Question, visible};
pub use rule::{Origin, Rule, RuleError};
pub use settings::{ApprovalSettings, MAX_ANSWER_TIMEOUT, answer_timeout, project_rules};
