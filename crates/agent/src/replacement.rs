//! Replaces the session (new, switch, fork, clone), and sets names and exports.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinion_session::{
    Context, Entry, NewEntry, NewSession, Notice, Opened, Role, SessionChoices, SessionError,
    Store, UnsavedSession, export,
};
use pinion_tools::{BlockingError, node_error_text, run_blocking};
use tokio_util::sync::CancellationToken;

use crate::core::Core;
use crate::hooks::Moment;
use crate::save::{COMMAND_HOLD, FILE_TIMEOUT};
use crate::{Answer, Command, EngineError, Event, ForkPosition, Replacement};

/// The session that will replace the current one.
pub(crate) enum NextSession {
    New(Store),
    Opened(LoadedSession),
    /// The current session, whose file at this path is read again.
    Same(PathBuf),
    /// A part of the current session, and the text of the message after that part.
    Forked(LoadedSession, String),
    Cloned(LoadedSession),
}

/// A session with the conversation at its leaf, read on a thread that may block.
pub(crate) struct LoadedSession {
    store: Store,
    context: Context,
    notices: Vec<Notice>,
}

impl LoadedSession {
    /// Returns the model and the thinking level at the leaf.
    fn choices(&self) -> SessionChoices {
        SessionChoices {
            thinking_level: self.context.thinking_level,
            model: self.context.model.clone(),
        }
    }
}

impl From<Opened> for LoadedSession {
    fn from(Opened { store, notices }: Opened) -> Self {
        Self {
            notices,
            ..Self::from(store)
        }
    }
}

impl From<Store> for LoadedSession {
    fn from(store: Store) -> Self {
        Self {
            context: store.context(),
            store,
            notices: Vec::new(),
        }
    }
}

impl NextSession {
    /// Returns the path of its file; `None` for a session in memory.
    pub fn file(&self) -> Option<PathBuf> {
        let store = match self {
            Self::Same(path) => return Some(path.clone()),
            Self::New(store) => store,
            Self::Opened(loaded) | Self::Forked(loaded, _) | Self::Cloned(loaded) => &loaded.store,
        };
        store.file().map(Path::to_owned)
    }
}

impl Core {
    /// Checks whether a replacement is possible. Called before a run is stopped for it.
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

    /// Returns the replacement that `command` requests; `None` if there is nothing to clone.
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

    /// Checks that the entry exists.
    pub fn entry_exists(&self, entry_id: &str) -> Result<(), EngineError> {
        match self.state().store.entry(entry_id) {
            Some(_) => Ok(()),
            None => Err(SessionError::EntryNotFound(entry_id.to_owned()).into()),
        }
    }

    /// Opens or makes the session that `command` asks for. The current session does not change.
    ///
    /// Files are opened and written on another thread; `cancel` ends the wait for it.
    pub async fn next_session(
        &self,
        command: Command,
        cancel: &CancellationToken,
    ) -> Result<NextSession, EngineError> {
        let cwd = Arc::clone(&self.cwd);
        match command {
            Command::NewSession { parent, .. } => {
                let session = NewSession {
                    cwd: (*cwd).clone(),
                    directory: self.state().session_directory.clone(),
                    id: None,
                    parent_session: parent,
                };
                let created = file_work(cancel, move || Store::create(session)).await?;
                Ok(NextSession::New(created?))
            }
            Command::SwitchSession { path, .. } => {
                let path = cwd.join(path);
                if self.state().store.file() == Some(&*path) {
                    return Ok(NextSession::Same(path));
                }
                let open = move || Store::open(&path, &cwd).map(LoadedSession::from);
                Ok(NextSession::Opened(file_work(cancel, open).await??))
            }
            Command::Fork {
                entry_id,
                position: ForkPosition::Before,
                ..
            } => {
                let fork = move |store: &Store| store.fork_before(&entry_id);
                let (forked, text) = self.fork(cancel, fork).await?;
                Ok(NextSession::Forked(forked, text))
            }
            Command::Fork { entry_id, .. } => {
                let fork = move |store: &Store| Ok((store.fork_at(&entry_id)?, ()));
                let (forked, ()) = self.fork(cancel, fork).await?;
                Ok(NextSession::Cloned(forked))
            }
            _ => {
                let fork = |store: &Store| Ok((store.clone_to_leaf()?, ()));
                let (cloned, ()) = self.fork(cancel, fork).await?;
                Ok(NextSession::Cloned(cloned))
            }
        }
    }

    /// Makes a session of the current one and writes its file. A cancelled call writes nothing if it has not begun to.
    async fn fork<T: Send + 'static>(
        &self,
        cancel: &CancellationToken,
        fork: impl FnOnce(&Store) -> Result<(UnsavedSession, T), SessionError> + Send + 'static,
    ) -> Result<(LoadedSession, T), EngineError> {
        let snapshot = self.state().store.snapshot();
        let cancelled = cancel.clone();
        let work = move || {
            let (unsaved, more) = fork(&snapshot)?;
            if cancelled.is_cancelled() {
                return Ok(None);
            }
            let saved = unsaved.save()?;
            Ok(Some((LoadedSession::from(saved), more)))
        };
        let forked: Result<_, SessionError> = file_work(cancel, work).await?;
        forked?.ok_or_else(|| EngineError::NotReplaced(BlockingError::Cancelled.to_string()))
    }

    /// Replaces the session by `next`.
    pub async fn switch_to(
        &self,
        next: NextSession,
        cancel: &CancellationToken,
    ) -> Result<Answer, EngineError> {
        let opened = match next {
            NextSession::New(store) => {
                let level = self.state().thinking_level;
                self.clear_queues();
                self.change_store(store.into()).await;
                let behaviour = &self.settings.behaviour;
                if self.hooks.is_some() || behaviour.store_model_in_new_session {
                    self.push_model();
                }
                self.log(NewEntry::ThinkingLevelChange(level), cancel).await;
                return Ok(Answer::Cancelled(false));
            }
            NextSession::Forked(forked, text) => {
                self.change_store(forked).await;
                return Ok(Answer::Forked {
                    text: Some(text),
                    cancelled: false,
                });
            }
            NextSession::Cloned(cloned) => {
                self.change_store(cloned).await;
                return Ok(Answer::Cancelled(false));
            }
            NextSession::Opened(opened) => Some(opened),
            NextSession::Same(_) => self.read_again(cancel).await?,
        };
        self.clear_queues();
        let choices = match opened {
            Some(mut opened) => {
                let notices = std::mem::take(&mut opened.notices);
                let choices = opened.choices();
                self.change_store(opened).await;
                self.report(notices);
                choices
            }
            None => self.state().store.choices(),
        };
        self.restore_choices(choices, cancel).await;
        Ok(Answer::Cancelled(false))
    }

    fn push_model(&self) {
        let model = self.state().model.clone();
        if let Some(model) = model {
            self.push(NewEntry::ModelChange {
                provider: model.provider.clone(),
                model_id: model.id.clone(),
            });
        }
    }

    /// Reads the session's own file again, because another program may have appended to it. `None` if it has no file
    /// yet. The session does not change if the file cannot be read.
    async fn read_again(
        &self,
        cancel: &CancellationToken,
    ) -> Result<Option<LoadedSession>, EngineError> {
        self.wait_until_all_saved(cancel).await?;
        let reload = self.state().store.reload();
        let Some(reload) = reload else {
            return Ok(None);
        };
        let read = move || reload.run().map(LoadedSession::from);
        Ok(Some(file_work(cancel, read).await??))
    }

    /// Selects the model and thinking level stored in the session.
    async fn restore_choices(&self, choices: SessionChoices, cancel: &CancellationToken) {
        if let Some((provider, id)) = &choices.model
            && let Some(model) = self.models.find(provider, id)
        {
            self.state().model = Some(model);
        }
        let wanted = choices
            .thinking_level
            .unwrap_or(self.settings.default_thinking_level);
        let (level, changed) = {
            let mut state = self.state();
            let level = state
                .model
                .as_ref()
                .map_or(wanted, |model| model.clamp_thinking(wanted));
            let before = std::mem::replace(&mut state.thinking_level, level);
            (level, before != level || choices.thinking_level.is_none())
        };
        if changed && choices.thinking_level != Some(level) {
            self.log(NewEntry::ThinkingLevelChange(level), cancel).await;
        }
    }

    /// Sets the name of the session.
    pub async fn set_name(&self, name: &str) -> Result<Answer, EngineError> {
        let name = if self.settings.behaviour.fold_session_names {
            name.split_whitespace().collect::<Vec<_>>().join(" ")
        } else {
            name.trim().to_owned()
        };
        if name.is_empty() {
            return Err(EngineError::EmptyName);
        }
        let name = self.mask.text(&name).into_owned();
        let entry = self.push(NewEntry::SessionInfo { name: name.clone() });
        self.save_for_command(entry).await;
        self.emit_name(name);
        Ok(Answer::Done)
    }

    /// Emits the new name of the session; an empty one removes it.
    pub fn emit_name(&self, name: String) {
        let name = Some(name).filter(|name| !name.is_empty());
        if let Some(hooks) = self.hook(Moment::Renamed) {
            hooks.renamed(name.as_deref());
        }
        self.emit(Event::SessionInfoChanged(name));
    }

    /// Sets the label of an entry; `None` removes it.
    pub async fn set_label(
        &self,
        entry_id: String,
        label: Option<String>,
    ) -> Result<Answer, EngineError> {
        self.entry_exists(&entry_id)?;
        let entry = self.push(NewEntry::Label {
            target_id: entry_id,
            label,
        });
        self.save_for_command(entry).await;
        Ok(Answer::Done)
    }

    /// Writes an HTML page of the current session and returns its path as the client gave it.
    pub async fn export(
        &self,
        path: Option<String>,
        cancel: &CancellationToken,
    ) -> Result<Answer, EngineError> {
        let (system_prompt, specs) = {
            let toolbox = self.toolbox();
            (toolbox.system_prompt(), toolbox.specs())
        };
        let directory = Arc::clone(&self.cwd);
        let snapshot = self.state().store.snapshot();
        let write = move || {
            let extras = export::Extras {
                system_prompt: Some(&system_prompt),
                tools: Some(&specs),
            };
            export::to_file(
                &snapshot,
                path.as_deref().map(Path::new),
                &directory,
                extras,
            )
        };
        let written = with_time_limit(cancel, write).await;
        let written = written
            .map_err(EngineError::Export)?
            .map_err(|error| match error {
                SessionError::Io { source, path, .. } => {
                    EngineError::Export(node_error_text(&source, "open", &path))
                }
                other => other.into(),
            })?;
        Ok(Answer::Exported(written.display().to_string()))
    }

    fn clear_queues(&self) {
        let mut state = self.state();
        state.steering.clear();
        state.follow_up.clear();
        state.held_bash.clear();
    }

    async fn change_store(&self, next: LoadedSession) {
        let LoadedSession { store, context, .. } = next;
        let before = {
            let mut state = self.state();
            self.span.record("id", store.id());
            tracing::info!("session replaced");
            let before = std::mem::replace(&mut state.store, store);
            state.messages = self.shown(context.messages);
            state.last_answer = None;
            state.retry_attempt = 0;
            state.overflow_handled = false;
            state.slow_saves = state.slow_saves.of_next_session();
            before
        };
        // Saves what is left and releases the lock, which blocks if the file system does not answer.
        if before.is_on_disk() || before.pending() > 0 {
            let never = CancellationToken::new();
            let removes = self.settings.behaviour.remove_sessions_without_messages;
            let closing = run_blocking(&never, move || {
                let mut before = before;
                if !(removes && before.remove_without_messages()) {
                    drop(before.close());
                }
            });
            let _ = tokio::time::timeout(COMMAND_HOLD, closing).await;
        }
    }

    /// Takes the session file out of a session that has ended.
    pub fn take_store(&self) -> Store {
        std::mem::replace(&mut self.state().store, Store::in_memory(&self.cwd))
    }

    /// Emits notices about the session file as faults.
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

/// Runs file work of a change of session on another thread.
async fn file_work<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, EngineError> {
    let done = with_time_limit(cancel, work).await;
    done.map_err(EngineError::NotReplaced)
}

/// Runs `work` on another thread for at most [`FILE_TIMEOUT`]. The error is a sentence for people.
pub(crate) async fn with_time_limit<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    match tokio::time::timeout(FILE_TIMEOUT, run_blocking(cancel, work)).await {
        Ok(done) => done.map_err(|reason| reason.to_string()),
        Err(_) => {
            let seconds = FILE_TIMEOUT.as_secs();
            Err(format!("the file system did not answer within {seconds} s"))
        }
    }
}
