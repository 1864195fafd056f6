//! Starts the program of a server, with its arguments, directory and environment.

use std::ffi::OsString;
use std::io;

use pinion_process::{Confinement, Environment, Launch, Pipes, Reason, Running};

use super::{MountConfig, Target};

pub(super) async fn start(config: &MountConfig) -> io::Result<(Running, Pipes)> {
    let Target::Command {
        words,
        directory,
        variables,
        pass,
    } = &config.target
    else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let launch = Launch {
        words: words.clone(),
        directory: directory.clone(),
        variables: environment(std::env::vars_os(), variables, pass),
        base: Environment::Empty,
        confinement: Confinement::Unconfined(Reason::Installed),
        stdin: None,
        stdout: None,
        stderr: None,
    };
    pinion_process::launch_piped(launch).await
}

/// Returns the environment of the program: the hub's, without its secrets, plus the variables configured for the
/// server.
fn environment(
    ours: impl Iterator<Item = (OsString, OsString)>,
    more: &[(OsString, OsString)],
    pass: &[String],
) -> Vec<(OsString, OsString)> {
    let passed = |name: &OsString| {
        let is_secret =
            |name: &str| pinion_clip::is_secret(name) && !pass.iter().any(|it| it == name);
        !name.to_str().is_some_and(is_secret) && !more.iter().any(|(known, _)| known == name)
    };
    let ours = ours.filter(|(name, _)| passed(name));
    ours.chain(more.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_inherited_unless_configured() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
            let pairs = pairs.iter();
            pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect()
        };
        let ours = pairs(&[
            ("PATH", "/bin"),
            ("OPENAI_API_KEY", "kept"),
            ("GITHUB_TOKEN", "passed"),
            ("MODE", "ours"),
        ]);
        let more = pairs(&[("MODE", "theirs"), ("SOME_TOKEN", "given")]);
        let seen = environment(ours.into_iter(), &more, &["GITHUB_TOKEN".to_owned()]);
        let expected = pairs(&[
            ("PATH", "/bin"),
            ("GITHUB_TOKEN", "passed"),
            ("MODE", "theirs"),
            ("SOME_TOKEN", "given"),
        ]);
        assert_eq!(seen, expected);
    }
}
