//! The inputs that are read before a session is built: directories, trust and settings.

use std::path::Path;

use pinion_config::{Dirs, InstalledPi, ProjectTrust, Settings, Trust, TrustFlag, migrate};
use pinion_extensions::Script;
use pinion_pi::{Dialect, DialectName};
use serde_json::Value;

use super::tell;
use crate::cli::Flags;
use crate::extensions;
use crate::failure::Failure;

/// The directories, trust, settings and dialect from flags, the environment and the settings files.
pub(crate) struct Basis {
    pub dirs: Dirs,
    pub trust: ProjectTrust,
    pub settings: Settings,
    pub dialect: Dialect,
    /// The script engine of extensions, started early if the flags name extensions.
    pub script: Option<Script>,
}

impl Basis {
    /// Reads the basis for the current directory. Problems with files on disk are reported on stderr.
    pub fn read(flags: &Flags) -> Result<Self, Failure> {
        let script = extensions::start_ahead(flags);
        let basis = Self::at(Dirs::from_env()?, flags)?;
        // pi ignored unknown flags until the releases that speak this dialect.
        if let (Some(flag), Dialect::Modern) = (&flags.ignored_flag, basis.dialect) {
            return Err(Failure::failed(format!("Unknown option: {flag}")));
        }
        for warning in &flags.warnings {
            eprintln!("{warning}");
        }
        Ok(Self { script, ..basis })
    }

    /// Reads the basis for the given directories, without a script engine.
    pub fn at(dirs: Dirs, flags: &Flags) -> Result<Self, Failure> {
        let flag = match flags.trust {
            None => TrustFlag::Unset,
            Some(true) => TrustFlag::Approve,
            Some(false) => TrustFlag::Refuse,
        };
        let (trust, notices) = Trust::decide(&dirs, flag);
        tell(&notices);
        let (settings, notices) = Settings::load(&dirs, trust);
        tell(&notices);
        tell(&migrate(&dirs, &settings, trust));
        let DialectChoice { dialect, .. } = dialect(flags.dialect, &dirs, &settings)?;
        Ok(Self {
            dirs,
            trust,
            settings,
            dialect,
            script: None,
        })
    }
}

/// The dialect of the protocol, and why it is used.
pub(crate) struct DialectChoice {
    pub dialect: Dialect,
    pub reason: String,
}

/// Returns the dialect that the flag, else the environment, else the settings name. Without a name, or with `auto`, it is
/// the dialect of the user's own pi, else classic.
pub(crate) fn dialect(
    flag: Option<DialectName>,
    dirs: &Dirs,
    settings: &Settings,
) -> Result<DialectChoice, Failure> {
    let variable = std::env::var("PINION_RPC_DIALECT").unwrap_or_default();
    let variable = Some(&*variable).filter(|name| !name.is_empty());
    let setting = settings.get("rpcDialect").and_then(Value::as_str);
    let named = |source: &'static str, name: &str| match name.parse() {
        Ok(name) => Ok((source, name)),
        Err(error) => Err(Failure::usage(format!("{source}: {error}."))),
    };
    let (source, name) = match (flag, variable, setting) {
        (Some(name), ..) => ("--rpc-dialect", name),
        (None, Some(name), _) => named("PINION_RPC_DIALECT", name)?,
        (None, None, Some(name)) => named("rpcDialect in settings.json", name)?,
        (None, None, None) => ("auto", DialectName::Auto),
    };
    if let DialectName::Named(dialect) = name {
        let reason = format!("named by {source}");
        return Ok(DialectChoice { dialect, reason });
    }
    let link = std::env::args_os().next();
    let path = std::env::var_os("PATH");
    let pi = InstalledPi::find(
        dirs,
        settings,
        link.as_deref().map(Path::new),
        path.as_deref(),
    );
    let spoken = pi.and_then(|pi| Some((Dialect::of_release(&pi.version)?, pi)));
    Ok(match spoken {
        Some((dialect, InstalledPi { version, source })) => DialectChoice {
            dialect,
            reason: format!("spoken by your pi {version}: {source}"),
        },
        None => DialectChoice {
            dialect: Dialect::default(),
            reason: "the default, because no pi was found".to_owned(),
        },
    })
}
