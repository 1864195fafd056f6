//! The client side of a hub: finds the hub and the token to use, calls clips, and manages clips, tokens and logins.
//!
//! [`HubTarget`] chooses the address and the token from flags, the environment and files. [`HubClient`] calls the hub's
//! methods, and [`HubClient::explain`] turns a failure into a message with a way to fix it. [`TokenManager`] changes
//! tokens in the files of a hub or over HTTP. Reading flags and printing are left to the program.
//!
//! ```no_run
//! # async fn example() -> Result<(), pinion_status::Failure> {
//! use pinion_hub_client::{ClientSettings, HubClient, HubTarget};
//!
//! let environment = |name: &str| std::env::var(name).ok();
//! let target = HubTarget::choose("/home/me/.pinion/hub".as_ref(), None, None, environment)?;
//! let client = HubClient::new(target, ClientSettings::default())?;
//! for clip in client.clips().await? {
//!     println!("{}", clip.name.as_str());
//! }
//! # Ok(())
//! # }
//! ```

mod agent_chat;
mod bindings;
mod client;
mod clip_text;
mod cluster;
mod data;
mod login;
mod target;
mod tokens;

pub use agent_chat::{AgentChat, ChatAnswer, ChatEvent, ChatText};
pub use bindings::{Slot, candidates_json, keep_slot, slots};
pub use client::{ClientSettings, HubClient, commands, hub_error, is_from_registry};
pub use clip_text::{
    CLIP_HEADINGS, added_text, clip_in_tabs, clip_row, hub_info_text, keep_command, manifest_text,
    updated_text,
};
pub use cluster::cluster_report;
pub use data::{data_request, data_rows, decode_content, stat_text};
pub use login::{
    log_in_with_token, remove_login, remove_registry_login, store_login, store_registry_login,
};
pub use target::HubTarget;
pub use tokens::{TOKEN_HEADINGS, TokenManager, TokenRequest, minute, token_row};
