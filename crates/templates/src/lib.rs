//! Go's `text/template` with the functions of sprig, for prompts.
//!
//! A [`Template`] is read once and rendered with a [`Value`]. Missing keys do not fail: they are false in `if`
//! and print as `<no value>`. What does fail is a [`TemplateError`] that names the line and the column.
//! Nothing here opens a file or a socket; the environment and the clock are given by the caller ([`Surroundings`]).
//!
//! The engine is our own: failures have to be found in the YAML file a template came from, values include times
//! with methods, and a template of a stranger must not be able to keep us busy. [`Limits`] has the numbers.
//!
//! Where it differs from Go: there are no methods but those of times; `set`, `unset`, `merge` and
//! `mergeOverwrite` change a dictionary only when it is named by a variable (`{{ $_ := set $d "k" 1 }}`);
//! `call` has nothing it could call; complex numbers do not exist.

mod error;
mod evaluate;
mod format;
mod functions;
mod layout;
mod lexer;
mod number;
mod parser;
mod print;
mod random;
mod surroundings;
mod syntax;
mod template;
mod time;
mod value;

pub use error::{TemplateError, TemplateErrorKind};
pub use functions::names as function_names;
pub use layout::{format as format_time, parse as parse_time};
pub use print::printed;
pub use surroundings::{Limits, Lookup, Surroundings};
pub use template::Template;
pub use value::{List, Map, Value};
