//! Building blocks of sign-ins with OAuth: PKCE, the address to which the browser returns, pasted answers, and small
//! requests to authorization servers.
//!
//! Sign-ins to MCP servers and to model providers are made of them. This crate stores nothing and contains no provider.

#![warn(missing_docs)]

mod answer;
mod callback;
mod http;
mod pkce;

pub use answer::{AuthorizationAnswer, pasted_answer};
pub use callback::{Callback, Verdict};
pub use http::{Answer, HttpOptions, get, post, send};
pub use pkce::{Pkce, random_text};
