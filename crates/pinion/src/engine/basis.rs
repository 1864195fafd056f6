//! The inputs that are read before a session is built: directories, trust and settings.

use pinion_config::{Dirs, ProjectTrust, Settings, Trust, TrustFlag, migrate};
use pinion_extensions::Script;
use pinion_pi::Dialect;
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
        for warning in &flags.warnings {
            eprintln!("{warning}");
        }
        let script = extensions::start_ahead(flags);
        let basis = Self::at(Dirs::from_env()?, flags)?;
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

/// Returns the dialect that the flag, else the environment, else the settings name.
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
