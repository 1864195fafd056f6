//! Flags that pinion does not have. Extensions may register flags, so an unknown flag is refused at once only if there
//! is no extension, else when all extensions are loaded.

use pinion_cli::{Problem, PromptLine};
use pinion_config::{Dirs, Discovery, ExtensionFlags, Settings, Trust, TrustFlag, find_extensions};

use super::Flags;
use crate::failure::Failure;
use crate::program::Program;

impl Flags {
    pub fn trust_flag(&self) -> TrustFlag {
        match self.trust {
            None => TrustFlag::Unset,
            Some(true) => TrustFlag::Approve,
            Some(false) => TrustFlag::Refuse,
        }
    }

    pub fn extension_flags(&self) -> ExtensionFlags {
        ExtensionFlags {
            extensions: self.extensions.clone(),
            discovery: if self.no_extensions {
                Discovery::Off
            } else {
                Discovery::On
            },
        }
    }

    /// Refuses unknown flags if there is no extension that could have registered them. Their values become messages.
    pub fn decide_unknown(&mut self, program: Program) -> Result<(), Failure> {
        if self.prompt.unknown.is_empty() || self.has_extensions()? {
            return Ok(());
        }
        for flag in self.prompt.take_unknown() {
            // Short flags were refused when the line was read.
            if flag.long_name().is_some() {
                let line = std::mem::take(&mut self.prompt);
                let refused = refuse(program, &line, &flag.written, self);
                self.prompt = line;
                refused?;
            }
        }
        Ok(())
    }

    fn has_extensions(&self) -> Result<bool, Failure> {
        let dirs = Dirs::from_env()?;
        let (trust, _) = Trust::decide(&dirs, self.trust_flag());
        let (settings, _) = Settings::load(&dirs, trust);
        let found = find_extensions(&dirs, &settings, &self.extension_flags(), trust);
        Ok(!found.entries.is_empty())
    }
}

/// Refuses a flag; under the name `pi` it is ignored with a warning, as in pi.
pub(super) fn refuse(
    program: Program,
    line: &PromptLine,
    flag: &str,
    flags: &mut Flags,
) -> Result<(), Failure> {
    let hint = match line.unknown_flag(flag) {
        Problem::UnknownFlag {
            nearest: Some(nearest),
            ..
        } => format!("Did you mean {nearest}?"),
        _ => format!("See `{} --help`.", program.name()),
    };
    if program == Program::Pi {
        flags.ignored_flag.get_or_insert_with(|| flag.to_owned());
        let warning = format!("Warning: unknown option {flag} is ignored. {hint}");
        flags.warnings.push(warning);
        return Ok(());
    }
    Err(Failure::usage(format!("unknown option {flag}.")).hint(hint))
}
