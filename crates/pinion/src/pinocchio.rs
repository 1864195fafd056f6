//! `run-command`: runs prompts stored in YAML files with the engine and prints the run in Pinocchio's formats.

mod host;
mod pages;
mod verbs;

pub(crate) use self::verbs::{Verb, run};
