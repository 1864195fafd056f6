//! Flags that pinion does not have. Extensions may register flags, so an unknown flag is refused at once only if there
//! is no extension, else when all extensions are loaded.

use pinion_config::{Dirs, Discovery, ExtensionFlags, Settings, Trust, TrustFlag, find_extensions};

use super::{FLAGS, Flags, Parser};
use crate::failure::Failure;
use crate::program::Program;
use pinion_text::nearest;

impl Parser {
    /// Stores a flag for extensions, with the value that may belong to it.
    pub(super) fn unknown(&mut self, flag: &str) -> Result<(), Failure> {
        let Some(name) = flag.strip_prefix("--") else {
            return refuse(self.program, flag, &mut self.flags.warnings);
        };
        let value = if self.attached {
            self.rest.pop_front()
        } else {
            let value = self.optional_value();
            let place = self.flags.messages.len();
            self.flags
                .taken
                .extend(value.clone().map(|value| (place, value)));
            value
        };
        self.flags.unknown.push((name.to_owned(), value));
        Ok(())
    }
}

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
            discovery: match self.no_extensions {
                true => Discovery::Off,
                false => Discovery::On,
            },
        }
    }

    /// Refuses unknown flags if there is no extension that could have registered them. Their values become messages.
    pub fn decide_unknown(&mut self, program: Program) -> Result<(), Failure> {
        if self.unknown.is_empty() || self.has_extensions()? {
            return Ok(());
        }
        for (name, _) in std::mem::take(&mut self.unknown) {
            refuse(program, &format!("--{name}"), &mut self.warnings)?;
        }
        for (place, value) in std::mem::take(&mut self.taken).into_iter().rev() {
            self.messages.insert(place, value);
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

fn refuse(program: Program, flag: &str, warnings: &mut Vec<String>) -> Result<(), Failure> {
    let nearest = nearest(flag, FLAGS.iter().copied());
    let hint = nearest.map_or_else(
        || "Run `pinion --help` for the flags there are.".to_owned(),
        |nearest| format!("Did you mean {nearest}?"),
    );
    match program {
        Program::Pinion | Program::Pinocchio => {
            let message = format!("Error: unknown option {flag}. {hint}");
            Err(Failure::usage(message))
        }
        Program::Pi => {
            warnings.push(format!("Warning: unknown option {flag} is ignored. {hint}"));
            Ok(())
        }
    }
}
