//! The way to a cluster, as a command line and the environment describe it.

use std::path::{Path, PathBuf};

use pinion_status::Failure;

use crate::bus::TlsFiles;
use crate::credentials::Credentials;
use crate::names::ClusterName;
use crate::servers::{Encryption, ServerList};
use crate::stream::Replicas;

/// The environment variable with the addresses of the servers, which may contain a name and a password.
pub const ADDRESSES_VARIABLE: &str = "PINION_CLUSTER";
/// The environment variable with the path of a file of credentials.
pub const CREDENTIALS_VARIABLE: &str = "PINION_CLUSTER_CREDS";

/// What a person typed about a cluster. Texts that are missing are taken from the environment.
#[derive(Debug, Default)]
pub struct AccessFlags<'a> {
    pub addresses: Option<&'a str>,
    pub name: Option<&'a str>,
    pub credentials: Option<&'a str>,
    pub authority: Option<&'a str>,
    pub certificate: Option<&'a str>,
    pub key: Option<&'a str>,
    pub replicas: Option<&'a str>,
    pub plain_text: PlainText,
}

/// The permission to speak without TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlainText {
    /// With servers of this machine only.
    #[default]
    Loopback,
    /// With every server.
    Everywhere,
}

/// The servers of a cluster and the way to them.
#[derive(Debug, Clone)]
pub struct ClusterAccess {
    pub cluster: ClusterName,
    pub servers: ServerList,
    pub credentials: Credentials,
    pub tls: TlsFiles,
    pub replicas: Option<Replicas>,
}

impl ClusterAccess {
    /// Reads flags and the environment. `None` if neither names a server.
    pub fn read(
        flags: &AccessFlags<'_>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, Failure> {
        let variable = |name: &str| environment(name).filter(|value| !value.trim().is_empty());
        let servers = match (flags.addresses, variable(ADDRESSES_VARIABLE)) {
            (Some(text), _) => {
                let servers = ServerList::parse(text)?;
                if servers.login.is_some() {
                    let message = format!(
                        "--cluster contains a password, which other users of the machine see; put it into {ADDRESSES_VARIABLE} \
                         or into a file for --cluster-creds"
                    );
                    return Err(Failure::invalid(message));
                }
                servers
            }
            (None, Some(text)) => ServerList::parse(&text)?,
            (None, None) => return Ok(None),
        };
        let file = flags
            .credentials
            .map(str::to_owned)
            .or_else(|| variable(CREDENTIALS_VARIABLE));
        let credentials = match (file, &servers.login) {
            (Some(file), _) => Credentials::read(Path::new(&file))?,
            (None, Some(login)) => Credentials::Login(login.clone()),
            (None, None) => Credentials::None,
        };
        let client = match (flags.certificate, flags.key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => {
                Some((PathBuf::from(certificate), PathBuf::from(key)))
            }
            _ => {
                return Err(Failure::invalid(
                    "--cluster-cert and --cluster-key go together",
                ));
            }
        };
        let is_plain = |server: &&crate::servers::Server| {
            server.encryption == Encryption::IfDemanded && !server.is_loopback()
        };
        if flags.plain_text == PlainText::Loopback
            && let Some(server) = servers.servers.iter().find(is_plain)
        {
            let message = format!(
                "{server} is not on this machine and everything would go there in plain text. Write tls://{}:{}, or add \
                 --insecure-cluster if the network between is protected",
                server.host, server.port
            );
            return Err(Failure::invalid(message));
        }
        Ok(Some(Self {
            cluster: flags.name.map(str::parse).transpose()?.unwrap_or_default(),
            servers,
            credentials,
            tls: TlsFiles {
                authority: flags.authority.map(PathBuf::from),
                client,
            },
            replicas: flags.replicas.map(replicas).transpose()?,
        }))
    }
}

fn replicas(text: &str) -> Result<Replicas, Failure> {
    match text {
        "1" => Ok(Replicas(1)),
        "3" => Ok(Replicas(3)),
        "5" => Ok(Replicas(5)),
        _ => Err(Failure::invalid(format!(
            "--cluster-replicas is {text:?}; use 1, 3 or 5"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        flags: &AccessFlags<'_>,
        variables: &[(&str, &str)],
    ) -> Result<Option<ClusterAccess>, Failure> {
        let environment = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        ClusterAccess::read(flags, environment)
    }

    fn at(addresses: &str) -> AccessFlags<'_> {
        AccessFlags {
            addresses: Some(addresses),
            ..AccessFlags::default()
        }
    }

    #[test]
    fn a_password_is_accepted_from_the_environment_only() {
        let password = "nats://ann:secret@127.0.0.1";
        let refused = read(&at(password), &[]).unwrap_err();
        assert!(refused.message.contains("PINION_CLUSTER"), "{refused}");
        assert!(!refused.message.contains("secret"), "{refused}");
        let access = read(&AccessFlags::default(), &[(ADDRESSES_VARIABLE, password)]);
        let access = access.unwrap().unwrap();
        assert!(matches!(access.credentials, Credentials::Login(_)));
        assert!(
            read(&AccessFlags::default(), &[(ADDRESSES_VARIABLE, " ")])
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn plain_text_stays_on_the_machine() {
        for good in ["localhost", "127.0.0.1,[::1]:5", "tls://10.0.0.1"] {
            assert!(read(&at(good), &[]).unwrap().is_some(), "{good}");
        }
        let refused = read(&at("127.0.0.1,10.0.0.1"), &[]).unwrap_err();
        assert!(
            refused.message.contains("Write tls://10.0.0.1:4222"),
            "{refused}"
        );
        let mut flags = at("10.0.0.1");
        flags.plain_text = PlainText::Everywhere;
        assert!(read(&flags, &[]).unwrap().is_some());
    }

    #[test]
    fn values_that_cannot_work_are_named() {
        for (flags, part) in [
            (
                AccessFlags {
                    name: Some("A"),
                    ..at("localhost")
                },
                "a-z, 0-9",
            ),
            (
                AccessFlags {
                    replicas: Some("2"),
                    ..at("localhost")
                },
                "use 1, 3 or 5",
            ),
            (
                AccessFlags {
                    key: Some("x"),
                    ..at("localhost")
                },
                "go together",
            ),
            (
                AccessFlags {
                    credentials: Some("/nonexistent"),
                    ..at("localhost")
                },
                "/nonexistent",
            ),
        ] {
            let refused = read(&flags, &[]).unwrap_err();
            assert!(refused.message.contains(part), "{refused}");
        }
    }
}
