//! Creates, lists, revokes and recognises tokens.
//!
//! Lasting tokens are in `tokens.json`, hashed. Several processes may change the file at the same time. Each holds the
//! file's content in memory; before an answer it checks, at most fifty times a second, whether the file has changed,
//! and at once when it receives an unknown token. Tokens of running clips are in memory only and end with their
//! [`EphemeralToken`]. Tokens of an external issuer are in memory too, until they expire.
//!
//! Creating and revoking write and sync a file: in asynchronous code, call them on a blocking thread. Recognising does
//! not block.

mod document;
mod ephemeral;
mod index;
mod shared;
mod signed;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use pinion_status::{Code, Failure};
use tokio::sync::watch;

use self::document::Document;
use self::index::Index;
use crate::disk::{Lock, Stamp};
use crate::token::Fingerprint;
use crate::{Clock, Millis, NewToken, Record, Token, TokenId};

pub use self::ephemeral::EphemeralToken;
pub(crate) use self::index::Entry;
pub use self::shared::SharedTrust;

/// The name of the file under the root directory.
pub const TOKENS: &str = "tokens.json";

/// Milliseconds between two checks of the file.
const CHECK_INTERVAL: Millis = 20;
/// Milliseconds by which a token's last use must be newer than in the file before it is written.
const USE_RESOLUTION: Millis = 60_000;

/// The tokens of a hub. Clones share one store.
#[derive(Clone)]
pub struct TokenStore {
    shared: Arc<StoreShared>,
}

struct StoreShared {
    path: PathBuf,
    clock: Clock,
    state: RwLock<StoreState>,
    /// The time of the last check of the file.
    last_check: AtomicI64,
    /// Held from reading the file until its content is in memory.
    reading: Mutex<()>,
    /// Notified whenever a token may have become invalid.
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct StoreState {
    lasting: Index,
    ephemeral: Index,
    /// Tokens of an external issuer.
    signed: Index,
    /// Tokens of the cluster.
    shared: Index,
    shared_trust: SharedTrust,
    stamp: Option<Stamp>,
    /// The reason why the file cannot be read at the moment.
    read_error: Option<Failure>,
}

impl StoreState {
    fn by_id(&self, id: &TokenId) -> Option<Arc<Entry>> {
        let mut all = [&self.ephemeral, &self.signed, &self.shared, &self.lasting].into_iter();
        all.find_map(|index| index.by_id(id))
    }
}

/// A new token. Its plain text is available only here.
#[derive(Debug)]
pub struct Minted {
    /// The token, to be shown once.
    pub token: Token,
    /// The stored properties of the token.
    pub record: Record,
}

impl TokenStore {
    /// Opens the tokens under `root`; the file need not exist yet.
    pub fn open(root: &Path) -> Result<Self, Failure> {
        Self::open_at(root, Clock::system())
    }

    /// Opens the tokens under `root`, with a clock that decides when they expire.
    pub fn open_at(root: &Path, clock: Clock) -> Result<Self, Failure> {
        let path = root.join(TOKENS);
        let (document, stamp) = Document::read(&path)?;
        let mut state = StoreState::default();
        state.lasting.adopt(document.tokens);
        state.stamp = stamp;
        let last_check = AtomicI64::new(clock.now());
        let shared = StoreShared {
            path,
            clock,
            state: RwLock::new(state),
            last_check,
            reading: Mutex::new(()),
            changes: watch::Sender::new(()),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Creates a token and stores its hash.
    pub fn mint(&self, new: NewToken) -> Result<Minted, Failure> {
        let token = Token::random(new.grant.kind())?;
        let now = self.clock().now();
        let record = self.change(|document| document.add(&token, new, now))?;
        Ok(Minted { token, record })
    }

    /// Returns the properties of every token, oldest first.
    pub fn list(&self) -> Result<Vec<Record>, Failure> {
        self.refresh();
        self.read(|state| match &state.read_error {
            Some(read_error) => Err(read_error.clone()),
            None => Ok([state.lasting.records(), state.shared.records()].concat()),
        })
    }

    /// Revokes a token and deletes its record.
    pub fn revoke(&self, id: &TokenId) -> Result<Record, Failure> {
        self.change(|document| document.remove(id).ok_or_else(|| unknown_id(id)))
    }

    /// Changes the expiry of a token.
    pub fn expire(&self, id: &TokenId, at: Option<Millis>) -> Result<Record, Failure> {
        self.change(|document| {
            let record = document.tokens.iter_mut().find(|record| record.id == *id);
            let record = record.ok_or_else(|| unknown_id(id))?;
            record.expires = at;
            Ok(record.clone())
        })
    }

    /// Reads the file again if it has changed, without waiting for the next check: for signals, and after another
    /// process wrote it.
    pub fn refresh(&self) {
        let shared = &*self.shared;
        let _reading = shared.reading();
        shared
            .last_check
            .store(shared.clock.now(), Ordering::Relaxed);
        let stamp = match Stamp::at(&shared.path) {
            Ok(stamp) => stamp,
            Err(error) => return self.record_error(Failure::io(shared.path.display(), &error)),
        };
        if self.read(|state| state.stamp == stamp && state.read_error.is_none()) {
            return;
        }
        match Document::read(&shared.path) {
            Ok((document, stamp)) => self.adopt(document, stamp),
            Err(read_error) => self.record_error(read_error),
        }
    }

    /// Returns the reason why tokens cannot be read at the moment. Until it is fixed, no token of the file is accepted.
    pub fn read_error(&self) -> Option<Failure> {
        self.read(|state| state.read_error.clone())
    }

    /// Writes the last use of tokens to the file, if it has changed enough. Call it regularly and at the end.
    pub fn write_last_use(&self) -> Result<(), Failure> {
        if self.read(|state| state.lasting.has_newer_use(USE_RESOLUTION)) {
            self.change(|_| Ok(()))?;
        }
        Ok(())
    }

    /// Returns the entry of a valid token, from its plain text.
    pub(crate) fn recognise(&self, token: &str) -> Result<Arc<Entry>, Failure> {
        let fingerprint = Fingerprint::of(token);
        let now = self.clock().now();
        self.check_file(now);
        let shared = self.find_shared(&fingerprint)?;
        let entry = match shared.map_or_else(|| self.find(&fingerprint), |it| Ok(Some(it)))? {
            Some(entry) => entry,
            // Another process may have created it a moment ago.
            None => {
                self.refresh();
                self.find(&fingerprint)?.ok_or_else(invalid)?
            }
        };
        self.check_valid(&entry, now)?;
        entry.used(now);
        Ok(entry)
    }

    /// Returns the entry of a valid token, from its id.
    pub(crate) fn by_id(&self, id: &TokenId) -> Result<Arc<Entry>, Failure> {
        let now = self.clock().now();
        self.check_file(now);
        let entry = self.read(|state| state.by_id(id));
        let entry = entry.ok_or_else(|| Failure::new(Code::Unauthenticated, "token revoked"))?;
        self.check_trusted(id)?;
        self.check_valid(&entry, now)?;
        Ok(entry)
    }

    /// Changes the file while it is locked. If `change` fails, nothing is written.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut Document) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let path = &self.shared.path;
        let _lock = Lock::of(path)?;
        let (mut document, _) = Document::read(path)?;
        self.read(|state| state.lasting.copy_last_use(&mut document.tokens));
        let outcome = change(&mut document)?;
        let stamp = document.write(path)?;
        // Still under the lock, so that a newer file of another process is not overwritten in memory.
        let _reading = self.shared.reading();
        self.adopt(document, Some(stamp));
        Ok(outcome)
    }

    /// Returns the clock that decides when tokens expire.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Returns the directory of the file.
    pub(crate) fn root(&self) -> &Path {
        self.shared.path.parent().unwrap_or(Path::new("."))
    }

    /// Returns a receiver that is notified when a token may have become invalid.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes.subscribe()
    }

    fn find(&self, fingerprint: &Fingerprint) -> Result<Option<Arc<Entry>>, Failure> {
        self.read(|state| {
            let entry = state.ephemeral.find(fingerprint);
            let entry = entry.or_else(|| state.signed.find(fingerprint));
            if entry.is_none() && state.read_error.is_some() {
                return Err(unreadable());
            }
            Ok(entry.or_else(|| state.lasting.find(fingerprint)))
        })
    }

    fn check_valid(&self, entry: &Entry, now: Millis) -> Result<(), Failure> {
        if entry.record.is_expired(now) {
            return Err(Failure::new(Code::Unauthenticated, "token expired"));
        }
        Ok(())
    }

    /// Refreshes at the interval. A clock that was set back does not stop it.
    fn check_file(&self, now: Millis) {
        let last_check = self.shared.last_check.load(Ordering::Relaxed);
        if !(last_check..last_check.saturating_add(CHECK_INTERVAL)).contains(&now) {
            self.refresh();
        }
    }

    fn adopt(&self, document: Document, stamp: Option<Stamp>) {
        self.write(|state| {
            state.lasting.adopt(document.tokens);
            state.stamp = stamp;
            state.read_error = None;
        });
        self.shared.changes.send_replace(());
    }

    fn record_error(&self, read_error: Failure) {
        self.write(|state| state.read_error = Some(read_error));
    }

    fn read<T>(&self, check_file: impl FnOnce(&StoreState) -> T) -> T {
        check_file(
            &self
                .shared
                .state
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    fn write<T>(&self, change: impl FnOnce(&mut StoreState) -> T) -> T {
        change(
            &mut self
                .shared
                .state
                .write()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}

impl StoreShared {
    fn reading(&self) -> MutexGuard<'_, ()> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TokenStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TokenStore")
            .field("path", &self.shared.path)
            .finish_non_exhaustive()
    }
}

/// The failure that callers receive while the file cannot be read. The path and the reason go to the log.
pub(crate) fn unreadable() -> Failure {
    let message = "the hub cannot read its tokens; its log contains the reason";
    Failure::new(Code::Unavailable, message)
}

fn invalid() -> Failure {
    Failure::new(Code::Unauthenticated, "invalid token")
}

fn unknown_id(id: &TokenId) -> Failure {
    let message = format!("unknown token {id:?}; pinion hub token list shows the ids");
    Failure::new(Code::NotFound, message)
}
