//! Go's `text/template` with the functions of sprig, for prompts.
//!
//! A [`Template`] is parsed once and rendered with a [`Value`]. A missing key is not an error: it
//! is false in `if` and prints as `<no value>`. Failures are [`TemplateError`]s with the line and
//! the column. The crate opens no file and no socket; the caller supplies the environment and the
//! clock ([`RenderContext`]).
//!
//! The engine is written for pinion because errors must be located in the YAML file that holds the
//! template, values include times with methods, and a stranger's template must not be able to
//! occupy the process. [`Limits`] has the numbers.
//!
//! Differences from Go: only times have methods; `set`, `unset`, `merge` and `mergeOverwrite`
//! change a dictionary only if a variable names it (`{{ $_ := set $d "k" 1 }}`); there is no value
//! that `call` could call; complex numbers do not exist.

mod context;
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
mod syntax;
mod template;
mod time;
mod value;

pub use context::{Limits, Lookup, RenderContext};
pub use error::{TemplateError, TemplateErrorKind};
pub use functions::names as function_names;
pub use layout::{format as format_time, parse as parse_time};
pub use print::printed;
pub use template::Template;
pub use value::{List, Map, Value};
