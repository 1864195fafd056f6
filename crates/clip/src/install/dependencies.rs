//! Fetches the npm packages that a package depends on.

use std::ffi::OsString;

use super::run::run;
use crate::package::{Package, Runtime};
use crate::process::{Programs, bun, npm};
use crate::{ClipError, Code};

/// Runs `bun install`, or `npm install` where bun is missing, if the package has dependencies.
pub(super) async fn install(package: &Package, programs: &Programs) -> Result<(), ClipError> {
    let needs = matches!(package.runtime, Runtime::Bun | Runtime::Node) && package.wants_packages;
    if !needs {
        return Ok(());
    }
    let words: Vec<OsString> = match bun(programs).filter(|_| package.runtime == Runtime::Bun) {
        Some(bun) => vec![bun.into(), "install".into()],
        None => match npm(programs) {
            Some(npm) => vec![npm.into(), "install".into(), "--no-audit".into()],
            None => {
                return Err(ClipError::new(
                    Code::FailedPrecondition,
                    "the package needs others from npm, and neither bun nor npm is on the PATH",
                ));
            }
        },
    };
    let doing = "fetching the npm packages it needs";
    run(words, &package.directory, Vec::new(), doing)
        .await
        .map(drop)
}
