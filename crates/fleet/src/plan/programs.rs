//! Checks the programs of a plan, so that a missing one is reported before anything starts.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use pinion_text::nearest;

use super::Isolation;
use super::read::PlanReader;
use super::settings::Settings;
use crate::{AgentKind, launch};

/// Where programs without a slash in their name are looked up when `PATH` is not set, as the C library does.
const USUAL_PATH: &str = "/bin:/usr/bin";

impl PlanReader<'_> {
    /// Reports a child whose program cannot be found; `line` is that of the child.
    pub fn check_program(&mut self, settings: &Settings, models: &[String], line: u64) {
        let agent = settings.agent.unwrap_or_default();
        if matches!(settings.isolation, Some((Isolation::Task, _))) {
            return;
        }
        let (word, line) = match &settings.command {
            Some((words, at)) if !words.is_empty() => (words[0].as_str(), *at),
            // pinion starts itself, and an agent jsonl without a command is reported already.
            _ if matches!(agent, AgentKind::Pinion | AgentKind::Jsonl) => return,
            _ => (agent.as_str(), line),
        };
        let search = Search::new(settings);
        // `{{ model }}` may be a part of the name.
        let models: Vec<Option<&str>> = match models {
            [] => vec![None],
            models => models.iter().map(|model| Some(model.as_str())).collect(),
        };
        for model in models {
            if let Err(message) = search.find(&launch::with_model(word, model)) {
                let message = match settings.command {
                    Some(_) => message,
                    None => format!("agent {word} cannot be started: {message}"),
                };
                self.fields.problem(line, message);
            }
        }
    }
}

/// The places where a child's program is looked up.
struct Search {
    /// The directory the child runs in.
    directory: PathBuf,
    path: OsString,
}

impl Search {
    fn new(settings: &Settings) -> Self {
        let variables = settings.env.iter().flatten();
        let own = variables.rev().find(|(name, _)| name == "PATH");
        Self {
            directory: settings
                .directory
                .clone()
                .or_else(|| env::current_dir().ok())
                .unwrap_or_default(),
            path: own
                .map(|(_, path)| path.into())
                .or_else(|| env::var_os("PATH"))
                .unwrap_or_else(|| USUAL_PATH.into()),
        }
    }

    /// Explains why `word` cannot be started, if it cannot.
    fn find(&self, word: &str) -> Result<(), String> {
        if word.is_empty() {
            return Err("the command is empty; its first word is the program to start".to_owned());
        }
        if !word.contains('/') {
            return self.find_on_path(word);
        }
        let file = self.directory.join(word);
        if is_program(&file) {
            return Ok(());
        }
        if file.is_file() {
            return Err(format!(
                "\"{word}\" is not executable; run `chmod +x` on it or name the program that reads it"
            ));
        }
        let shown = self.directory.display();
        let location = if word.starts_with('/') {
            String::new()
        } else {
            format!(" in {shown}, where the child runs")
        };
        let names = file.parent().map(programs_in).unwrap_or_default();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let hint = nearest(&name, names.iter().map(String::as_str));
        let hint = hint.map(|near| format!("{}{near}", word.trim_end_matches(&*name)));
        Err(missing(word, &location, hint.as_deref()))
    }

    fn find_on_path(&self, word: &str) -> Result<(), String> {
        let places = || env::split_paths(&self.path).map(|location| self.directory.join(location));
        if places().any(|location| is_program(&location.join(word))) {
            return Ok(());
        }
        let names: Vec<String> = places()
            .flat_map(|location| programs_in(&location))
            .collect();
        let hint = nearest(word, names.iter().map(String::as_str));
        Err(missing(word, " on the PATH", hint))
    }
}

fn missing(word: &str, location: &str, hint: Option<&str>) -> String {
    let hint = match hint {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "install it or correct the command".to_owned(),
    };
    format!("there is no program \"{word}\"{location}; {hint}")
}

fn is_program(file: &Path) -> bool {
    file.is_file() && access(file, AccessFlags::X_OK).is_ok()
}

/// The names of the programs in a directory, sorted.
fn programs_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let programs = entries.filter(|entry| is_program(&entry.path()));
    let mut names: Vec<String> = programs
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}
