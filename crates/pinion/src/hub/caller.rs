//! Calls to a hub from the command line: its address, its token, and messages for failures.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use pinion_access::client::{CLI_VARIABLE, ClientConfig, TokenQuery};
use pinion_connect::{Client, ClientOptions, Code, Failure as Refusal, Receiver, Roots};
use pinion_proto::Binary;

use super::seat::{Holder, pid_file};
use super::{duration, failed, place};
use crate::failure::Failure;
use crate::verb::Line;

/// The environment variable with the address of the hub; clips receive it too.
pub(crate) const ADDRESS_VARIABLE: &str = "PINIX_URL";
const DEFAULT_ADDRESS: &str = "http://127.0.0.1:9000";
const SERVICE: &str = "pinix.v2.HubService";

/// Returns the path of a method of the hub service.
pub(crate) fn path_of(method: &str) -> String {
    format!("{SERVICE}/{method}")
}

/// The output format of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Text for people.
    Table,
    /// JSON for programs.
    Json,
}

impl Shape {
    /// Returns JSON if `--json` is given or stdout is not a terminal.
    pub fn of(line: &Line) -> Self {
        match line.has("--json") || !std::io::stdout().is_terminal() {
            true => Self::Json,
            false => Self::Table,
        }
    }
}

/// A client of one hub, with its address, token and timeout.
pub(crate) struct Caller {
    client: Client,
    url: String,
    token: Option<String>,
    timeout: Option<Duration>,
}

impl Caller {
    /// Creates a client for the hub that the command line names, with the token for it.
    pub fn of(line: &Line) -> Result<Self, Failure> {
        let root = place::root(line)?;
        let holder = Holder::at(&pid_file(&root));
        let url = address(line.value("--server"), &root, holder.as_ref())?;
        let wanted = TokenQuery {
            root: &root,
            flag: line.value("--auth-token"),
            variable: CLI_VARIABLE,
            hub: &url,
            local_hub: holder.as_ref().map(|holder| holder.url.as_str()),
        };
        let chosen = wanted
            .choose(|name| std::env::var(name).ok())
            .map_err(failed)?;
        let token = chosen.map(|chosen| chosen.token.reveal().to_owned());
        let timeout = line.value("--timeout");
        let timeout = timeout.map(|text| duration(line, "--timeout", text));
        let options = ClientOptions {
            token: token.clone(),
            roots: roots(line)?,
            ..ClientOptions::default()
        };
        Ok(Self {
            client: Client::new(&url, options).map_err(failed)?,
            url,
            token,
            timeout: timeout.transpose()?.filter(|time| !time.is_zero()),
        })
    }

    /// Returns the address of the hub.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the token that the client sends to the hub.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Sends one request and returns its answer.
    pub async fn ask<Req: Binary, Resp: Binary>(
        &self,
        method: &str,
        request: &Req,
    ) -> Result<Resp, Failure> {
        let method = path_of(method);
        let answer = self.client.unary(&method, request, self.timeout).await;
        answer.map_err(|refusal| self.explain(refusal))
    }

    /// Sends one request and returns a stream of answers.
    pub async fn follow<Req: Binary, Resp: Binary>(
        &self,
        method: &str,
        request: &Req,
    ) -> Result<Receiver<Resp>, Failure> {
        let method = path_of(method);
        let answer = self.client.server_stream(&method, request, self.timeout);
        answer.await.map_err(|refusal| self.explain(refusal))
    }

    /// Converts a refusal to a message for the user.
    pub fn explain(&self, refusal: Refusal) -> Failure {
        let Refusal { code, message, .. } = &refusal;
        let url = &self.url;
        let words = match code {
            Code::Unavailable if message.starts_with("no connection to") => format!(
                "no hub answers at {url} ({message}). Start one with `pinion hub serve`, or name another with --server."
            ),
            Code::Unavailable if message.starts_with("the connection to") => format!(
                "the hub at {url} went away before it had answered ({message}). What was asked may have been done."
            ),
            Code::Unauthenticated if self.token.is_none() => format!(
                "the hub at {url} needs a token. Log in with `pinion hub login`, or give one with --auth-token or {CLI_VARIABLE}; \
                 the owner of the hub makes one with `pinion hub token create`."
            ),
            Code::Unauthenticated => format!(
                "the hub at {url} does not accept this token: {message}. The owner of the hub makes another with \
                 `pinion hub token create`; `pinion hub login` keeps it."
            ),
            _ => message.to_string(),
        };
        Failure::failed(format!("Error: {words}"))
    }
}

/// Returns the address of the hub: `named`, else the environment's, `client.json`'s, the running hub's of this machine,
/// or the default.
pub(crate) fn address(
    named: Option<&str>,
    root: &Path,
    holder: Option<&Holder>,
) -> Result<String, Failure> {
    let running = || {
        holder
            .map_or(DEFAULT_ADDRESS, |holder| &holder.url)
            .to_owned()
    };
    Ok(pointed_at(named, root)?.unwrap_or_else(running))
}

/// Returns the hub that the user chose with a flag, in the environment or in `client.json`.
pub(crate) fn pointed_at(named: Option<&str>, root: &Path) -> Result<Option<String>, Failure> {
    if let Some(server) = named {
        return Ok(Some(with_scheme(server)));
    }
    let set = std::env::var(ADDRESS_VARIABLE).ok();
    if let Some(set) = set.filter(|set| !set.trim().is_empty()) {
        return Ok(Some(with_scheme(&set)));
    }
    let config = ClientConfig::load(root).map_err(failed)?;
    Ok(config.hub.as_deref().map(with_scheme))
}

/// The largest file of certificates, in bytes.
const PEM_LIMIT: u64 = 16 << 20;

/// Returns the certificates that the client trusts: those of `--ca`, else the platform's.
fn roots(line: &Line) -> Result<Roots, Failure> {
    let Some(path) = line.value("--ca") else {
        return Ok(Roots::Platform);
    };
    let pem = pinion_files::read_named(path.as_ref(), PEM_LIMIT)
        .map_err(|error| Failure::failed(format!("Error: {path}: {error}")))?;
    Ok(Roots::Pem(pem))
}

fn with_scheme(address: &str) -> String {
    let address = address.trim().trim_end_matches('/');
    match address.contains("://") {
        true => address.to_owned(),
        false => format!("http://{address}"),
    }
}

/// Waits for `work` to finish. Ctrl-C cancels it.
pub(crate) fn wait<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = crate::runtime::build()?;
    let done = runtime.block_on(async {
        tokio::select! {
            done = work => done,
            _ = tokio::signal::ctrl_c() => Err(Failure::interrupted()),
        }
    });
    runtime.shutdown_background();
    done
}
