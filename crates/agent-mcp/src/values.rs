//! Values of `env` and `headers`: `${NAME}` is a variable of the environment, and `!command` the output of a command.

use std::path::Path;
use std::time::Duration;

use pinion_tools::{ShellOptions, ShellOutcome, ToolSettings, run_shell};
use tokio_util::sync::CancellationToken;

/// Commands may ask a password manager, which can take seconds.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest output of a command, in bytes.
const MAX_OUTPUT_BYTES: usize = 64 << 10;

/// Returns the value that `text` stands for. The error is a sentence without the value.
pub(crate) async fn resolve(text: &str, cwd: &Path) -> Result<String, String> {
    match text.strip_prefix('!') {
        Some(command) => output(command, cwd).await,
        None => with_variables(text, |name| std::env::var(name).ok()),
    }
}

async fn output(command: &str, cwd: &Path) -> Result<String, String> {
    let mut printed = Vec::new();
    let mut is_too_long = false;
    let settings = ToolSettings::default();
    let cancel = CancellationToken::new();
    let options = ShellOptions {
        cwd,
        settings: &settings,
        timeout: Some(COMMAND_TIMEOUT),
        follower: None,
    };
    // The output goes to a closure that outlives the command, so that it can be bounded.
    let ended = run_shell(command, options, &cancel, |bytes| {
        if printed.len() + bytes.len() > MAX_OUTPUT_BYTES {
            is_too_long = true;
        } else {
            printed.extend_from_slice(bytes);
        }
    });
    let reason = match ended.await {
        Ok(ShellOutcome::Exited(0)) if !is_too_long => {
            let text = String::from_utf8_lossy(&printed).trim().to_owned();
            if !text.is_empty() {
                return Ok(text);
            }
            "it printed nothing".to_owned()
        }
        Ok(ShellOutcome::Exited(0)) => format!("it printed more than {MAX_OUTPUT_BYTES} bytes"),
        Ok(ShellOutcome::Exited(code)) => format!("it exited with code {code}"),
        Ok(ShellOutcome::TimedOut) => {
            format!("it took more than {} s", COMMAND_TIMEOUT.as_secs())
        }
        Ok(ShellOutcome::Signalled | ShellOutcome::Aborted) => "it was killed".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(format!("the command of a value failed: {reason}"))
}

fn with_variables(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        let value = variable(name).ok_or_else(|| {
            format!("the environment variable {name} is not set; set it before you start pinion")
        })?;
        filled.push_str(before);
        filled.push_str(&value);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Replaces a leading `~/` by the home directory.
pub(crate) fn with_home(text: &str, home: &Path) -> String {
    match text.strip_prefix("~/") {
        Some(rest) => home.join(rest).to_string_lossy().into_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_and_absent_ones_are_named() {
        let lookup = |name: &str| (name == "KEY").then(|| "k3y".to_owned());
        assert_eq!(
            with_variables("Bearer ${KEY}!", lookup).as_deref(),
            Ok("Bearer k3y!")
        );
        assert_eq!(with_variables("$KEY ${", lookup).as_deref(), Ok("$KEY ${"));
        let error = with_variables("${NONE}", lookup).unwrap_err();
        assert!(error.contains("NONE is not set"), "{error}");
    }

    #[tokio::test]
    async fn commands_give_values() {
        let cwd = Path::new("/");
        assert_eq!(
            resolve("!printf ' x y\\n'", cwd).await.as_deref(),
            Ok("x y")
        );
        let failed = resolve("!echo secret; exit 3", cwd).await.unwrap_err();
        assert!(failed.contains("code 3"), "{failed}");
        assert!(!failed.contains("secret"), "{failed}");
    }
}
