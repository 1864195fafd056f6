//! Replacing the session: new, switch, fork, clone; names and exports.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pinion_session::{
    Entry, NewEntry, NewSession, Notice, Opened, Role, SessionError, Store, export,
};
use pinion_tools::{in_node_words, run_blocking};
use tokio_util::sync::CancellationToken;

use crate::core::Core;
use crate::{Answer, Command, EngineError, Event, ForkPosition, Replacement};

/// Time limit of an export; a mount that does not answer would block it for ever.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(60);

/// The session that takes the place of the current one.
pub(crate) enum Next {
    New(Store),
    Opened(Opened),
    /// The current one, read again.
    Same(PathBuf),
    /// A part of the current one, and the text that comes next.
    Forked(Store, String),
    Cloned(Store),
}

impl Next {
    /// Where it is stored.
    pub fn file(&self) -> Option<PathBuf> {
        let store = match self {
            Self::Same(path) => return Some(path.clone()),
            Self::New(store) | Self::Forked(store, _) | Self::Cloned(store) => store,
            Self::Opened(opened) => &opened.store,
        };
        store.file().map(Path::to_owned)
    }
}

impl Core {
    /// Whether a change of session can be made at all; asked before a run is stopped for it.
    pub fn can_replace(&self, command: &Command) -> Result<(), EngineError> {
        let state = self.state();
        match command {
            Command::Fork {
                entry_id, position, ..
            } => {
                let entry = state.store.entry(entry_id);
                let fits = |entry: &Entry| {
                    *position == ForkPosition::At || entry.is_message_of(Role::User)
                };
                if entry.is_some_and(fits) {
                    Ok(())
                } else {
                    Err(SessionError::InvalidFork.into())
                }
            }
            Command::CloneSession if state.store.leaf().is_none() => {
                Err(SessionError::NothingToClone.into())
            }
            _ => Ok(()),
        }
    }

    /// What `command` changes the session to.
    pub fn replacement(&self, command: &Command) -> Option<Replacement> {
        Some(match command {
            Command::NewSession { .. } => Replacement::New,
            Command::SwitchSession { path, .. } => Replacement::Resume {
                file: self.cwd.join(path),
            },
            Command::Fork {
                entry_id, position, ..
            } => Replacement::Fork {
                entry_id: entry_id.clone(),
                position: *position,
            },
            _ => Replacement::Fork {
                entry_id: self.state().store.leaf()?.to_owned(),
                position: ForkPosition::At,
            },
        })
    }

    /// Whether there is such an entry.
    pub fn entry_exists(&self, entry_id: &str) -> Result<(), EngineError> {
        match self.state().store.entry(entry_id) {
            Some(_) => Ok(()),
            None => Err(SessionError::EntryNotFound(entry_id.to_owned()).into()),
        }
    }

    /// Finds or makes the session that `command` asks for; nothing has changed yet.
    pub fn next_session(&self, command: Command) -> Result<Next, EngineError> {
        let state = self.state();
        Ok(match command {
            Command::NewSession { parent, .. } => Next::New(Store::create(NewSession {
                cwd: (*self.cwd).clone(),
                directory: state.session_directory.clone(),
                id: None,
                parent_session: parent,
            })?),
            Command::SwitchSession { path, .. } => {
                let path = self.cwd.join(path);
                if state.store.file() == Some(&*path) {
                    Next::Same(path)
                } else {
                    Next::Opened(Store::open(&path, &self.cwd)?)
                }
            }
            Command::Fork {
                entry_id,
                position: ForkPosition::Before,
                ..
            } => {
                let (store, text) = state.store.fork_before(&entry_id)?;
                Next::Forked(store, text)
            }
            Command::Fork { entry_id, .. } => Next::Cloned(state.store.fork_at(&entry_id)?),
            _ => Next::Cloned(state.store.clone_to_leaf()?),
        })
    }

    /// Goes on with `next`.
    pub fn enter(&self, next: Next) -> Result<Answer, EngineError> {
        match next {
            Next::New(store) => {
                let level = self.state().thinking_level;
                self.replace_store(store);
                if self.hooks.is_some() {
                    self.log_model();
                }
                self.log(NewEntry::ThinkingLevelChange(level));
            }
            Next::Opened(Opened { store, notices }) => {
                self.replace_store(store);
                self.report(notices);
                self.restore_choices();
            }
            Next::Same(path) => self.reload(&path)?,
            Next::Forked(store, text) => {
                self.change_store(store);
                return Ok(Answer::Forked {
                    text: Some(text),
                    cancelled: false,
                });
            }
            Next::Cloned(store) => self.change_store(store),
        }
        Ok(Answer::Cancelled(false))
    }

    fn log_model(&self) {
        let model = self.state().model.clone();
        if let Some(model) = model {
            self.log(NewEntry::ModelChange {
                provider: model.provider.clone(),
                model_id: model.id.clone(),
            });
        }
    }

    /// Reads the session's own file again: another program may have added to it.
    fn reload(&self, path: &Path) -> Result<(), EngineError> {
        let placeholder = Store::create(NewSession {
            cwd: (*self.cwd).clone(),
            directory: None,
            id: None,
            parent_session: None,
        })?;
        let store = std::mem::replace(&mut self.state().store, placeholder);
        let reloaded = store.reload().or_else(|_| Store::open(path, &self.cwd));
        let Opened { store, notices } = reloaded?;
        self.replace_store(store);
        self.report(notices);
        self.restore_choices();
        Ok(())
    }

    /// Takes model and thinking level from the session that was opened.
    fn restore_choices(&self) {
        let choices = self.state().store.choices();
        if let Some((provider, id)) = &choices.model
            && let Some(model) = self.models.find(provider, id)
        {
            self.state().model = Some(model);
        }
        let wanted = choices
            .thinking_level
            .unwrap_or(self.settings.default_thinking_level);
        let mut state = self.state();
        let level = state
            .model
            .as_ref()
            .map_or(wanted, |model| model.clamp_thinking(wanted));
        let changed = state.thinking_level != level || choices.thinking_level.is_none();
        state.thinking_level = level;
        drop(state);
        if changed && choices.thinking_level != Some(level) {
            self.log(NewEntry::ThinkingLevelChange(level));
        }
    }

    /// Names the session.
    pub fn set_name(&self, name: &str) -> Result<Answer, EngineError> {
        let name = name.trim();
        if name.is_empty() {
            return Err(EngineError::EmptyName);
        }
        let name = self.mask.text(name).into_owned();
        self.log(NewEntry::SessionInfo { name: name.clone() });
        self.emit(Event::SessionInfoChanged(Some(name)));
        Ok(Answer::Done)
    }

    /// Names an entry, or takes its name away.
    pub fn set_label(
        &self,
        entry_id: String,
        label: Option<String>,
    ) -> Result<Answer, EngineError> {
        self.entry_exists(&entry_id)?;
        self.log(NewEntry::Label {
            target_id: entry_id,
            label,
        });
        Ok(Answer::Done)
    }

    /// Makes a page to read of the session as it is now.
    pub fn export(&self, path: Option<String>) -> Result<export::Export, EngineError> {
        let (system_prompt, specs) = {
            let toolbox = self.toolbox();
            (toolbox.system_prompt(), toolbox.specs())
        };
        let extras = export::Extras {
            system_prompt: Some(&system_prompt),
            tools: Some(&specs),
        };
        let path = path.map(PathBuf::from);
        let export = export::Export::new(&self.state().store, path.as_deref(), extras);
        Ok(export?)
    }

    /// Writes the page; gives its path as it was named.
    pub async fn write_export(
        &self,
        export: export::Export,
        cancel: &CancellationToken,
    ) -> Result<Answer, EngineError> {
        let directory = Arc::clone(&self.cwd);
        let writing = run_blocking(cancel, move || export.write(&directory));
        let written = tokio::time::timeout(EXPORT_TIMEOUT, writing).await;
        let written = match written {
            Ok(written) => written.map_err(|reason| EngineError::Export(reason.to_string()))?,
            Err(_) => {
                let seconds = EXPORT_TIMEOUT.as_secs();
                let reason = format!("the file system did not answer within {seconds} s");
                return Err(EngineError::Export(reason));
            }
        };
        let written = written.map_err(|error| match error {
            SessionError::Io { source, path, .. } => {
                EngineError::Export(in_node_words(&source, "open", &path))
            }
            other => other.into(),
        })?;
        Ok(Answer::Exported(written.display().to_string()))
    }

    fn replace_store(&self, store: Store) {
        self.change_store(store);
        let mut state = self.state();
        state.steering.clear();
        state.follow_up.clear();
        state.held_bash.clear();
    }

    fn change_store(&self, store: Store) {
        let mut state = self.state();
        let before = std::mem::replace(&mut state.store, store);
        state.rebuild_messages();
        state.retry_attempt = 0;
        state.overflow_handled = false;
        drop(state);
        drop(before);
    }

    /// Tells what was found out about the session file.
    pub fn report(&self, notices: Vec<Notice>) {
        for notice in notices {
            self.emit(Event::Fault {
                source: "session".into(),
                during: "open".into(),
                error: notice.message,
            });
        }
    }
}
