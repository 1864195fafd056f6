//! Topics: a small record and a session each, on disk.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pinion_access::Principal;
use pinion_session::{SessionInfo, Store};
use pinion_status::{Code, Failure};
use pinion_text::shorten;
use serde::{Deserialize, Serialize};

use super::record_file::{now, read, replace};

/// The longest title, in characters.
const LONGEST_TITLE: usize = 80;

/// The record of a conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Topic {
    pub id: String,
    pub agent_id: String,
    pub title: String,
    /// The creator. Only the creator and the hub's owner see the topic.
    pub owner: String,
    pub created_at: String,
    pub updated_at: String,
    /// The last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
}

/// The record of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Run {
    pub id: String,
    pub topic_id: String,
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub started_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
}

impl Run {
    /// Creates a run that starts now.
    pub fn in_topic(topic: &str) -> Self {
        Self {
            id: uuid::Uuid::new_v4().to_string(),
            topic_id: topic.to_owned(),
            status: Status::Running,
            error: None,
            started_at: now(),
            finished_at: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Running,
    Done,
    Error,
    Cancelled,
}

/// The stored topics.
#[derive(Debug)]
pub(super) struct Topics {
    records: PathBuf,
    sessions: PathBuf,
    /// Locked while a record is changed, so that no change is lost.
    changing: Mutex<()>,
}

impl Topics {
    /// Opens the topics in `directory` and creates its subdirectories.
    pub fn open(directory: &Path) -> Result<Self, Failure> {
        let topics = Self {
            records: directory.join("topics"),
            sessions: directory.join("sessions"),
            changing: Mutex::default(),
        };
        for directory in [&topics.records, &topics.sessions] {
            std::fs::create_dir_all(directory)
                .map_err(|error| Failure::io(directory.display(), &error))?;
        }
        Ok(topics)
    }

    /// Returns the directory of the session files.
    pub fn sessions(&self) -> &Path {
        &self.sessions
    }

    fn record(&self, id: &str) -> PathBuf {
        self.records.join(format!("{id}.json"))
    }

    /// Returns the topics that `caller` may see, the last used first. Skips records that cannot be read.
    pub fn all(&self, caller: &Principal) -> Result<Vec<Topic>, Failure> {
        let failed = |error| Failure::io(self.records.display(), &error);
        let mut topics = Vec::new();
        for entry in std::fs::read_dir(&self.records).map_err(failed)?.flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            if let Ok(Some(topic)) = read::<Topic>(&path)
                && sees(caller, &topic.owner)
            {
                topics.push(topic);
            }
        }
        topics.sort_by(|one, other| {
            let by_use = other.updated_at.cmp(&one.updated_at);
            by_use.then_with(|| one.id.cmp(&other.id))
        });
        Ok(topics)
    }

    /// Returns the topic of this id, if `caller` may see it.
    pub fn get(&self, caller: &Principal, id: &str) -> Result<Topic, Failure> {
        let found: Option<Topic> = read(&self.record(id))?;
        let seen = found.filter(|topic| sees(caller, &topic.owner));
        seen.ok_or_else(|| Failure::new(Code::NotFound, format!("there is no topic \"{id}\"")))
    }

    pub fn create(
        &self,
        caller: &Principal,
        agent_id: &str,
        title: Option<&str>,
    ) -> Result<Topic, Failure> {
        let time = now();
        let topic = Topic {
            id: uuid::Uuid::new_v4().to_string(),
            agent_id: agent_id.to_owned(),
            title: title_of(title.unwrap_or_default()),
            owner: caller.to_string(),
            created_at: time.clone(),
            updated_at: time,
            run: None,
        };
        self.save(&topic)?;
        Ok(topic)
    }

    fn save(&self, topic: &Topic) -> Result<(), Failure> {
        replace(&self.record(&topic.id), topic)
    }

    /// Changes a topic that `caller` may see.
    pub fn change(
        &self,
        caller: &Principal,
        id: &str,
        change: impl FnOnce(&mut Topic),
    ) -> Result<Topic, Failure> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut topic = self.get(caller, id)?;
        change(&mut topic);
        self.save(&topic)?;
        Ok(topic)
    }

    /// Deletes a topic and its session.
    pub fn delete(&self, topic: &Topic) -> Result<(), Failure> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = self.session(topic) {
            std::fs::remove_file(&session)
                .map_err(|error| Failure::io(session.display(), &error))?;
        }
        let record = self.record(&topic.id);
        std::fs::remove_file(&record).map_err(|error| Failure::io(record.display(), &error))
    }

    /// Returns the topic's session file, which exists once it contains an answer.
    pub fn session(&self, topic: &Topic) -> Option<PathBuf> {
        pinion_session::find_id(&self.sessions, &topic.id)
    }

    /// Opens the topic's session for reading; `None` before its file exists.
    pub fn look(&self, topic: &Topic) -> Result<Option<Store>, Failure> {
        let Some(path) = self.session(topic) else {
            return Ok(None);
        };
        let opened = Store::open_read_only(&path, &self.sessions);
        let opened = opened.map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
        Ok(Some(opened.store))
    }

    /// Lists the session files of all topics.
    pub fn contents(&self) -> Vec<SessionInfo> {
        pinion_session::list(&self.sessions)
    }
}

/// Reports whether `caller` may see the records of `owner`.
pub(super) fn sees(caller: &Principal, owner: &str) -> bool {
    match caller {
        Principal::Super => true,
        Principal::Metrics | Principal::Guest | Principal::Anonymous => false,
        other => owner == other.to_string(),
    }
}

/// Returns the first line of a message, shortened to a title.
pub(super) fn title_of(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim();
    shorten(line, LONGEST_TITLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clip(alias: &str) -> Principal {
        Principal::Clip {
            alias: alias.into(),
            owner: None,
        }
    }

    #[test]
    fn topics_are_seen_by_who_began_them_and_who_owns_the_hub() {
        let place = tempfile::tempdir().unwrap();
        let topics = Topics::open(place.path()).unwrap();
        let mine = topics
            .create(&clip("todo"), "default", Some("Mine\nand more"))
            .unwrap();
        assert_eq!(mine.title, "Mine");
        assert!(topics.get(&clip("todo"), &mine.id).is_ok());
        assert!(topics.get(&Principal::Super, &mine.id).is_ok());
        for other in [clip("browser"), Principal::Guest, Principal::Anonymous] {
            assert_eq!(
                topics.get(&other, &mine.id).unwrap_err().code,
                Code::NotFound
            );
            assert!(topics.all(&other).unwrap().is_empty());
        }
        std::fs::write(place.path().join("topics/broken.json"), "{").unwrap();
        assert_eq!(topics.all(&Principal::Super).unwrap().len(), 1);
        topics.delete(&mine).unwrap();
        assert!(topics.get(&Principal::Super, &mine.id).is_err());
    }

    #[test]
    fn titles_are_short() {
        assert_eq!(title_of("  \n Hello \nworld"), "Hello");
        assert_eq!(title_of(""), "");
        let long = title_of(&"é".repeat(200));
        assert_eq!(long.chars().count(), LONGEST_TITLE + 1);
    }
}
