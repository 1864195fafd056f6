//! The flags of `hub serve`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinion_access::{Mode as Auth, Token};
use pinion_agent_clip::AgentDefaults;
use pinion_clip::Programs;
use pinion_clip::logs::Level;
use pinion_cluster::access::{ADDRESSES_VARIABLE, AccessFlags, ClusterAccess, PlainText};
use pinion_connect::{Origins, Tls};
use pinion_hub::{
    Issuer, JoinOptions, Listening, Mode, OfferedClips, PinixDirectory, Settings, allowed_origins,
};

use crate::failure::{Context, Failure};
use crate::hub::agent_sessions::AgentFlags;
use crate::hub::{duration, environment, join, pid_file, root_dir};
use crate::verb::Line;

const DEFAULT_PORT: u16 = 9000;
/// The environment variable for a super token. Unlike a flag, other users of the machine cannot see it.
const SUPER_TOKEN: &str = "PINION_SUPER_TOKEN";

/// The options for joining another hub.
pub(super) struct Join {
    pub options: JoinOptions,
    pub shown: OfferedClips,
    /// `--name` is given. Otherwise the name contains the port, which is known only once the hub listens.
    pub is_named: bool,
}

pub(super) struct Options {
    pub root: PathBuf,
    pub pid: PathBuf,
    pub listening: Listening,
    pub auth: Auth,
    pub super_token: Option<Token>,
    pub settings: Settings,
    pub level: Level,
    pub programs: Programs,
    pub import: Option<PinixDirectory>,
    pub join: Option<Join>,
    /// Settings of agents; `None` for a hub without the clip `agent`.
    pub agent: Option<AgentFlags>,
    /// The cluster that the hub becomes a member of.
    pub cluster: Option<ClusterAccess>,
    /// The hub has the scheduler clip.
    pub schedules: bool,
}

impl Options {
    pub fn read(line: &Line) -> Result<Self, Failure> {
        line.exactly::<0>()?;
        let root = root_dir(line)?;
        let pid = std::path::absolute(pid_file(line)?)?;
        let origins = allowed_origins(line.values("--origin"));
        let defaults = Settings::default();
        let settings = Settings {
            mode: if line.has("--hub-only") {
                Mode::HubOnly
            } else {
                Mode::Full
            },
            call_timeout: timeout(line, "--call-timeout", defaults.call_timeout)?,
            idle_timeout: timeout(line, "--silence", defaults.idle_timeout)?,
            any_origin: origins == Origins::Any,
            trusts_provider_pages: line.has("--trust-provider-pages"),
            issuer: issuer(line)?,
            ..defaults
        };
        let options = Self {
            pid,
            listening: Listening {
                address: address(line)?,
                tls: tls(line)?,
                origins,
            },
            auth: auth(line)?,
            super_token: super_token(line)?,
            settings,
            level: level(line)?,
            programs: Programs {
                bun: line.value("--bun").map(PathBuf::from),
                ..Programs::default()
            },
            join: join(line, &root)?,
            import: match line.value("--import-pinix") {
                Some(directory) => {
                    let directory = std::path::absolute(directory)?;
                    Some(PinixDirectory::read(&directory)?)
                }
                None => None,
            },
            agent: agent(line, &root)?,
            cluster: cluster(line)?,
            schedules: !line.has("--no-scheduler"),
            root,
        };
        options.check(line)?;
        Ok(options)
    }

    /// Rejects combinations of flags that would leave the hub unprotected or cannot work.
    fn check(&self, line: &Line) -> Result<(), Failure> {
        if self.import.is_some() && self.listening.tls.is_some() {
            return Err(
                line.wrong("--import-pinix goes without TLS: take over first, then start with it")
            );
        }
        let plain_text = line.has("--insecure-bind");
        match self.listening.exposure(self.auth, plain_text) {
            Some(reason) => Err(Failure::usage(reason)),
            None => Ok(()),
        }
    }
}

fn join(line: &Line, root: &Path) -> Result<Option<Join>, Failure> {
    let Some(url) = line.value("--join") else {
        let alone = ["--hub-token", "--name", "--accept-installs", "--offer-all"];
        return match alone.iter().find(|flag| line.has(flag)) {
            Some(flag) => Err(line.wrong(format!("{flag} needs --join"))),
            None => Ok(None),
        };
    };
    let mut options = join::options(line, url, root, 0)?;
    options.is_hub = true;
    Ok(Some(Join {
        options,
        shown: if line.has("--offer-all") {
            OfferedClips::All
        } else {
            OfferedClips::Installed
        },
        is_named: line.has("--name"),
    }))
}

/// Returns the way to the cluster that flags or the environment name.
fn cluster(line: &Line) -> Result<Option<ClusterAccess>, Failure> {
    let flags = AccessFlags {
        addresses: line.value("--cluster"),
        name: line.value("--cluster-name"),
        credentials: line.value("--cluster-creds"),
        authority: line.value("--cluster-ca"),
        certificate: line.value("--cluster-cert"),
        key: line.value("--cluster-key"),
        replicas: line.value("--cluster-replicas"),
        plain_text: if line.has("--insecure-cluster") {
            PlainText::Everywhere
        } else {
            PlainText::Loopback
        },
    };
    let access = ClusterAccess::read(&flags, environment).map_err(|failure| line.wrong(failure))?;
    let needs_servers = [
        "--cluster-name",
        "--cluster-creds",
        "--cluster-ca",
        "--cluster-cert",
        "--cluster-key",
        "--cluster-replicas",
        "--insecure-cluster",
    ];
    match needs_servers.iter().find(|flag| line.has(flag)) {
        Some(flag) if access.is_none() => {
            Err(line.wrong(format!("{flag} needs --cluster or {ADDRESSES_VARIABLE}")))
        }
        _ => Ok(access),
    }
}

fn agent(line: &Line, root: &Path) -> Result<Option<AgentFlags>, Failure> {
    if line.has("--no-agent") {
        return Ok(None);
    }
    let text = |flag: &str| line.value(flag).map(str::to_owned);
    let cwd = line.value("--agent-dir").map(PathBuf::from);
    if let Some(cwd) = cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
        let cwd = cwd.display();
        return Err(line.wrong(format!("--agent-dir: there is no directory {cwd}")));
    }
    let levels = "off, minimal, low, medium, high or xhigh";
    Ok(Some(AgentFlags {
        defaults: AgentDefaults {
            model: text("--model"),
            provider: text("--provider"),
            thinking: line.parsed("--thinking", levels)?,
        },
        directory: root.join("data").join(pinion_agent_clip::ALIAS),
        cwd,
    }))
}

fn address(line: &Line) -> Result<SocketAddr, Failure> {
    let port = line.parsed("--port", "a number up to 65535")?;
    let bind = match line.value("--bind") {
        Some("localhost") | None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(text) => text.trim_matches(['[', ']']).parse().map_err(|_| {
            line.wrong(format!(
                "--bind needs an address such as 127.0.0.1, not {text:?}"
            ))
        })?,
    };
    Ok(SocketAddr::new(bind, port.unwrap_or(DEFAULT_PORT)))
}

/// The largest certificate, key or token file, in bytes.
const SECRET_LIMIT: u64 = 16 << 20;

fn tls(line: &Line) -> Result<Option<Tls>, Failure> {
    let read = |path: &str| pinion_files::read_named(path.as_ref(), SECRET_LIMIT).context(path);
    match (line.value("--tls-cert"), line.value("--tls-key")) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => {
            Ok(Some(Tls::from_pem(&read(certificate)?, &read(key)?)?))
        }
        _ => Err(line.wrong("--tls-cert and --tls-key go together")),
    }
}

fn auth(line: &Line) -> Result<Auth, Failure> {
    let auth = line.value("--auth").map(str::parse).transpose();
    let auth = auth.map_err(|failure: pinion_connect::Failure| line.wrong(failure))?;
    Ok(auth.unwrap_or_default())
}

fn super_token(line: &Line) -> Result<Option<Token>, Failure> {
    let given = match (
        line.value("--super-token"),
        line.value("--super-token-file"),
    ) {
        (Some(token), _) => Some(token.to_owned()),
        (None, Some(path)) => {
            let bytes = pinion_files::read_named(path.as_ref(), SECRET_LIMIT).context(path)?;
            let text = String::from_utf8(bytes);
            Some(text.map_err(|_| "is not UTF-8").context(path)?)
        }
        (None, None) => std::env::var(SUPER_TOKEN).ok().filter(|it| !it.is_empty()),
    };
    Ok(given.map(|token| Token::chosen(&token)).transpose()?)
}

/// Returns the issuer whose signed tokens the hub accepts.
fn issuer(line: &Line) -> Result<Option<Issuer>, Failure> {
    let Some(address) = line.value("--jwt-issuer") else {
        let alone = ["--jwt-audience", "--jwt-manage"];
        return match alone.iter().find(|flag| line.has(flag)) {
            Some(flag) => Err(line.wrong(format!("{flag} needs --jwt-issuer"))),
            None => Ok(None),
        };
    };
    let audience = line.value("--jwt-audience").map(str::to_owned);
    let issuer = Issuer::new(address, audience, line.has("--jwt-manage"));
    issuer
        .map(Some)
        .map_err(|failure| line.wrong(format!("--jwt-issuer: {failure}")))
}

fn timeout(
    line: &Line,
    flag: &str,
    otherwise: Option<Duration>,
) -> Result<Option<Duration>, Failure> {
    match line.value(flag) {
        None => Ok(otherwise),
        Some(text) => Ok(Some(duration(line, flag, text)?).filter(|time| !time.is_zero())),
    }
}

pub(in crate::hub) fn level(line: &Line) -> Result<Level, Failure> {
    let level = Level::of_flag("--log-level", line.value("--log-level"));
    level.map_err(|problem| line.wrong(problem))
}
