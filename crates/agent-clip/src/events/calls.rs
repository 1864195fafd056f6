//! Events that callers create, change and cancel, and that the clock runs.

use std::sync::Arc;
use std::time::Duration;

use jiff::{Timestamp, Zoned};
use pinion_access::Principal;
use pinion_scheduler::Timed;
use pinion_status::{Code, Failure};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Event, Status, Taken};
use crate::AgentClip;
use crate::chat::blocking;
use crate::feed::Feed;
use crate::fields::EventFields;
use crate::record_file;
use crate::runs::PendingRun;
use crate::topics::{Run, title_of};

/// The longest prompt, in bytes.
const LONGEST_PROMPT: usize = 64 * 1024;
/// Time limit of an event's run. No caller waits for it, so no call has a deadline that would end it.
const LIMIT: Duration = Duration::from_secs(3600);

impl AgentClip {
    pub(crate) fn create_event(
        &self,
        caller: &Principal,
        fields: EventFields,
    ) -> Result<Event, Failure> {
        let kind = fields
            .kind
            .ok_or_else(|| Failure::invalid("type is required: once or daily"))?;
        for (name, text) in [("schedule", &fields.schedule), ("prompt", &fields.prompt)] {
            if text.is_none() {
                return Err(Failure::invalid(format!("{name} is required")));
            }
        }
        let time = record_file::now();
        let mut event = Event {
            id: uuid::Uuid::new_v4().to_string(),
            agent_id: self.agents.get(filled(fields.agent_id.as_deref()))?.id,
            topic_id: None,
            kind,
            schedule: String::new(),
            timezone: String::new(),
            prompt: String::new(),
            status: Status::Active,
            last_run_at: None,
            next_run_at: None,
            last_topic_id: None,
            last_run_id: None,
            last_error: None,
            owner: caller.to_string(),
            scope: match caller {
                Principal::Clip { owner, .. } => owner.clone(),
                _ => None,
            },
            created_at: time.clone(),
            updated_at: time,
        };
        self.take(caller, &mut event, fields)?;
        event.plan(Timestamp::now())?;
        self.events.add(event)
    }

    /// Changes an event. Its next due time changes only with its type, schedule, time zone or status: a form also sends
    /// back the fields that the user did not change.
    pub(crate) fn update_event(
        &self,
        caller: &Principal,
        id: &str,
        fields: EventFields,
    ) -> Result<Event, Failure> {
        self.events.change(caller, id, |event| {
            let before = event.clone();
            self.take(caller, event, fields)?;
            let time = |event: &Event| {
                let Event {
                    kind,
                    schedule,
                    timezone,
                    status,
                    ..
                } = event;
                (*kind, schedule.clone(), timezone.clone(), *status)
            };
            if time(event) == time(&before) {
                return Ok(());
            }
            event.plan(Timestamp::now())
        })
    }

    /// Cancels an event. A run in progress is not stopped.
    pub(crate) fn cancel_event(&self, caller: &Principal, id: &str) -> Result<Event, Failure> {
        self.events.change(caller, id, |event| {
            event.status = Status::Cancelled;
            event.next_run_at = None;
            Ok(())
        })
    }

    fn take(
        &self,
        caller: &Principal,
        event: &mut Event,
        fields: EventFields,
    ) -> Result<(), Failure> {
        let EventFields {
            agent_id,
            topic_id,
            kind,
            schedule,
            timezone,
            prompt,
            status,
        } = fields;
        let set = |place: &mut String, text: Option<String>| {
            if let Some(text) = text {
                *place = text.trim().to_owned();
            }
        };
        set(&mut event.schedule, schedule);
        set(&mut event.timezone, timezone);
        if let Some(prompt) = prompt {
            check_prompt(&prompt)?;
            event.prompt = prompt;
        }
        event.kind = kind.unwrap_or(event.kind);
        if let Some(status) = status
            && status != event.status
        {
            if status == Status::Done {
                let message =
                    "status is \"done\", which comes by itself: use active, paused or cancelled";
                return Err(Failure::invalid(message));
            }
            event.status = status;
        }
        if let Some(id) = filled(agent_id.as_deref())
            && id != event.agent_id
        {
            event.agent_id = self.agents.get(Some(id))?.id;
        }
        if let Some(id) = topic_id {
            event.topic_id = filled(Some(&id)).map(str::to_owned);
        }
        if let Some(id) = &event.topic_id {
            // Ids are also names of files.
            let id = crate::request::checked(id)?;
            // The agent of a topic does not change.
            event.agent_id = self.topics.get(caller, &id)?.agent_id;
        }
        Ok(())
    }

    /// Runs an event that is due and records the result.
    async fn call(self: Arc<Self>, taken: Taken) {
        let Taken { event, mark } = taken;
        let Some(mark) = mark else {
            let why = event.last_error.as_deref().unwrap_or_default();
            self.warn(&format!("event {}: {why}", event.id));
            self.note(&event.id, |_| ()).await;
            return;
        };
        let end = self.say(&event).await;
        if let Err(failure) = &end {
            self.warn(&format!("event {}: {failure}", event.id));
        }
        let error = end.err().map(|failure| failure.message.to_string());
        self.note(&event.id, move |event| event.end(error)).await;
        drop(mark);
        self.events.woken.notify_one();
    }

    async fn note(self: &Arc<Self>, id: &str, note: impl FnOnce(&mut Event) + Send + 'static) {
        let (clip, name) = (Arc::clone(self), id.to_owned());
        if let Err(failure) = blocking(move || clip.events.note(&name, note)).await {
            self.warn(&format!("event {id}: not written down: {failure}"));
        }
    }

    /// Sends the event's prompt to its topic, as `chat` does.
    async fn say(self: &Arc<Self>, event: &Event) -> Result<(), Failure> {
        let caller = event.caller();
        let (clip, asker, wanted) = (Arc::clone(self), caller.clone(), event.clone());
        let topic = blocking(move || match &wanted.topic_id {
            Some(id) => clip.topics.get(&asker, id),
            None => {
                let title = title_of(&wanted.prompt);
                clip.topics.create(&asker, &wanted.agent_id, Some(&title))
            }
        });
        let topic = topic.await?;
        let run = Run::in_topic(&topic.id);
        let (topic_id, run_id) = (run.topic_id.clone(), run.id.clone());
        // The removed due time is written before the prompt is sent.
        self.note(&event.id, move |event| {
            event.last_topic_id = Some(topic_id);
            event.last_run_id = Some(run_id);
        })
        .await;
        let stop = CancellationToken::new();
        // No caller reads the answer.
        let (feed, answers) = Feed::new(None, stop.clone(), true);
        drop(answers);
        let turn = PendingRun::for_event(run, stop.clone());
        let prompt = event.prompt.clone();
        let run = self.run_in(&caller, &topic, prompt, turn, &feed);
        tokio::pin!(run);
        tokio::select! {
            end = &mut run => end.map(drop),
            () = tokio::time::sleep(LIMIT) => {
                stop.cancel();
                // The run ends because `stop` is cancelled.
                let _ = run.await;
                let message = format!("the run was not over after {} minutes", LIMIT.as_secs() / 60);
                Err(Failure::new(Code::DeadlineExceeded, message))
            }
        }
    }
}

impl Timed for AgentClip {
    fn tick(self: &Arc<Self>, now: &Zoned) -> Option<Timestamp> {
        let (taken, next) = self.events.take_due(now.timestamp());
        for taken in taken {
            tokio::spawn(Arc::clone(self).call(taken));
        }
        next
    }

    fn woken(&self) -> &Arc<Notify> {
        &self.events.woken
    }
}

/// Returns the trimmed text; `None` if it is empty, as in a field of a form that was not filled in.
fn filled(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

fn check_prompt(prompt: &str) -> Result<(), Failure> {
    if prompt.trim().is_empty() {
        return Err(Failure::invalid("prompt is required"));
    }
    if prompt.len() > LONGEST_PROMPT {
        return Err(Failure::invalid(format!(
            "prompt has at most {LONGEST_PROMPT} bytes"
        )));
    }
    Ok(())
}
