//! Logins at model providers: how to sign in, how to renew a stored login, and the key that requests send.
//!
//! A [`LoginProvider`] is one way to do that. [`built_in`] has those of pinion; extensions add their own. This crate
//! neither stores logins nor decides when one is renewed: `pinion-llm` does, under the lock that all processes share.
//!
//! pinion signs in only where the vendor documents that for other programs. Logins that pi stored for other providers
//! are renewed, because that needs no imitation; [`not_offered`] explains the rest.

#![warn(missing_docs)]

mod built_in;
mod codex;
mod conversation;
mod kimi;
mod login;
mod meta;
mod openai;
mod openrouter;
mod provider;
mod records;
mod tokens;
mod xai;

pub use built_in::{built_in, not_offered, sign_in_providers};
pub use codex::{OpenAiCodex, account_id};
pub use conversation::{
    Choice, DeviceCode, LoginConversation, LoginMessage, LoginQuestion, Silent,
};
pub use kimi::KimiCoding;
pub use login::{Login, RENEWAL_MARGIN};
pub use meta::Meta;
pub use openai::OpenAi;
pub use openrouter::OpenRouter;
pub use provider::{LoginError, LoginProvider, RequestAccess, SignIn};
pub use records::{DialogConversation, SendRecord};
pub use xai::Xai;
