//! Opens, lists and deletes the sessions of an editor.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use pinion_acp::{AcpError, BuiltSession, Links, Opening, Origin, SessionHost};
use pinion_config::{Dirs, Settings};
use pinion_extensions::{InputSource, Mode};
use pinion_session::{SessionError, SessionInfo, Store};

use crate::cli::Flags;
use crate::engine::{self, Basis, Company, Conversation, EditorParts, Shared, session_directory};
use crate::extensions::Audience;
use crate::failure::Failure;
use crate::program::Program;

/// Builds sessions from the flags of the command line.
pub(super) struct Host {
    flags: Flags,
    dirs: Dirs,
    shared: Arc<Shared>,
}

/// A session whose file is open.
pub(super) struct Prepared {
    flags: Flags,
    basis: Basis,
    conversation: Conversation,
    opening: Opening,
}

impl Host {
    pub fn new(flags: Flags, dirs: Dirs, shared: Arc<Shared>) -> Self {
        Self {
            flags,
            dirs,
            shared,
        }
    }

    /// Returns the directory that holds all session files, if the command line or the settings name one; otherwise they
    /// are in a directory per project.
    fn common_directory(&self) -> Option<PathBuf> {
        let trust = pinion_config::Trust::decide(&self.dirs, pinion_config::TrustFlag::Refuse).0;
        let (settings, _) = Settings::load(&self.dirs, trust);
        self.dirs
            .session_dir(self.flags.session_dir.as_deref(), &settings)
    }

    /// Finds the file of a session, in any project.
    fn find(&self, id: &str) -> Option<PathBuf> {
        match self.common_directory() {
            Some(directory) => pinion_session::find_id(&directory, id),
            None => pinion_session::find_id_below(&self.dirs.agent_dir.join("sessions"), id),
        }
    }

    fn conversation(
        &self,
        flags: &Flags,
        basis: &Basis,
        origin: &Origin,
    ) -> Result<Conversation, AcpError> {
        let (Origin::Existing(id) | Origin::CopyOf(id)) = origin else {
            return Conversation::open(flags, basis).map_err(|failure| failed(&failure));
        };
        let file = self.find(id).ok_or_else(|| AcpError::unknown_session(id))?;
        let directory = session_directory(&basis.dirs, flags, &basis.settings);
        let is_copy = matches!(origin, Origin::CopyOf(_));
        Conversation::open_file(&file, is_copy, directory, &basis.dirs.cwd)
            .map_err(|error| in_use_or(id, &error))
    }
}

impl SessionHost for Host {
    type Prepared = Prepared;

    fn prepare(&self, opening: Opening) -> Result<Prepared, AcpError> {
        let mut flags = self.flags.clone();
        if let Some(text) = &opening.system_prompt {
            flags.append_system_prompt.push(text.clone());
        }
        if !opening.roots.is_empty() {
            let roots: Vec<String> = opening
                .roots
                .iter()
                .map(|root| root.display().to_string())
                .collect();
            flags.append_system_prompt.push(format!(
                "Besides the working directory these directories belong to the project:\n{}",
                roots.join("\n")
            ));
        }
        let basis = Basis::at(self.dirs.at(opening.cwd.clone()), &flags)
            .map_err(|failure| failed(&failure))?;
        let conversation = self.conversation(&flags, &basis, &opening.origin)?;
        Ok(Prepared {
            flags,
            basis,
            conversation,
            opening,
        })
    }

    fn store<'a>(&self, prepared: &'a Prepared) -> &'a Store {
        &prepared.conversation.store
    }

    fn build<'a>(
        &'a self,
        prepared: Prepared,
        links: Links,
    ) -> LocalBoxFuture<'a, Result<BuiltSession, AcpError>> {
        Box::pin(async move {
            let Prepared {
                flags,
                basis,
                mut conversation,
                opening,
            } = prepared;
            conversation.family = Some(conversation.store.id().to_owned());
            let audience = Audience {
                records: links.records,
                has_room: links.has_room,
                has_ui: true,
                source: InputSource::Rpc,
                mode: Mode::Rpc,
            };
            let company = Company {
                editor: Some(EditorParts {
                    asker: links.asker,
                    roots: opening.roots,
                    servers: opening.servers,
                    shows_terminals: opening.shows_terminals,
                }),
                ..Company::new(vec![links.listener], audience)
            };
            let built = engine::build(
                Program::Pinion,
                &flags,
                basis,
                conversation,
                company,
                &self.shared,
            );
            let engine = built.await.map_err(|failure| failed(&failure))?;
            let approvals = engine.approvals.ok_or_else(|| {
                AcpError::internal("The session has no approvals.", "no_approvals")
            })?;
            Ok(BuiltSession {
                config: engine.config,
                companions: engine.companions,
                approvals,
            })
        })
    }

    fn clean_up(&self, id: &str) {
        pinion_process::kill_family(id);
    }

    fn list(&self, cwd: Option<&Path>) -> Vec<SessionInfo> {
        let mut sessions = match (self.common_directory(), cwd) {
            (Some(directory), _) => pinion_session::list(&directory),
            (None, Some(cwd)) => {
                let directory = pinion_session::project_directory(&self.dirs.agent_dir, cwd);
                pinion_session::list(&directory)
            }
            (None, None) => pinion_session::list_all(&self.dirs.agent_dir.join("sessions")),
        };
        if let Some(cwd) = cwd {
            sessions.retain(|info| Path::new(&info.cwd) == cwd);
        }
        sessions
    }

    fn delete(&self, id: &str) -> Result<(), AcpError> {
        let Some(file) = self.find(id) else {
            return Ok(());
        };
        // Holds the lock, so that no other process writes the session.
        let opened = Store::open(&file, &self.dirs.cwd).map_err(|error| in_use_or(id, &error))?;
        let removed = std::fs::remove_file(&file);
        drop(opened);
        removed.map_err(|error| {
            AcpError::internal(
                format!("The session \"{id}\" could not be deleted: {error}"),
                "session_not_deleted",
            )
        })
    }

    fn check_keys(&self) -> Result<(), AcpError> {
        let registry = self.shared.fresh_registry(&self.dirs);
        if registry.available().is_empty() {
            return Err(AcpError::authentication_required("no model has a key"));
        }
        Ok(())
    }
}

fn in_use_or(id: &str, error: &SessionError) -> AcpError {
    match error {
        SessionError::Locked { .. } => AcpError::internal(
            format!("The session \"{id}\" is in use by another process. Close it there first."),
            "session_in_use",
        ),
        error => AcpError::internal(error.to_string(), error.code()),
    }
}

/// Converts a failure of the program. A session without a model needs a key.
fn failed(failure: &Failure) -> AcpError {
    if failure.needs_key() {
        AcpError::authentication_required("no model has a key")
    } else {
        AcpError::internal(failure.to_string(), "session_not_opened")
    }
}
