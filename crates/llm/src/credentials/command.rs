//! Keys that a command prints: `!op read …`.
//!
//! The command comes from the user's own files, never from a project's. It has no standard input,
//! its stderr is dropped, and it must end within ten seconds.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinion_message::Secret;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::sync::OnceCell;

/// Commands may ask a password manager, which can take seconds.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes; no key is longer.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024;

/// The outputs of commands in this process, so that each command needs to succeed only once.
#[derive(Debug, Default)]
pub(crate) struct CommandCache {
    results: Mutex<HashMap<String, Arc<OnceCell<Secret>>>>,
}

impl CommandCache {
    /// The trimmed output of `command`. Simultaneous callers share one run.
    pub(crate) async fn output(&self, command: &str) -> Result<Secret, String> {
        let cell = {
            let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(results.entry(command.to_owned()).or_default())
        };
        cell.get_or_try_init(|| run(command, COMMAND_TIMEOUT))
            .await
            .cloned()
    }
}

/// Runs `command` now and returns its trimmed output.
pub(crate) async fn run_now(command: &str) -> Result<Secret, String> {
    run(command, COMMAND_TIMEOUT).await
}

async fn run(command: &str, limit: Duration) -> Result<Secret, String> {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command);
    shell
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    shell.process_group(0).kill_on_drop(true);
    #[cfg(target_os = "linux")]
    die_with_parent(&mut shell);
    let child = shell
        .spawn()
        .map_err(|error| format!("it could not be started: {error}"))?;
    let mut running = RunningCommand {
        child,
        ended: false,
    };

    let finished = tokio::time::timeout(limit, async {
        let mut output = Vec::new();
        if let Some(stdout) = running.child.stdout.take() {
            stdout
                .take(MAX_OUTPUT_BYTES)
                .read_to_end(&mut output)
                .await?;
        }
        let status = running.child.wait().await?;
        std::io::Result::Ok((output, status))
    })
    .await;
    let (output, status) = match finished {
        Err(_) => return Err(format!("it did not finish within {} s", limit.as_secs())),
        Ok(Err(error)) => return Err(format!("its output could not be read: {error}")),
        Ok(Ok(finished)) => finished,
    };
    running.ended = true;
    if !status.success() {
        return Err(format!("it failed ({status})"));
    }
    let output = String::from_utf8(output).map_err(|_| "its output is not UTF-8".to_owned())?;
    match output.trim() {
        "" => Err("it printed nothing".to_owned()),
        key => Ok(Secret::from(key)),
    }
}

/// A running command. Dropping it before its end kills its whole process group.
struct RunningCommand {
    child: Child,
    ended: bool,
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if let Some(group) = self.child.id().and_then(|id| i32::try_from(id).ok()) {
            #[allow(unsafe_code, reason = "the standard library cannot signal a group")]
            // SAFETY: kill takes plain numbers. The child leads the group and has not been
            // reaped (`id` is some), so the number still names that group.
            unsafe {
                libc::kill(-group, libc::SIGKILL);
            }
        }
    }
}

/// Makes the kernel end the command when this process ends.
#[cfg(target_os = "linux")]
#[allow(
    unsafe_code,
    reason = "only code that runs between fork and exec can ask for this"
)]
fn die_with_parent(shell: &mut Command) {
    // SAFETY: the closure makes one system call with plain numbers; prctl is safe to call between
    // fork and exec, and nothing is allocated.
    unsafe {
        shell.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;

    #[tokio::test]
    async fn output_is_trimmed() {
        let key = run("printf '  k-1 \\n'; echo noise >&2", COMMAND_TIMEOUT)
            .await
            .unwrap();
        assert_eq!(key.expose_secret(), "k-1");
    }

    #[tokio::test]
    async fn errors_name_the_cause() {
        assert!(
            run("exit 3", COMMAND_TIMEOUT)
                .await
                .unwrap_err()
                .contains("exit status: 3")
        );
        assert_eq!(
            run("true", COMMAND_TIMEOUT).await.unwrap_err(),
            "it printed nothing"
        );
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_ended_with_its_children() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pid");
        let command = format!("sleep 600 & echo $! > '{}'; wait", file.display());
        let reason = run(&command, Duration::from_millis(300)).await.unwrap_err();
        assert!(reason.contains("did not finish"), "{reason}");
        let id = std::fs::read_to_string(file).unwrap();
        let process = std::path::PathBuf::from(format!("/proc/{}/stat", id.trim()));
        // The kernel needs a moment; a process that lives on fails the test by its time limit.
        while std::fs::read_to_string(&process).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn a_command_succeeds_only_once_but_a_failure_is_tried_again() {
        let directory = tempfile::tempdir().unwrap();
        let count = directory.path().join("count");
        let command = format!(
            "echo x >> '{0}'; [ $(wc -l < '{0}') -ge 2 ] && echo key",
            count.display()
        );
        let cache = CommandCache::default();
        assert!(cache.output(&command).await.is_err());
        for _ in 0..3 {
            assert_eq!(cache.output(&command).await.unwrap().expose_secret(), "key");
        }
        assert_eq!(std::fs::read_to_string(count).unwrap(), "x\nx\n");
    }
}
