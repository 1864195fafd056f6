//! Commands kept in YAML files: what a prompt is, what it asks of its caller, and how it is shown.
//!
//! A [`Command`] is one file. Its [`Field`]s and the program's [`BuiltIn`] options are read from one command line by
//! [`Command::parse`]; [`Command::render`] puts the values into its templates. A [`Repository`] is a tree of such files.
//! Help pages, schemas and listings are made from what the files say.
//!
//! Nothing here asks a model, and the names of modes mean nothing here: built-in options are data that is read and
//! handed on. Files named by the caller's arguments are read; pictures are not, their paths are handed on as well.

mod alias;
mod arguments;
mod built_in;
mod command;
mod dates;
mod decode;
mod describe;
mod error;
mod field;
mod files;
mod help;
mod line;
mod options;
mod pages;
mod parsed;
mod place;
mod read;
mod render;
mod repository;
mod show;
mod tables;
mod world;
mod yaml;

pub use alias::Alias;
pub use arguments::leading_options;
pub use built_in::{BUILT_INS, BuiltIn, Group};
pub use command::{Command, Origin, Warning};
pub use dates::parse_date;
pub use error::CommandError;
pub use field::{Field, FieldType};
pub use help::HelpLevel;
pub use line::Line;
pub use pages::HelpPage;
pub use parsed::{BuiltInValues, Parsed, Source};
pub use pinion_templates as templates;
pub use render::RenderedCommand;
pub use repository::{Entry, EntryKind, Failure, Found, Listing, Repository};
pub use world::World;
