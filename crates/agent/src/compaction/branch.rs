//! Going to another place in the session tree, with a summary of the branch that is left.

use std::sync::Arc;

use pinion_message::{Message, Model, Usage};
use pinion_session::{Edits, Entry, EntryKind, NewEntry, Role, SessionError, Store};
use tokio_util::sync::CancellationToken;

use super::ask::{Part, Summariser};
use super::files::Files;
use super::{Failure, instructions, serialise};
use crate::command::{BranchSummary, Navigation};
use crate::core::Core;
use crate::estimate::message_tokens;
use crate::hooks::{Moment, NavigationChoice, NavigationPlan};
use crate::{Answer, EngineError, SummaryPurpose};

/// What a branch that was left is introduced with.
const PREAMBLE: &str = "The user explored another branch of this conversation and came back. A summary of that branch:\n\n";

/// Where a navigation leads.
struct Place {
    leaf: Option<String>,
    /// The text of the user's message that was chosen, to be said again.
    text: Option<String>,
}

impl Core {
    /// Goes to another entry; what is said next grows from there.
    pub async fn navigate(
        &self,
        navigation: Navigation,
        cancel: &CancellationToken,
    ) -> Result<Answer, EngineError> {
        let place = place(&self.state().store, &navigation.target_id)?;
        let old_leaf = self.state().store.leaf().map(str::to_owned);
        if old_leaf.as_deref() == Some(navigation.target_id.as_str()) {
            return Ok(Answer::Navigated {
                text: None,
                cancelled: false,
            });
        }
        let choice = self
            .ask_hook(Moment::BeforeNavigation, cancel, |hooks| {
                let plan = self.navigation_plan(&navigation);
                hooks.before_navigation(plan, cancel.clone())
            })
            .await;
        let (navigation, ready) = match choice {
            None => (navigation, None),
            Some(NavigationChoice::Go {
                navigation,
                summary,
            }) => (*navigation, summary),
            Some(NavigationChoice::Cancel) => {
                return Ok(Answer::Navigated {
                    text: None,
                    cancelled: true,
                });
            }
        };
        let summary = match (&navigation.summary, ready) {
            (None, _) => None,
            (Some(_), Some((summary, details))) => Some((summary, details, None)),
            (Some(wanted), None) => {
                let target = &navigation.target_id;
                let (summary, files, usage) = self.summarise_branch(target, wanted, cancel).await?;
                Some((summary, Some(files.details()), Some(usage)))
            }
        };
        self.state().store.set_leaf(place.leaf.as_deref())?;
        let by_hook = matches!(summary, Some((_, _, None)));
        let mut summary_entry = None;
        if let Some((summary, details, usage)) = summary {
            self.log(NewEntry::BranchSummary {
                from_id: place.leaf.unwrap_or_else(|| "root".into()),
                summary,
                usage: self.recorded(usage),
                details,
                from_hook: Some(by_hook),
            });
            summary_entry = Some(self.leaf_entry());
        }
        if let Some(label) = navigation.label {
            let target_id = self.state().store.leaf().map(str::to_owned);
            if let Some(target_id) = target_id {
                self.log(NewEntry::Label {
                    target_id,
                    label: Some(label),
                });
            }
        }
        self.state().rebuild_messages();
        let new_leaf = self.state().store.leaf().map(str::to_owned);
        self.ask_hook(Moment::Navigated, cancel, |hooks| {
            hooks.navigated(old_leaf, new_leaf, summary_entry, by_hook)
        })
        .await;
        Ok(Answer::Navigated {
            text: place.text,
            cancelled: false,
        })
    }

    fn navigation_plan(&self, navigation: &Navigation) -> NavigationPlan {
        let state = self.state();
        let old = state.store.path();
        let shared = shared_length(&state.store, &old, &navigation.target_id);
        NavigationPlan {
            navigation: navigation.clone(),
            old_leaf: state.store.leaf().map(str::to_owned),
            common_ancestor: old[..shared].last().map(|entry| entry.id().to_string()),
            left: old[shared..]
                .iter()
                .filter_map(|entry| entry.value())
                .collect(),
        }
    }

    async fn summarise_branch(
        &self,
        target: &str,
        wanted: &BranchSummary,
        cancel: &CancellationToken,
    ) -> Result<(String, Files, Usage), EngineError> {
        let failed = |failure: Failure| EngineError::Compaction(failure.to_string());
        let model: Arc<Model> = self
            .state()
            .model
            .clone()
            .ok_or_else(|| failed(Failure::NoModel))?;
        let budget = model
            .context_window
            .saturating_sub(self.settings.branch_summary_reserve_tokens);
        let left = left_behind(&self.state().store, target);
        let messages = within(left, budget);
        if messages.is_empty() {
            return Err(EngineError::Compaction("No content to summarize".into()));
        }
        let prompt = instructions::branch(&serialise::conversation(&messages), wanted);
        let mut summariser = Summariser::new(self, model, SummaryPurpose::Branch, cancel);
        let text = summariser.ask(prompt, Part::Branch).await.map_err(failed)?;
        let mut files = Files::default();
        files.add_messages(&messages);
        let summary = format!("{PREAMBLE}{text}{}", files.listing());
        Ok((summary, files, summariser.usage))
    }
}

fn place(store: &Store, target: &str) -> Result<Place, SessionError> {
    let entry = store
        .entry(target)
        .ok_or_else(|| SessionError::EntryNotFound(target.to_owned()))?;
    let parent = || entry.parent_id().map(ToString::to_string);
    Ok(match (entry.kind(), entry.context_message().as_deref()) {
        (EntryKind::Message(Role::User), Some(Message::User(user))) => Place {
            leaf: parent(),
            text: Some(user.content.joined_text("")),
        },
        (_, Some(Message::Custom(custom))) => Place {
            leaf: parent(),
            text: Some(custom.content.joined_text("")),
        },
        _ => Place {
            leaf: Some(target.to_owned()),
            text: None,
        },
    })
}

/// How many entries of `old` are on the way to `to`.
fn shared_length(store: &Store, old: &[&Entry], to: &str) -> usize {
    let new = store.path_to(to);
    old.iter()
        .zip(&new)
        .take_while(|(old, new)| old.id() == new.id())
        .count()
}

/// The messages from the current leaf back to where the way to `to` parts, in order.
fn left_behind(store: &Store, to: &str) -> Vec<Arc<Message>> {
    let old = store.path();
    let shared = shared_length(store, &old, to);
    let edits = Edits::of(&old);
    let speaks = |entry: &&&Entry| !entry.is_message_of(Role::ToolResult);
    old[shared..]
        .iter()
        .filter(speaks)
        .filter_map(|entry| edits.message_of(entry))
        .collect()
}

/// The newest messages that fit, in order; a summary may exceed the budget while most is free.
fn within(messages: Vec<Arc<Message>>, budget: u64) -> Vec<Arc<Message>> {
    let mut used = 0;
    let mut kept = Vec::new();
    for message in messages.into_iter().rev() {
        let tokens = message_tokens(&message);
        if used + tokens > budget {
            let summary = matches!(
                *message,
                Message::BranchSummary(_) | Message::CompactionSummary(_)
            );
            if summary && used * 10 < budget * 9 {
                kept.push(message);
            }
            break;
        }
        used += tokens;
        kept.push(message);
    }
    kept.reverse();
    kept
}
