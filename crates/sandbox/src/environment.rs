//! The environment of confined processes: no secrets, no ways to other programs of the user.

use std::ffi::OsString;

use crate::Policy;

/// Variables that lead to sockets of the user's session, or change which code programs load.
const DROPPED: &[&str] = &[
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DOCKER_HOST",
];

/// Reports whether a variable of this name probably holds a secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    if name.starts_with("PINIX_") || name.starts_with("PINION_") {
        return true;
    }
    let parts: Vec<&str> = name.split('_').collect();
    let has = |words: &[&str]| parts.iter().any(|part| words.contains(part));
    has(&[
        "TOKEN",
        "TOKENS",
        "SECRET",
        "SECRETS",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIAL",
        "CREDENTIALS",
        "APIKEY",
        "DSN",
        "JWT",
        "COOKIE",
    ]) || name.ends_with("_KEY")
        || name.ends_with("_KEY_ID")
        || name.ends_with("_PAT")
        || name == "DATABASE_URL"
        || name == "PGPASSWORD"
}

/// Returns the variables of a confined process: those of `all` that it may have, and those that describe the sandbox.
/// Variables in `kept` stay whatever their name.
pub fn confined_environment(
    policy: &Policy,
    all: impl IntoIterator<Item = (OsString, OsString)>,
    kept: &[&str],
) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = all
        .into_iter()
        .filter(|(name, _)| {
            let name = name.to_string_lossy();
            kept.contains(&name.as_ref())
                || policy.environment.iter().any(|known| *known == name)
                || !is_secret(&name) && !DROPPED.contains(&name.as_ref())
        })
        .collect();
    if let Some(temporary) = &policy.temporary {
        for name in ["TMPDIR", "TMP", "TEMP"] {
            variables.push((name.into(), temporary.into()));
        }
    }
    if let Some(home) = &policy.home {
        variables.push(("HOME".into(), home.into()));
    }
    variables.push(("PINION_SANDBOX".into(), policy.mode.name().into()));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NetworkMode;
    use crate::filter::tests::policy;

    #[test]
    fn secrets_and_sockets_are_dropped() {
        let mut policy = policy(NetworkMode::None);
        policy.temporary = Some("/tmp/run".into());
        policy.environment = vec!["NPM_TOKEN".into()];
        let names = [
            "PATH",
            "OPENAI_API_KEY",
            "NPM_TOKEN",
            "SSH_AUTH_SOCK",
            "PINION_RUN_ID",
            "PINION_X",
        ];
        let all = names.map(|name| (OsString::from(name), OsString::from("x")));
        let left = confined_environment(&policy, all, &["PINION_RUN_ID"]);
        let left: Vec<String> = left
            .into_iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        assert_eq!(
            left,
            [
                "PATH=x",
                "NPM_TOKEN=x",
                "PINION_RUN_ID=x",
                "TMPDIR=/tmp/run",
                "TMP=/tmp/run",
                "TEMP=/tmp/run",
                "PINION_SANDBOX=workspace"
            ]
        );
    }
}
