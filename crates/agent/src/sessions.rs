//! Replacing the session: new, switch, fork, clone; names and exports.

use std::path::{Path, PathBuf};

use pinion_session::{NewEntry, NewSession, Notice, Opened, Role, SessionError, Store, export};

use crate::core::Core;
use crate::{Answer, Command, EngineError, Event};

impl Core {
    /// Whether a change of session can be made at all; asked before a run is stopped for it.
    pub fn can_replace(&self, command: &Command) -> Result<(), EngineError> {
        let state = self.state();
        match command {
            Command::Fork { entry_id } => {
                let entry = state.store.entry(entry_id);
                if entry.is_some_and(|entry| entry.is_message_of(Role::User)) {
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

    /// Whether there is such an entry.
    pub fn entry_exists(&self, entry_id: &str) -> Result<(), EngineError> {
        match self.state().store.entry(entry_id) {
            Some(_) => Ok(()),
            None => Err(SessionError::EntryNotFound(entry_id.to_owned()).into()),
        }
    }

    /// Begins a new session; model and thinking level carry over.
    pub fn new_session(&self, parent: Option<String>) -> Result<Answer, EngineError> {
        let (directory, level) = {
            let state = self.state();
            (state.session_directory.clone(), state.thinking_level)
        };
        let store = Store::create(NewSession {
            cwd: (*self.cwd).clone(),
            directory,
            id: None,
            parent_session: parent,
        })?;
        self.replace_store(store);
        self.log(NewEntry::ThinkingLevelChange(level));
        Ok(Answer::Cancelled(false))
    }

    /// Goes on with the session in `path`; a missing file becomes a new session stored there.
    pub fn switch_session(&self, path: &Path) -> Result<Answer, EngineError> {
        let path = self.cwd.join(path);
        if self.state().store.file() == Some(&*path) {
            return self.reload(&path);
        }
        if path.exists() {
            let Opened { store, notices } = Store::open(&path, &self.cwd)?;
            self.replace_store(store);
            self.report(notices);
        } else {
            self.replace_store(Store::at_path(&path, &self.cwd));
        }
        self.restore_choices();
        Ok(Answer::Cancelled(false))
    }

    /// Reads the session's own file again: another program may have added to it.
    fn reload(&self, path: &Path) -> Result<Answer, EngineError> {
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
        Ok(Answer::Cancelled(false))
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

    /// Forks before a user message; the new session holds everything up to it.
    pub fn fork(&self, entry_id: &str) -> Result<Answer, EngineError> {
        let (store, text) = self.state().store.fork_before(entry_id)?;
        self.change_store(store);
        Ok(Answer::Forked {
            text,
            cancelled: false,
        })
    }

    /// Copies the branch up to the current entry into a new session.
    pub fn clone_session(&self) -> Result<Answer, EngineError> {
        let store = self.state().store.clone_to_leaf()?;
        self.change_store(store);
        Ok(Answer::Cancelled(false))
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

    /// Writes the session as a page to read; gives the path as it was named.
    pub fn export_html(&self, path: Option<String>) -> Result<Answer, EngineError> {
        let extras = export::Extras {
            system_prompt: Some(&self.system_prompt),
            tools: Some(&self.specs),
        };
        let path = path.map(PathBuf::from);
        let written = export::to_file(&self.state().store, path.as_deref(), &self.cwd, extras)?;
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
                during: "open",
                error: notice.message,
            });
        }
    }
}
