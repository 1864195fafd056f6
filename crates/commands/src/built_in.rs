//! Options that every command has.

use crate::field::{FieldType, variable};
pub use crate::options::{BUILT_INS, YIELDING_BUILT_INS};
pub use pinion_cli::tables::run_command::Group;

/// An option of the program itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BuiltIn {
    /// The name, without dashes.
    pub name: &'static str,
    /// The letter after a single dash.
    pub short: Option<char>,
    /// The type of its value.
    pub kind: FieldType,
    /// The permitted values.
    pub choices: &'static [&'static str],
    /// The default, as it would be written on a command line.
    pub default: Option<&'static str>,
    /// The section of the help page.
    pub group: Group,
    /// The line on the help page.
    pub help: &'static str,
    /// The option uses standard input, so that no field may read it.
    pub claims_stdin: bool,
}

impl BuiltIn {
    /// Returns the environment variable that sets the option.
    pub fn variable(&self) -> String {
        variable(self.name)
    }
}
