//! The channel to the server: requests on one side, a thread with the connection on the other.

use std::collections::HashMap;
use std::future::Future;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_postgres::{Client, Config, Error, NoTls, Statement};

use super::errors::{convert, describe};
use super::tls::{Encryption, Tls};
use super::values::{Value, row};
use crate::HistoryError;
use crate::sql::{Access, Row};

/// The server's time limits for a statement and for a lock within it.
const SETTINGS: &str =
    "SET statement_timeout = '30s'; SET lock_timeout = '10s'; SET client_min_messages = warning";
/// The longest wait for an answer, also on a dead network.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(40);

/// A request to the thread. Each is answered once.
pub(super) enum Request {
    /// Statements without parameters and results.
    Batch { sql: &'static str, reply: Reply<()> },
    /// One statement for each row of parameters.
    Execute {
        sql: &'static str,
        rows: Vec<Vec<Value>>,
        reply: Reply<u64>,
    },
    Query {
        sql: &'static str,
        args: Vec<Value>,
        reply: Reply<Vec<Row>>,
    },
}

/// The channel for an answer.
pub(super) type Reply<T> = SyncSender<Result<T, HistoryError>>;

/// The thread with the connection.
#[derive(Debug)]
pub(super) struct Channel {
    /// Dropped when the channel closes, which ends the thread.
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    place: String,
}

impl Channel {
    /// Connects; fails with the reason.
    pub(super) fn start(
        config: Config,
        encryption: Encryption,
        access: Access,
        place: String,
    ) -> Result<Self, HistoryError> {
        // A caller waits for the answer before it sends the next request, so the channel never holds more than one.
        let (requests, asked) = channel(1);
        let (ready, connected) = sync_channel(1);
        let thread_side = ServerThread {
            config,
            encryption,
            access,
            place: place.clone(),
        };
        let thread = thread::Builder::new()
            .name("history-postgres".to_owned())
            .spawn(move || thread_side.serve(asked, &ready))
            .map_err(|error| HistoryError::Connect {
                place: place.clone(),
                detail: error.to_string(),
            })?;
        let channel = Self {
            requests: Some(requests),
            thread: Some(thread),
            place,
        };
        match connected.recv() {
            Ok(connected) => connected.map(|()| channel),
            Err(_) => Err(channel.ended()),
        }
    }

    /// Sends a request and waits for its answer.
    pub(super) fn request<T>(
        &self,
        request: impl FnOnce(Reply<T>) -> Request,
    ) -> Result<T, HistoryError> {
        let (reply, answer) = sync_channel(1);
        let requests = self.requests.as_ref().ok_or_else(|| self.ended())?;
        requests
            .try_send(request(reply))
            .map_err(|error| match error {
                TrySendError::Full(_) => self.failed("another request is waiting for it"),
                TrySendError::Closed(_) => self.ended(),
            })?;
        answer.recv().unwrap_or_else(|_| Err(self.ended()))
    }

    /// Runs statements without parameters.
    pub(super) fn batch(&self, sql: &'static str) -> Result<(), HistoryError> {
        self.request(|reply| Request::Batch { sql, reply })
    }

    fn ended(&self) -> HistoryError {
        self.failed("the thread that speaks to it has ended")
    }

    fn failed(&self, detail: &str) -> HistoryError {
        HistoryError::Database {
            action: "use",
            place: self.place.clone(),
            detail: detail.to_owned(),
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic in the thread was already reported as an error.
            let _ = thread.join();
        }
    }
}

/// The thread's side of the channel.
struct ServerThread {
    config: Config,
    encryption: Encryption,
    access: Access,
    place: String,
}

/// A connection and its prepared statements.
struct Connected {
    client: Client,
    prepared: HashMap<&'static str, Statement>,
}

impl ServerThread {
    fn serve(self, asked: Receiver<Request>, ready: &Reply<()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build();
        match runtime {
            Ok(runtime) => runtime.block_on(self.answer(asked, ready)),
            Err(error) => {
                let failed = HistoryError::Connect {
                    place: self.place,
                    detail: error.to_string(),
                };
                // If this fails, the caller has stopped waiting.
                let _ = ready.send(Err(failed));
            }
        }
    }

    async fn answer(self, mut asked: Receiver<Request>, ready: &Reply<()>) {
        let mut connected = match self.connect().await {
            Ok(connected) => connected,
            Err(error) => {
                let _ = ready.send(Err(error));
                return;
            }
        };
        let _ = ready.send(Ok(()));
        while let Some(request) = asked.recv().await {
            if connected.client.is_closed() && request.begins() {
                match self.connect().await {
                    Ok(again) => connected = again,
                    Err(error) => {
                        request.fail(error);
                        continue;
                    }
                }
            }
            match request {
                Request::Batch { sql, reply } => {
                    let done = connected.client.batch_execute(sql);
                    let _ = reply.send(self.bounded("use", done).await);
                }
                Request::Execute { sql, rows, reply } => {
                    let done = connected.execute(sql, rows);
                    let _ = reply.send(self.bounded("write to", done).await);
                }
                Request::Query { sql, args, reply } => {
                    let done = connected.query(sql, args);
                    let _ = reply.send(self.bounded("read", done).await);
                }
            }
        }
    }

    async fn connect(&self) -> Result<Connected, HistoryError> {
        let client = match tokio::time::timeout(ANSWER_TIMEOUT, self.connect_client()).await {
            Ok(reached) => reached.map_err(|detail| HistoryError::Connect {
                place: self.place.clone(),
                detail,
            })?,
            Err(_) => return Err(self.timed_out()),
        };
        let prepare = client.batch_execute(SETTINGS);
        self.bounded("open", prepare).await?;
        if self.access == Access::ReadOnly {
            let read_only = client.batch_execute("SET default_transaction_read_only = on");
            self.bounded("open", read_only).await?;
        }
        Ok(Connected {
            client,
            prepared: HashMap::new(),
        })
    }

    /// Connects with the encryption that the DSN requires.
    async fn connect_client(&self) -> Result<Client, String> {
        match &self.encryption {
            Encryption::Never => self.plain().await,
            Encryption::Required(roots) => self.encrypted(roots.as_deref()).await,
            Encryption::Tried(roots) => match self.encrypted(roots.as_deref()).await {
                Ok(client) => Ok(client),
                Err(_) => self.plain().await,
            },
        }
    }

    async fn plain(&self) -> Result<Client, String> {
        let connected = self.config.connect(NoTls).await;
        let (client, connection) = connected.map_err(|error| describe(&error))?;
        // The task ends with the client; statements report its errors too.
        tokio::spawn(async move { drop(connection.await) });
        Ok(client)
    }

    async fn encrypted(&self, roots: Option<&str>) -> Result<Client, String> {
        let connected = self.config.connect(Tls::new(roots)?).await;
        let (client, connection) = connected.map_err(|error| describe(&error))?;
        tokio::spawn(async move { drop(connection.await) });
        Ok(client)
    }

    async fn bounded<T>(
        &self,
        action: &'static str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, HistoryError> {
        match tokio::time::timeout(ANSWER_TIMEOUT, work).await {
            Ok(done) => done.map_err(|error| convert(&self.place, action, &error)),
            Err(_) => Err(self.timed_out()),
        }
    }

    fn timed_out(&self) -> HistoryError {
        HistoryError::Database {
            action: "use",
            place: self.place.clone(),
            detail: format!("no answer for {} seconds", ANSWER_TIMEOUT.as_secs()),
        }
    }
}

impl Connected {
    async fn prepare(&mut self, sql: &'static str) -> Result<Statement, Error> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.prepared.insert(sql, statement.clone());
        Ok(statement)
    }

    async fn execute(&mut self, sql: &'static str, rows: Vec<Vec<Value>>) -> Result<u64, Error> {
        let statement = self.prepare(sql).await?;
        let sent = rows
            .iter()
            .map(|row| self.client.execute_raw(&statement, row));
        Ok(try_join_all(sent).await?.into_iter().sum())
    }

    async fn query(&mut self, sql: &'static str, args: Vec<Value>) -> Result<Vec<Row>, Error> {
        let statement = self.prepare(sql).await?;
        let args: Vec<_> = args
            .iter()
            .map(|value| value as &(dyn tokio_postgres::types::ToSql + Sync))
            .collect();
        let rows = self.client.query(&statement, &args).await?;
        rows.iter().map(row).collect()
    }
}

impl Request {
    /// Reports whether the request can run on a new connection without losing work.
    fn begins(&self) -> bool {
        matches!(self, Self::Batch { sql, .. } if sql.starts_with("BEGIN"))
    }

    fn fail(self, error: HistoryError) {
        // If these fail, the caller has stopped waiting.
        match self {
            Self::Batch { reply, .. } => drop(reply.send(Err(error))),
            Self::Execute { reply, .. } => drop(reply.send(Err(error))),
            Self::Query { reply, .. } => drop(reply.send(Err(error))),
        }
    }
}
