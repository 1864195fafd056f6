//! Navigation to another entry of the session tree, with an optional summary of the abandoned branch.

use std::sync::Arc;

use pinion_message::{Message, Model, Usage};
use pinion_session::{Edits, Entry, EntryKind, NewEntry, Role, SessionError, Store};
use tokio_util::sync::CancellationToken;

use super::files::TouchedFiles;
use super::summariser::{Summariser, SummaryPart};
use super::{CompactionFailure, instructions, serialise};
use crate::command::{BranchSummary, Navigation};
use crate::core::Core;
use crate::estimate::message_tokens;
use crate::hooks::{Moment, NavigationChoice, NavigationPlan};
use crate::system_message::is_system;
use crate::{Answer, EngineError, SummaryPurpose};

/// The text before the summary of an abandoned branch.
const PREAMBLE: &str = "The user explored another branch of this conversation and came back. A summary of that branch:\n\n";

/// The result of a navigation: the new leaf, and a text for the editor.
struct NavigationTarget {
    leaf: Option<String>,
    /// The text of the chosen user message, to be edited and sent again.
    text: Option<String>,
}

impl Core {
    /// Makes another entry the current one; new entries become its children.
    pub async fn navigate(
        &self,
        navigation: Navigation,
        cancel: &CancellationToken,
    ) -> Result<Answer, EngineError> {
        let target_id = navigation.target_id.clone();
        let target = self
            .read_session(cancel, move |store| navigation_target(store, &target_id))
            .await??;
        let old_leaf = self.state().store.leaf().map(str::to_owned);
        if old_leaf.as_deref() == Some(navigation.target_id.as_str()) {
            return Ok(Answer::Navigated {
                text: None,
                cancelled: false,
            });
        }
        let choice = match self.hook(Moment::BeforeNavigation) {
            None => None,
            Some(_) => {
                let chosen = navigation.clone();
                let plan = self
                    .read_session(cancel, move |store| navigation_plan(store, chosen))
                    .await?;
                self.ask_hook(Moment::BeforeNavigation, cancel, |hooks| {
                    hooks.before_navigation(plan, cancel.clone())
                })
                .await
            }
        };
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
                let target_id = &navigation.target_id;
                let (summary, files, usage) =
                    self.summarise_branch(target_id, wanted, cancel).await?;
                Some((summary, Some(files.details()), Some(usage)))
            }
        };
        self.check_readable(target.leaf.clone(), cancel).await?;
        self.state().store.set_leaf(target.leaf.as_deref())?;
        let by_hook = matches!(summary, Some((_, _, None)));
        let mut summary_entry = None;
        let mut newest = None;
        if let Some((summary, details, usage)) = summary {
            newest = self.push(NewEntry::BranchSummary {
                from_id: if self.settings.behaviour.name_left_entry_in_summary {
                    old_leaf.clone()
                } else {
                    Some(target.leaf.unwrap_or_else(|| "root".into()))
                },
                summary,
                usage: self.usage_to_store(usage),
                details,
                from_hook: Some(by_hook),
            });
            summary_entry = Some(self.leaf_entry());
        }
        if let Some(label) = navigation.label {
            let target_id = self.state().store.leaf().map(str::to_owned);
            if let Some(target_id) = target_id {
                let entry = NewEntry::Label {
                    target_id,
                    label: Some(label),
                };
                newest = self.push(entry).or(newest);
            }
        }
        self.save(newest, cancel).await;
        self.rebuild_messages(cancel).await;
        let new_leaf = self.state().store.leaf().map(str::to_owned);
        self.ask_hook(Moment::Navigated, cancel, |hooks| {
            hooks.navigated(old_leaf, new_leaf, summary_entry, by_hook)
        })
        .await;
        Ok(Answer::Navigated {
            text: target.text,
            cancelled: false,
        })
    }

    /// Checks that the conversation at `leaf` can be read, before it becomes the current one.
    async fn check_readable(
        &self,
        leaf: Option<String>,
        cancel: &CancellationToken,
    ) -> Result<(), EngineError> {
        match leaf {
            Some(leaf) if self.state().store.is_partly_in_file() => {
                self.read_session(cancel, move |store| drop(store.context_at(&leaf)))
                    .await
            }
            _ => Ok(()),
        }
    }

    async fn summarise_branch(
        &self,
        target: &str,
        wanted: &BranchSummary,
        cancel: &CancellationToken,
    ) -> Result<(String, TouchedFiles, Usage), EngineError> {
        let failed = |failure: CompactionFailure| EngineError::Compaction(failure.to_string());
        let model: Arc<Model> = self
            .state()
            .model
            .clone()
            .ok_or_else(|| failed(CompactionFailure::NoModel))?;
        let budget = model
            .context_window
            .saturating_sub(self.settings.branch_summary_reserve_tokens);
        let target = target.to_owned();
        let left = self
            .read_session(cancel, move |store| abandoned_messages(store, &target))
            .await?;
        let messages = newest_within(left, budget);
        if messages.is_empty() {
            return Err(EngineError::Compaction("No content to summarize".into()));
        }
        let prompt = instructions::branch(&serialise::conversation(&messages), wanted);
        let mut summariser = Summariser::new(self, model, SummaryPurpose::Branch, cancel);
        let text = summariser
            .ask(prompt, SummaryPart::Branch)
            .await
            .map_err(failed)?;
        let mut files = TouchedFiles::default();
        files.add_messages(&messages);
        let summary = format!("{PREAMBLE}{text}{}", files.listing());
        Ok((summary, files, summariser.usage))
    }
}

fn navigation_target(store: &Store, target: &str) -> Result<NavigationTarget, SessionError> {
    let entry = store
        .entry(target)
        .ok_or_else(|| SessionError::EntryNotFound(target.to_owned()))?;
    let parent = || entry.parent_id().map(ToString::to_string);
    Ok(match (entry.kind(), entry.context_message().as_deref()) {
        (EntryKind::Message(Role::User), Some(Message::User(user))) => NavigationTarget {
            leaf: parent(),
            text: Some(user.content.joined_text("")),
        },
        (_, Some(Message::Custom(custom))) => NavigationTarget {
            leaf: parent(),
            text: Some(custom.content.joined_text("")),
        },
        _ => NavigationTarget {
            leaf: Some(target.to_owned()),
            text: None,
        },
    })
}

fn navigation_plan(store: &Store, navigation: Navigation) -> NavigationPlan {
    let old = store.path();
    let shared = shared_length(store, &old, &navigation.target_id);
    NavigationPlan {
        navigation,
        old_leaf: store.leaf().map(str::to_owned),
        common_ancestor: old[..shared].last().map(|entry| entry.id().to_string()),
        left: old[shared..]
            .iter()
            .filter_map(|entry| entry.value())
            .collect(),
    }
}

/// Counts the entries at the start of the path `old` that are also on the path to `to`.
fn shared_length(store: &Store, old: &[&Entry], to: &str) -> usize {
    let new = store.path_to(to);
    old.iter()
        .zip(&new)
        .take_while(|(old, new)| old.id() == new.id())
        .count()
}

/// Returns the messages of the current branch that are not on the path to `to`, without tool results, in order.
fn abandoned_messages(store: &Store, to: &str) -> Vec<Arc<Message>> {
    let old = store.path();
    let shared = shared_length(store, &old, to);
    let edits = Edits::of(&old);
    let is_not_result = |entry: &&&Entry| !entry.is_message_of(Role::ToolResult);
    old[shared..]
        .iter()
        .filter(is_not_result)
        .filter_map(|entry| edits.message_of(entry))
        .filter(|message| !is_system(message))
        .collect()
}

/// Returns the newest messages that fit into `budget` tokens, in order. A summary may exceed the budget if less than
/// nine tenths of it are used.
fn newest_within(messages: Vec<Arc<Message>>, budget: u64) -> Vec<Arc<Message>> {
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
