//! `pinion mcp login` and `logout`: sign-ins to MCP servers.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_agent_mcp::oauth::{self, SignInPrompt};
use pinion_cli::tables;
use pinion_config::Dirs;
use pinion_message::Mask;

use super::find;
use crate::commands::out;
use crate::failure::Failure;
use crate::verb::{Line, Verb};

/// The longest wait for the browser, in seconds.
const DEFAULT_TIMEOUT: u64 = 300;

pub(super) const LOGIN: Verb = Verb::new("pinion mcp", &tables::mcp::LOGIN, login);
pub(super) const LOGOUT: Verb = Verb::new("pinion mcp", &tables::mcp::LOGOUT, logout);

fn login(line: &Line) -> Result<ExitCode, Failure> {
    let [name] = line.exactly()?;
    let dirs = Dirs::from_env()?;
    let seconds = line.parsed::<u64>("--timeout", "a number of seconds")?;
    let entry = find(&dirs, name, line.has("--local"))?;
    let limit = Duration::from_secs(seconds.unwrap_or(DEFAULT_TIMEOUT));
    let mask = Mask::default();
    let runtime = pinion_process::runtime::build()?;
    let signed_in = runtime.block_on(oauth::sign_in(&entry, &dirs, &mask, limit, &Terminal));
    // A thread may still wait for a line of standard input.
    runtime.shutdown_background();
    let failed = |error: String| Failure::failed(format!("{}", mask.text(&error)));
    signed_in.map_err(failed)?;
    out(&format!("Signed in to MCP server {name}\n"))
}

fn logout(line: &Line) -> Result<ExitCode, Failure> {
    let [name] = line.exactly()?;
    let dirs = Dirs::from_env()?;
    let entry = find(&dirs, name, line.has("--local"))?;
    let text = if oauth::sign_out(&entry, &dirs)? {
        format!("Signed out of MCP server {name}\n")
    } else {
        format!("There is no sign-in to MCP server {name}\n")
    };
    out(&text)
}

/// Shows the address on stderr, and reads a pasted address if standard input is a terminal.
struct Terminal;

impl SignInPrompt for Terminal {
    fn show(&self, url: &str) {
        eprintln!("Open this address in a browser to sign in:\n\n{url}\n");
        if std::io::stdin().is_terminal() {
            eprintln!(
                "If the browser runs on another machine, paste the address that it shows at the end here:"
            );
        }
    }

    fn pasted(&self) -> BoxFuture<'_, String> {
        if !std::io::stdin().is_terminal() {
            return Box::pin(std::future::pending());
        }
        Box::pin(async {
            let read = tokio::task::spawn_blocking(|| {
                let mut line = String::new();
                std::io::stdin().read_line(&mut line).ok().map(|_| line)
            });
            match read.await {
                Ok(Some(line)) if !line.trim().is_empty() => line,
                _ => std::future::pending().await,
            }
        })
    }
}
