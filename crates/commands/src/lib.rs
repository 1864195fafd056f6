//! Commands in YAML files: their prompts, their fields, and their help.
//!
//! A [`Command`] is one file. [`Command::parse`] reads the values of its [`Field`]s and of the program's [`BuiltIn`]
//! options from one command line; [`Command::render`] inserts them into its templates. A [`Repository`] is a tree of
//! such files. Help pages, schemas and listings are derived from the files.
//!
//! The crate calls no model and does not interpret modes: built-in options are data that is parsed and returned. It
//! reads the files that the caller's arguments name, except images, whose paths it returns.

mod alias;
mod arguments;
mod built_in;
mod check_fields;
mod command;
mod command_line;
mod convert;
mod dates;
mod decode;
mod error;
mod field;
mod files;
mod help;
mod listing;
mod options;
mod pages;
mod parsed;
mod render;
mod repository;
mod show;
mod tables;
mod world;
mod yaml;
mod yaml_position;

pub use alias::Alias;
pub use arguments::leading_options;
pub use built_in::{BUILT_INS, BuiltIn, Group, YIELDING_BUILT_INS};
pub use command::{Command, Origin, Warning};
pub use command_line::CommandLine;
pub use dates::parse_date;
pub use error::CommandError;
pub use field::{Field, FieldType};
pub use help::HelpLevel;
pub use listing::{commands_json, commands_table, pages_table, related_pages};
pub use pages::HelpPage;
pub use parsed::{BuiltInValues, Parsed, Source};
pub use pinion_templates as templates;
pub use render::RenderedCommand;
pub use repository::{Entry, EntryKind, Found, Listing, Repository, SkippedFile};
pub use world::World;
