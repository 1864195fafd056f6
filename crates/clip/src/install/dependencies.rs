//! The npm packages a package needs, fetched by the program that will run it.

use std::ffi::OsString;
use std::time::Duration;

use pinion_tools::{Environment, Exit, Launch};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use crate::package::{Package, Runtime};
use crate::process::{Programs, bun, npm};
use crate::{ClipError, Code};

const PATIENCE: Duration = Duration::from_secs(300);
/// So much of what the program printed is told when it fails.
const TOLD: usize = 2000;

/// Runs `bun install`, or `npm install` where there is no bun, if the package needs others.
pub(super) async fn install(package: &Package, programs: &Programs) -> Result<(), ClipError> {
    let needs = matches!(package.runtime, Runtime::Bun | Runtime::Node) && package.wants_packages;
    if !needs {
        return Ok(());
    }
    let words: Vec<OsString> = match bun(programs).filter(|_| package.runtime == Runtime::Bun) {
        Some(bun) => vec![bun.into(), "install".into()],
        None => match npm() {
            Some(npm) => vec![npm.into(), "install".into(), "--no-audit".into()],
            None => {
                return Err(ClipError::new(
                    Code::FailedPrecondition,
                    "the package needs others from npm, and neither bun nor npm is on the PATH",
                ));
            }
        },
    };
    let wrong = |error: std::io::Error| ClipError::io("fetching npm packages", &error);
    let (output, theirs) = std::io::pipe().map_err(wrong)?;
    let errors = theirs.try_clone().map_err(wrong)?;
    let mut running = pinion_tools::launch(Launch {
        words,
        directory: package.directory.clone(),
        variables: Vec::new(),
        base: Environment::Ours,
        stdin: None,
        stdout: Some(theirs.into()),
        stderr: Some(errors.into()),
    })
    .await
    .map_err(wrong)?;
    let mut pipe = Receiver::from_owned_fd(output.into()).map_err(wrong)?;
    let mut printed = Vec::new();
    let reading = async {
        let mut buffer = [0; 4096];
        while let Ok(count) = pipe.read(&mut buffer).await
            && count > 0
        {
            printed.extend_from_slice(&buffer[..count]);
            let extra = printed.len().saturating_sub(TOLD);
            printed.drain(..extra);
        }
        running.wait().await
    };
    match tokio::time::timeout(PATIENCE, reading).await {
        Ok(Exit::Code(0)) => Ok(()),
        Ok(_) => Err(ClipError::new(
            Code::FailedPrecondition,
            format!(
                "the npm packages it needs could not be fetched: {}",
                String::from_utf8_lossy(&printed).trim()
            ),
        )),
        Err(_) => Err(ClipError::new(
            Code::DeadlineExceeded,
            "fetching the npm packages it needs took more than 5 minutes",
        )),
    }
}
