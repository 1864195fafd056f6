//! Calls to a hub from the command line.

use std::io::IsTerminal;
use std::process::ExitCode;

use pinion_connect::{Receiver, Roots};
use pinion_hub_client::{ClientSettings, HubClient, HubTarget};
use pinion_proto::Binary;

use super::{duration, environment, root_dir};
use crate::commands::out;
use crate::failure::{Context, Failure};
use crate::verb::Line;

/// The largest file of certificates, in bytes.
const PEM_LIMIT: u64 = 16 << 20;

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
        if line.has("--json") || !std::io::stdout().is_terminal() {
            Self::Json
        } else {
            Self::Table
        }
    }
}

/// Prints one line of JSON or a text, in the output format of the command line.
pub(crate) fn print(
    line: &Line,
    json: impl FnOnce() -> String,
    text: impl FnOnce() -> String,
) -> Result<ExitCode, Failure> {
    out(&match Shape::of(line) {
        Shape::Json => json() + "\n",
        Shape::Table => text(),
    })
}

/// Sends one request to the hub that the command line names, and returns its answer.
pub(crate) fn ask<Req: Binary, Resp: Binary>(
    line: &Line,
    method: &str,
    request: &Req,
) -> Result<Resp, Failure> {
    let caller = Caller::of(line)?;
    wait(caller.ask(method, request))
}

/// A client of the hub that a command line names, whose failures are messages for the user.
pub(crate) struct Caller(HubClient);

impl Caller {
    /// Creates a client for the hub that the command line names, with the token for it.
    pub fn of(line: &Line) -> Result<Self, Failure> {
        let (server, token) = (line.value("--server"), line.value("--auth-token"));
        let target = HubTarget::choose(&root_dir(line)?, server, token, environment);
        let timeout = line.value("--timeout");
        let timeout = timeout.map(|text| duration(line, "--timeout", text));
        let settings = ClientSettings {
            timeout: timeout.transpose()?.filter(|time| !time.is_zero()),
            roots: roots(line)?,
        };
        Ok(Self(HubClient::new(target?, settings)?))
    }

    pub fn client(&self) -> &HubClient {
        &self.0
    }

    /// Sends one request and returns its answer.
    pub async fn ask<Req: Binary, Resp: Binary>(
        &self,
        method: &str,
        request: &Req,
    ) -> Result<Resp, Failure> {
        self.explained(self.0.call(method, request)).await
    }

    /// Sends one request and returns a stream of answers.
    pub async fn follow<Req: Binary, Resp: Binary>(
        &self,
        method: &str,
        request: &Req,
    ) -> Result<Receiver<Resp>, Failure> {
        self.explained(self.0.stream(method, request)).await
    }

    /// Converts the failure of a call to a message for the user.
    pub async fn explained<T>(
        &self,
        call: impl Future<Output = Result<T, pinion_status::Failure>>,
    ) -> Result<T, Failure> {
        call.await.map_err(|failure| self.explain(failure))
    }

    /// Converts a failure to a message for the user.
    pub fn explain(&self, failure: pinion_status::Failure) -> Failure {
        self.0.explain(failure).into()
    }
}

/// Returns the certificates that the client trusts: those of `--ca`, else the platform's.
fn roots(line: &Line) -> Result<Roots, Failure> {
    let Some(path) = line.value("--ca") else {
        return Ok(Roots::Platform);
    };
    let pem = pinion_files::read_named(path.as_ref(), PEM_LIMIT);
    Ok(Roots::Pem(pem.context(path)?))
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
