//! Requests to JetStream: streams, publishing with expectations, and direct reading.
//!
//! A write is repeated only with the same id and the same expectation, which the server recognises; an answer that was
//! lost therefore never leads to a second write.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{HeaderMap, Message};
use bytes::Bytes;
use futures_util::StreamExt;
use pinion_status::{Code, Failure};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::bus::{Epoch, RequestError};
use crate::names::{Bucket, random};
use crate::stream;

/// The time for one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// The time for a write with its repetitions; it covers an election of the servers.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// The time within which the next message of a batch must arrive.
const BATCH_TIMEOUT: Duration = Duration::from_secs(2);

const EXPECTED_SEQUENCE: &str = "Nats-Expected-Last-Subject-Sequence";
const MESSAGE_ID: &str = "Nats-Msg-Id";
const TIME_TO_LIVE: &str = "Nats-TTL";
const ROLLUP: &str = "Nats-Rollup";
const OPERATION: &str = "KV-Operation";
const MARKER_REASON: &str = "Nats-Marker-Reason";
const SEQUENCE: &str = "Nats-Sequence";
const SUBJECT: &str = "Nats-Subject";
const PENDING: &str = "Nats-Num-Pending";
const LAST_SEQUENCE: &str = "Nats-Last-Sequence";

const WRONG_SEQUENCE: u64 = 10_071;
const NO_MESSAGE: u64 = 10_037;
const OTHER_CONFIGURATION: u64 = 10_058;
const NOT_ENOUGH_SERVERS: [u64; 2] = [10_005, 10_074];

/// The keys of a bucket, over one epoch.
#[derive(Debug, Clone)]
pub struct Store {
    epoch: Arc<Epoch>,
    bucket: Bucket,
}

/// The state that a key must be in for a write to succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The key has never existed, or nothing is left of it.
    Nothing,
    /// The last change of the key has this number, marks of its removal included.
    Revision(u64),
}

/// The life of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    Endless,
    /// Whole seconds, at least one.
    Seconds(u32),
}

/// The failure of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteError {
    /// Another write was faster; the key's last change has this number.
    Conflict(u64),
    /// The bucket cannot be written now. The write may have happened.
    Unavailable(Failure),
}

/// A change of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub key: String,
    pub revision: u64,
    pub state: KeyState,
    /// The departure that the process which removed the key has noted.
    pub departure: Option<String>,
}

/// The state of a key after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyState {
    Value(Bytes),
    /// A process removed it.
    Removed,
    /// Its time to live has passed.
    Expired,
}

/// The end of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchEnd {
    /// The last message that the answering server has.
    pub last: u64,
    /// Messages behind the batch.
    pub pending: u64,
}

#[derive(Debug, Deserialize)]
struct ApiError {
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

#[derive(Debug, Deserialize)]
struct Acknowledgement {
    #[serde(default)]
    seq: u64,
    error: Option<ApiError>,
}

/// A header in which a process notes how the owner of a key departed.
pub const DEPARTURE: &str = "Pinion-Departure";

impl Store {
    pub fn new(epoch: Arc<Epoch>, bucket: Bucket) -> Self {
        Self { epoch, bucket }
    }

    pub fn epoch(&self) -> &Arc<Epoch> {
        &self.epoch
    }

    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// Creates the bucket with as many copies as there are servers, at most three, and checks the configuration that the
    /// server returns.
    pub async fn ensure(
        &self,
        replicas: Option<stream::Replicas>,
    ) -> Result<stream::Replicas, Failure> {
        if let Some(replicas) = replicas {
            return self.ensure_with(replicas).await.map(|()| replicas);
        }
        // One server refuses more than one copy, and so does a cluster with too few.
        let mut refused = None;
        let present = self.info().await?;
        let present = present
            .as_ref()
            .and_then(|info| info["config"]["num_replicas"].as_u64());
        let choices = match present.and_then(|it| u8::try_from(it).ok()) {
            Some(present) => vec![present],
            None => vec![3, 2, 1],
        };
        for copies in choices {
            let replicas = stream::Replicas(copies);
            match self.ensure_with(replicas).await {
                Ok(()) => return Ok(replicas),
                Err(failure) if failure.code == Code::ResourceExhausted => refused = Some(failure),
                Err(failure) => return Err(failure),
            }
        }
        Err(refused.unwrap_or_else(|| unavailable("no server accepts the bucket")))
    }

    async fn ensure_with(&self, replicas: stream::Replicas) -> Result<(), Failure> {
        let wanted = stream::bucket(&self.bucket, replicas);
        let name = self.bucket.stream();
        let answer = self.api(format!("STREAM.CREATE.{name}"), &wanted).await?;
        let present = match error_of(&answer) {
            None => answer,
            Some(error) if error.err_code == OTHER_CONFIGURATION => {
                self.info().await?.unwrap_or(Value::Null)
            }
            Some(error) if NOT_ENOUGH_SERVERS.contains(&error.err_code) => {
                let message = format!(
                    "the servers cannot store {} copies: {}",
                    replicas.0, error.description
                );
                return Err(Failure::new(Code::ResourceExhausted, message));
            }
            Some(error) => {
                let message = format!(
                    "the servers refuse the bucket {name}: {}",
                    error.description
                );
                return Err(Failure::new(Code::FailedPrecondition, message));
            }
        };
        match stream::difference(&wanted, &present["config"]) {
            None => Ok(()),
            Some(difference) => {
                let message = format!(
                    "the stream {name} has another configuration than this version of pinion needs: {difference}. Its \
                     server is too old, or another program made it; --cluster-name selects another cluster"
                );
                Err(Failure::new(Code::FailedPrecondition, message))
            }
        }
    }

    /// Returns the state of the stream; `None` if it does not exist.
    pub async fn info(&self) -> Result<Option<Value>, Failure> {
        let answer = self
            .api(format!("STREAM.INFO.{}", self.bucket.stream()), &json!({}))
            .await?;
        match error_of(&answer) {
            None => Ok(Some(answer)),
            Some(error) if error.err_code == 10_059 => Ok(None),
            Some(error) => Err(unavailable(&error.description)),
        }
    }

    /// Makes a request that only reads, or whose repetition changes nothing. Repeats it during an election.
    async fn api(&self, subject: String, request: &Value) -> Result<Value, Failure> {
        let payload = Bytes::from(request.to_string());
        let until = Instant::now() + WRITE_TIMEOUT;
        loop {
            let subject = format!("$JS.API.{subject}");
            let asked = self
                .epoch
                .request(subject, None, payload.clone(), REQUEST_TIMEOUT);
            match asked.await {
                Ok(answer) => {
                    return serde_json::from_slice(&answer.payload)
                        .map_err(|error| unavailable(&format!("its answer is damaged: {error}")));
                }
                Err(RequestError::Ended) => return Err(unavailable("the connection was lost")),
                Err(_) if Instant::now() >= until => {
                    return Err(unavailable(
                        "JetStream does not answer; do its servers have a majority?",
                    ));
                }
                Err(_) => tokio::time::sleep(RETRY_INTERVAL).await,
            }
        }
    }

    /// Writes a value, if the key is in the expected state. Returns the number of the change.
    pub async fn put(
        &self,
        key: &str,
        value: Bytes,
        expected: Expected,
        lifetime: Lifetime,
    ) -> Result<u64, WriteError> {
        let mut headers = HeaderMap::new();
        if let Lifetime::Seconds(seconds) = lifetime {
            headers.insert(TIME_TO_LIVE, format!("{}s", seconds.max(1)));
        }
        self.write(key, value, expected, headers, WRITE_TIMEOUT)
            .await
    }

    /// Like [`Self::put`], but gives up after `limit`: for renewals, whose next one follows.
    pub async fn put_within(
        &self,
        key: &str,
        value: Bytes,
        expected: Expected,
        seconds: u32,
        limit: Duration,
    ) -> Result<u64, WriteError> {
        let mut headers = HeaderMap::new();
        headers.insert(TIME_TO_LIVE, format!("{}s", seconds.max(1)));
        self.write(key, value, expected, headers, limit).await
    }

    /// Removes a key, if its last change has the number `revision`. A mark of the removal stays for five minutes.
    pub async fn remove(
        &self,
        key: &str,
        revision: u64,
        departure: Option<&str>,
    ) -> Result<u64, WriteError> {
        let mut headers = HeaderMap::new();
        headers.insert(OPERATION, "PURGE");
        headers.insert(ROLLUP, "sub");
        headers.insert(
            TIME_TO_LIVE,
            format!("{}s", stream::MARKER_LIFETIME_SECONDS),
        );
        if let Some(departure) = departure {
            headers.insert(DEPARTURE, departure);
        }
        let expected = Expected::Revision(revision);
        self.write(key, Bytes::new(), expected, headers, WRITE_TIMEOUT)
            .await
    }

    async fn write(
        &self,
        key: &str,
        value: Bytes,
        expected: Expected,
        mut headers: HeaderMap,
        limit: Duration,
    ) -> Result<u64, WriteError> {
        let number = match expected {
            Expected::Nothing => 0,
            Expected::Revision(revision) => revision,
        };
        headers.insert(EXPECTED_SEQUENCE, number.to_string());
        let id = random().map_err(WriteError::Unavailable)?;
        headers.insert(MESSAGE_ID, format!("{id:016x}"));
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let asked = self.epoch.request(
                self.bucket.subject(key),
                Some(headers.clone()),
                value.clone(),
                REQUEST_TIMEOUT.min(left.max(Duration::from_millis(1))),
            );
            match asked.await {
                Ok(answer) => match acknowledged(&answer) {
                    Ok(revision) => return Ok(revision),
                    Err(WriteError::Unavailable(failure)) if Instant::now() >= until => {
                        return Err(WriteError::Unavailable(failure));
                    }
                    Err(WriteError::Unavailable(failure)) if failure.code != Code::Unavailable => {
                        return Err(WriteError::Unavailable(failure));
                    }
                    Err(WriteError::Unavailable(_)) => tokio::time::sleep(RETRY_INTERVAL).await,
                    Err(conflict) => return Err(conflict),
                },
                Err(RequestError::Ended) => {
                    return Err(WriteError::Unavailable(unavailable(
                        "the connection was lost",
                    )));
                }
                Err(RequestError::TooLarge) => {
                    let message = format!("the value of \"{key}\" is too large for the cluster");
                    let failure = Failure::new(Code::ResourceExhausted, message);
                    return Err(WriteError::Unavailable(failure));
                }
                Err(_) if Instant::now() >= until => {
                    let failure =
                        unavailable("JetStream does not answer; do its servers have a majority?");
                    return Err(WriteError::Unavailable(failure));
                }
                Err(_) => tokio::time::sleep(RETRY_INTERVAL.min(left)).await,
            }
        }
    }

    /// Reads the last change of a key from any server, which may be behind; `None` if nothing is left of the key.
    pub async fn last(&self, key: &str) -> Result<Option<Change>, Failure> {
        let subject = format!(
            "$JS.API.DIRECT.GET.{}.{}",
            self.bucket.stream(),
            self.bucket.subject(key)
        );
        let until = Instant::now() + WRITE_TIMEOUT;
        loop {
            let asked = self
                .epoch
                .request(subject.clone(), None, Bytes::new(), REQUEST_TIMEOUT);
            match asked.await {
                Ok(answer) if status_of(&answer) == Some(404) => return Ok(None),
                Ok(answer) => {
                    let change = change(&self.bucket, &answer);
                    return change
                        .map(Some)
                        .ok_or_else(|| unavailable("its answer is damaged"));
                }
                Err(RequestError::Ended) => return Err(unavailable("the connection was lost")),
                Err(_) if Instant::now() >= until => {
                    return Err(unavailable("JetStream does not answer"));
                }
                Err(_) => tokio::time::sleep(RETRY_INTERVAL).await,
            }
        }
    }

    /// Reads changes from number `from` on, in order, at most `most`. Each key occurs once, with its last change.
    pub async fn batch(
        &self,
        from: u64,
        most: u32,
        mut apply: impl FnMut(Change),
    ) -> Result<BatchEnd, Failure> {
        let inbox = self.epoch.new_inbox();
        let lost = |_| unavailable("the connection was lost");
        let mut answers = self.epoch.subscribe(inbox.clone()).await.map_err(lost)?;
        let request = json!({ "seq": from, "next_by_subj": self.bucket.subjects(), "batch": most });
        let subject = format!("$JS.API.DIRECT.GET.{}", self.bucket.stream());
        self.epoch
            .publish(subject, Some(inbox), request.to_string().into())
            .await
            .map_err(lost)?;
        let mut last = from.saturating_sub(1);
        loop {
            let next = tokio::time::timeout(BATCH_TIMEOUT, answers.next());
            let message = tokio::select! {
                biased;
                () = self.epoch.ended().cancelled() => return Err(lost(crate::bus::Ended)),
                message = next => message,
            };
            let Ok(Some(message)) = message else {
                return Err(unavailable("JetStream does not answer"));
            };
            match status_of(&message) {
                None | Some(200) => {
                    if let Some(change) = change(&self.bucket, &message) {
                        last = last.max(change.revision);
                        apply(change);
                    }
                }
                Some(204) => {
                    let pending = number(&message, PENDING).unwrap_or(0);
                    let last = number(&message, LAST_SEQUENCE).unwrap_or(last);
                    return Ok(BatchEnd { last, pending });
                }
                Some(404) => return Ok(BatchEnd { last, pending: 0 }),
                Some(503) => return Err(unavailable("JetStream has no leader at the moment")),
                Some(status) => {
                    let message = format!("reading the bucket failed with status {status}");
                    return Err(Failure::new(Code::Internal, message));
                }
            }
        }
    }

    /// Asks the leader for the next change from number `from` on; `None` if there is none.
    pub async fn next_at_leader(&self, from: u64) -> Result<Option<u64>, Failure> {
        let request = json!({ "seq": from, "next_by_subj": self.bucket.subjects() });
        let subject = format!("STREAM.MSG.GET.{}", self.bucket.stream());
        let answer = self.api(subject, &request).await?;
        match error_of(&answer) {
            None => Ok(answer["message"]["seq"].as_u64()),
            Some(error) if error.err_code == NO_MESSAGE => Ok(None),
            Some(error) => Err(unavailable(&error.description)),
        }
    }

    /// Returns the last number of the stream, which the leader knows.
    pub async fn last_number(&self) -> Result<u64, Failure> {
        let info = self.info().await?;
        let last = info
            .as_ref()
            .and_then(|info| info["state"]["last_seq"].as_u64());
        last.ok_or_else(|| unavailable("the bucket is gone"))
    }
}

fn unavailable(why: &str) -> Failure {
    let message = format!("the cluster cannot store anything at the moment: {why}");
    Failure::new(Code::Unavailable, message)
}

fn error_of(answer: &Value) -> Option<ApiError> {
    serde_json::from_value(answer.get("error")?.clone()).ok()
}

fn acknowledged(answer: &Message) -> Result<u64, WriteError> {
    let read: Acknowledgement = serde_json::from_slice(&answer.payload).map_err(|error| {
        WriteError::Unavailable(unavailable(&format!("its answer is damaged: {error}")))
    })?;
    let Some(error) = read.error else {
        return Ok(read.seq);
    };
    if error.err_code == WRONG_SEQUENCE {
        let last = error
            .description
            .rsplit(' ')
            .next()
            .and_then(|number| number.parse().ok());
        return Err(last.map_or_else(
            || WriteError::Unavailable(unavailable(&error.description)),
            WriteError::Conflict,
        ));
    }
    // 10167: the value has no time to live that the server understands; 10054: it is too large.
    let is_final = matches!(error.err_code, 10_165..=10_167 | 10_054);
    let failure = if is_final {
        let message = format!("the servers refuse the value: {}", error.description);
        Failure::new(Code::FailedPrecondition, message)
    } else {
        unavailable(&error.description)
    };
    Err(WriteError::Unavailable(failure))
}

fn status_of(message: &Message) -> Option<u16> {
    message.status.map(|status| status.as_u16())
}

fn header<'a>(message: &'a Message, name: &str) -> Option<&'a str> {
    let headers = message.headers.as_ref()?;
    headers.get(name).map(async_nats::HeaderValue::as_str)
}

fn number(message: &Message, name: &str) -> Option<u64> {
    header(message, name)?.parse().ok()
}

/// Reads a change from a message of a batch or of the feed; `None` if it is not one of this bucket.
pub(crate) fn change(bucket: &Bucket, message: &Message) -> Option<Change> {
    let revision = number(message, SEQUENCE)?;
    let subject = header(message, SUBJECT).unwrap_or(message.subject.as_str());
    let key = bucket.key_of(subject)?.to_owned();
    let state = match (header(message, MARKER_REASON), header(message, OPERATION)) {
        (Some("MaxAge"), _) => KeyState::Expired,
        (Some(_), _) | (None, Some("PURGE" | "DEL")) => KeyState::Removed,
        (None, _) => KeyState::Value(message.payload.clone()),
    };
    let departure = header(message, DEPARTURE).map(str::to_owned);
    Some(Change {
        key,
        revision,
        state,
        departure,
    })
}
