//! Opens overlays and carries out the choices made there.

use std::path::PathBuf;
use std::time::Instant;

use crossterm::event::KeyEvent;
use pinion_agent::{Answer, BranchSummary, Command, EngineError, ForkPosition, Navigation, Origin};
use pinion_message::{Model, ThinkingLevel};

use super::commands::{built_in_commands, help};
use super::state::{REMINDERS, Session, State};
use crate::SessionScope;
use crate::keys::{self, Action};
use crate::overlay::{
    Author, Choice, ModelPicker, Overlay, Page, SessionPicker, Step, ThinkingPicker, TreeAction,
    TreeView,
};
use crate::transcript::NoticeKind;

/// Explains why a model cannot be chosen. The engine does not distinguish models without a key from
/// unknown ones.
pub(crate) fn about_model(error: &EngineError) -> String {
    match error {
        EngineError::ModelNotFound { provider, .. } => format!(
            "{error}. Either {provider} has no key, or the model does not exist; run `pinion models` to list the models you can use."
        ),
        _ => error.to_string(),
    }
}

impl State {
    pub(super) fn dialog_key(&mut self, key: KeyEvent) {
        let action = keys::action(key);
        if let Some(action) = action.filter(|action| action.is_view_only())
            && !self.dialogs.scrolls(key)
        {
            self.act(action, key);
            return;
        }
        let step = self.dialogs.key(key);
        let is_answered = matches!(step, Step::Chosen(_) | Step::Asked(_));
        self.dialog_step(step);
        if is_answered && action == Some(Action::ClearOrQuit) && self.is_busy() {
            for choice in self.dialogs.cancel_all() {
                self.choose(choice);
            }
            self.stop();
        }
    }

    fn dialog_step(&mut self, step: Step) {
        if let Step::Chosen(choice) | Step::Asked(choice) = step {
            self.choose(choice);
        }
    }

    pub(super) fn overlay_key(&mut self, key: KeyEvent) {
        if let Some(overlay) = &mut self.overlay {
            let step = overlay.key(key);
            self.overlay_step(step);
        }
    }

    fn overlay_step(&mut self, step: Step) {
        match step {
            Step::Stay => {}
            Step::Close => self.overlay = None,
            Step::Chosen(choice) => {
                self.overlay = None;
                self.choose(choice);
            }
            Step::Asked(choice) => self.choose(choice),
        }
    }

    pub(super) fn tick_overlays(&mut self, now: Instant) {
        let passed = |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        if passed(self.dialogs.deadline()) {
            let step = self.dialogs.tick();
            self.dialog_step(step);
        }
        if let Some(overlay) = &mut self.overlay
            && passed(overlay.deadline())
        {
            let step = overlay.tick();
            self.overlay_step(step);
        }
    }

    fn choose(&mut self, choice: Choice) {
        match choice {
            Choice::Model { provider, id } => self.set_model(provider, id),
            Choice::Thinking(level) => self.set_thinking(level),
            Choice::Session(path) => self.resume_session(path),
            Choice::Sessions(scope) => self.ask_sessions(scope),
            Choice::Tree {
                entry_id,
                author,
                action,
            } => self.go_to(entry_id, author, action),
            Choice::Dialog { id, response } => {
                if let Some(host) = &self.host {
                    host.answer(&id, response);
                }
            }
        }
    }

    fn set_model(&self, provider: String, id: String) {
        self.ask(Command::SetModel { provider, id }, |state, result| {
            if let Err(error) = result {
                state.notice(NoticeKind::Error, &about_model(&error));
            }
        });
        self.ask_state();
        self.ask_stats();
    }

    pub(super) fn set_thinking(&self, level: ThinkingLevel) {
        self.send_and_refresh(Command::SetThinkingLevel(Some(level)));
    }

    /// Opens the model picker, or switches to the named model.
    pub(super) fn pick_model(&mut self, named: &str) {
        let named = named.to_owned();
        self.ask(Command::GetAvailableModels, move |state, result| {
            let models = match result {
                Ok(Answer::Models(models)) => models,
                Ok(_) => return,
                Err(error) => return state.failed(&error),
            };
            let is_named = |model: &Model| {
                model.id == named || format!("{}/{}", model.provider, model.id) == named
            };
            if let Some(model) = models.iter().find(|model| is_named(model)) {
                return state.set_model(model.provider.clone(), model.id.clone());
            }
            if let Some((provider, id)) = named.split_once('/') {
                return state.set_model(provider.to_owned(), id.to_owned());
            }
            let mut picker = ModelPicker::new(models, state.session.model.as_ref());
            picker.paste(&named);
            state.overlay = Some(Box::new(picker));
        });
    }

    /// Switches to the model this many places after the current one.
    pub(super) fn cycle_model(&mut self, steps: isize) {
        if steps > 0 {
            self.send_and_refresh(Command::CycleModel);
            return self.ask_stats();
        }
        self.ask(Command::GetAvailableModels, move |state, result| {
            let Ok(Answer::Models(models)) = result else {
                return;
            };
            let current = state.session.model.as_ref().and_then(|current| {
                models
                    .iter()
                    .position(|model| model.id == current.id && model.provider == current.provider)
            });
            let place = current.unwrap_or_default() as isize + steps;
            let place = place.rem_euclid(models.len().max(1) as isize) as usize;
            if let Some(model) = models.get(place) {
                state.set_model(model.provider.clone(), model.id.clone());
            }
        });
    }

    pub(super) fn pick_thinking(&mut self) {
        self.ask(Command::GetThinkingLevels, |state, result| match result {
            Ok(Answer::Levels(levels)) => {
                let picker = ThinkingPicker::new(&levels, state.session.thinking);
                state.overlay = Some(Box::new(picker));
            }
            Ok(_) => {}
            Err(error) => state.failed(&error),
        });
    }

    /// Opens the session picker.
    pub(super) fn pick_session(&mut self) {
        let picker = SessionPicker::new(SessionScope::Project, self.session.file.clone());
        self.overlay = Some(Box::new(picker));
        self.ask_sessions(SessionScope::Project);
    }

    fn ask_sessions(&mut self, scope: SessionScope) {
        let Some(host) = &self.host else {
            return;
        };
        let has_room = self.turns.capacity() > REMINDERS;
        let place = self.turns.clone().try_reserve_owned();
        let (true, Ok(place)) = (has_room, place) else {
            let busy = "Too many lists of sessions are being made. Try again later.";
            if let Some(overlay) = &mut self.overlay {
                overlay.set_sessions(scope, Err(busy.to_owned()));
            }
            return;
        };
        let found = host.sessions(scope);
        tokio::spawn(async move {
            let found = found.await;
            place.send(Box::new(move |state| {
                if let Some(overlay) = &mut state.overlay {
                    overlay.set_sessions(scope, found);
                }
            }));
        });
    }

    fn resume_session(&mut self, path: PathBuf) {
        match &mut self.picking {
            Some(picked) => *picked = Some(path),
            None => self.replace(Command::SwitchSession {
                path,
                origin: Origin::Client,
            }),
        }
    }

    /// Opens the session tree.
    pub(super) fn open_tree(&mut self) {
        self.ask(Command::GetTree, |state, result| match result {
            Ok(Answer::Tree { tree, leaf_id }) => match TreeView::new(tree, leaf_id.as_deref()) {
                Ok(view) => state.overlay = Some(Box::new(view)),
                Err(problem) => state.notice(NoticeKind::Error, &problem),
            },
            Ok(_) => {}
            Err(error) => state.failed(&error),
        });
    }

    fn go_to(&mut self, entry_id: String, author: Author, action: TreeAction) {
        match action {
            TreeAction::Jump => self.navigate(entry_id, None),
            TreeAction::JumpWithSummary => self.navigate(entry_id, Some(BranchSummary::Default)),
            TreeAction::Fork => self.replace(Command::Fork {
                entry_id,
                position: match author {
                    Author::User => ForkPosition::Before,
                    Author::Other => ForkPosition::At,
                },
                origin: Origin::Client,
            }),
            TreeAction::Label(label) => self.send(Command::SetLabel { entry_id, label }),
        }
    }

    fn navigate(&mut self, target_id: String, summary: Option<BranchSummary>) {
        let navigation = Navigation {
            target_id,
            summary,
            label: None,
        };
        if navigation.summary.is_some() {
            self.hint("Summarising the abandoned branch …");
        }
        self.ask(
            Command::Navigate(navigation),
            |state, result| match result {
                Ok(Answer::Navigated {
                    cancelled: true, ..
                }) => {
                    state.hint("Nothing was changed.");
                }
                Ok(Answer::Navigated { text, .. }) => {
                    state.reload();
                    if let Some(text) = text {
                        state.editor.set_text(&text);
                    }
                }
                Ok(_) => {}
                Err(error) => state.failed(&error),
            },
        );
    }

    pub(super) fn show_help(&mut self) {
        let own = built_in_commands(self.abilities()).map(|command| help(&command));
        let commands: Vec<_> = own
            .chain(self.other_commands.iter().flatten().cloned())
            .collect();
        self.overlay = Some(Box::new(Page::help(self.abilities(), &commands)));
    }

    pub(super) fn show_stats(&mut self) {
        self.ask(Command::GetStats, |state, result| match result {
            Ok(Answer::Stats(stats)) => {
                let Session { name, model, .. } = &state.session;
                let page = Page::stats(&stats, name.as_deref(), model.as_deref());
                state.overlay = Some(Box::new(page));
            }
            Ok(_) => {}
            Err(error) => state.failed(&error),
        });
    }
}
