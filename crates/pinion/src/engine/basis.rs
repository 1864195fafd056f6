//! What is known before a session is put together: where, how far the place is trusted, settings.

use pinion_config::{Dirs, ProjectTrust, Settings, Trust, TrustFlag, migrate};
use pinion_extensions::Script;
use pinion_pi::Dialect;
use serde_json::Value;

use super::tell;
use crate::cli::Flags;
use crate::extensions;
use crate::failure::Failure;

/// What flags, the environment and the settings files say.
pub(crate) struct Basis {
    pub dirs: Dirs,
    pub trust: ProjectTrust,
    pub settings: Settings,
    /// How the client speaks.
    pub dialect: Dialect,
    /// Where extensions will run, if it is clear from the start that there are any.
    pub script: Option<Script>,
}

impl Basis {
    /// Reads it; what is odd on disk is told on stderr.
    pub fn read(flags: &Flags) -> Result<Self, Failure> {
        for warning in &flags.warnings {
            eprintln!("{warning}");
        }
        let script = extensions::start_ahead(flags);
        let basis = Self::at(Dirs::from_env()?, flags)?;
        Ok(Self { script, ..basis })
    }

    /// The same for these directories.
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
        let dialect = dialect(flags, &settings)?;
        Ok(Self {
            dirs,
            trust,
            settings,
            dialect,
            script: None,
        })
    }
}

/// The dialect that the flag, else the environment, else the settings name.
fn dialect(flags: &Flags, settings: &Settings) -> Result<Dialect, Failure> {
    if let Some(dialect) = flags.dialect {
        return Ok(dialect);
    }
    let variable = std::env::var("PINION_RPC_DIALECT")
        .ok()
        .filter(|name| !name.is_empty());
    let setting = settings.get("rpcDialect").and_then(Value::as_str);
    let (source, name) = match (&variable, setting) {
        (Some(name), _) => ("PINION_RPC_DIALECT", name.as_str()),
        (None, Some(name)) => ("rpcDialect in settings.json", name),
        (None, None) => return Ok(Dialect::default()),
    };
    name.parse()
        .map_err(|error| Failure::usage(format!("Error: {source}: {error}.")))
}
