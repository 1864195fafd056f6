//! Tokens: made, listed, revoked, recognised.
//!
//! Those that last are in `tokens.json`, hashed. The file may be changed by several processes at once; each keeps what it read in
//! memory and looks before an answer, at most fifty times a second, whether the file is another, and at once when it is shown a token it
//! does not know. Those of running clips are in memory only and go with their [`PassingToken`]; so are those that somebody else signed, until
//! they end.
//!
//! Making and revoking write and sync a file: in asynchronous code they belong on a thread for that. Recognising does not.

mod document;
mod index;
mod passing;
mod vouched;

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

pub(crate) use self::index::Entry;
pub use self::passing::PassingToken;

/// The name of the file under the root directory.
pub const TOKENS: &str = "tokens.json";

/// How often the file is looked at.
const LOOK_EVERY: Millis = 20;
/// Later use than this is worth writing down.
const USE_WORTH_WRITING: Millis = 60_000;

/// The tokens of a hub. Clones are the same store.
#[derive(Clone)]
pub struct TokenStore {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    clock: Clock,
    state: RwLock<State>,
    /// When the file was last looked at.
    looked: AtomicI64,
    /// Held from reading the file until what it says is adopted.
    reading: Mutex<()>,
    /// Told whenever a token may have gone.
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    kept: Index,
    passing: Index,
    /// Those that somebody else signed.
    vouched: Index,
    stamp: Option<Stamp>,
    /// Why the file, as it is now, cannot be read.
    trouble: Option<Failure>,
}

impl State {
    fn by_id(&self, id: &TokenId) -> Option<Arc<Entry>> {
        let mut all = [&self.passing, &self.vouched, &self.kept].into_iter();
        all.find_map(|index| index.by_id(id))
    }
}

/// A token that was just made: the only time its plain text is there.
#[derive(Debug)]
pub struct Minted {
    /// The token, to be shown once.
    pub token: Token,
    /// What is kept of it.
    pub record: Record,
}

impl TokenStore {
    /// The tokens under `root`; there need not be any yet.
    pub fn open(root: &Path) -> Result<Self, Failure> {
        Self::open_at(root, Clock::system())
    }

    /// The same, with a clock that says when tokens end.
    pub fn open_at(root: &Path, clock: Clock) -> Result<Self, Failure> {
        let path = root.join(TOKENS);
        let (document, stamp) = Document::read(&path)?;
        let mut state = State::default();
        state.kept.adopt(document.tokens);
        state.stamp = stamp;
        let looked = AtomicI64::new(clock.now());
        let shared = Shared {
            path,
            clock,
            state: RwLock::new(state),
            looked,
            reading: Mutex::new(()),
            changes: watch::Sender::new(()),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Makes a token and keeps what is needed to recognise it.
    pub fn mint(&self, new: NewToken) -> Result<Minted, Failure> {
        let token = Token::random(new.grant.kind())?;
        let now = self.clock().now();
        let record = self.change(|document| document.add(&token, new, now))?;
        Ok(Minted { token, record })
    }

    /// What is kept of every token, oldest first.
    pub fn list(&self) -> Result<Vec<Record>, Failure> {
        self.refresh();
        self.read(|state| match &state.trouble {
            Some(trouble) => Err(trouble.clone()),
            None => Ok(state.kept.records()),
        })
    }

    /// Ends a token for good; what is known of it is forgotten.
    pub fn revoke(&self, id: &TokenId) -> Result<Record, Failure> {
        self.change(|document| document.remove(id).ok_or_else(|| unknown_id(id)))
    }

    /// Moves the end of a token.
    pub fn expire(&self, id: &TokenId, at: Option<Millis>) -> Result<Record, Failure> {
        self.change(|document| {
            let record = document.tokens.iter_mut().find(|record| record.id == *id);
            let record = record.ok_or_else(|| unknown_id(id))?;
            record.expires = at;
            Ok(record.clone())
        })
    }

    /// Reads the file again if it is another than before, without waiting for its time: for signals, and after others wrote it.
    pub fn refresh(&self) {
        let shared = &*self.shared;
        let _reading = shared.reading();
        shared.looked.store(shared.clock.now(), Ordering::Relaxed);
        let stamp = match Stamp::at(&shared.path) {
            Ok(stamp) => stamp,
            Err(error) => return self.falter(Failure::io(shared.path.display(), &error)),
        };
        if self.read(|state| state.stamp == stamp && state.trouble.is_none()) {
            return;
        }
        match Document::read(&shared.path) {
            Ok((document, stamp)) => self.adopt(document, stamp),
            Err(trouble) => self.falter(trouble),
        }
    }

    /// Why tokens cannot be read at the moment. Until that is mended nobody gets in by one of them.
    pub fn trouble(&self) -> Option<Failure> {
        self.read(|state| state.trouble.clone())
    }

    /// Writes down when tokens were last used, if that is news. For now and then, and for the end.
    pub fn write_use(&self) -> Result<(), Failure> {
        if self.read(|state| state.kept.has_news(USE_WORTH_WRITING)) {
            self.change(|_| Ok(()))?;
        }
        Ok(())
    }

    /// What is known of the token with this plain text, if it is good.
    pub(crate) fn recognise(&self, token: &str) -> Result<Arc<Entry>, Failure> {
        let fingerprint = Fingerprint::of(token);
        let now = self.clock().now();
        self.look(now);
        let entry = match self.find(&fingerprint)? {
            Some(entry) => entry,
            // It may have been made a moment ago, by another process.
            None => {
                self.refresh();
                self.find(&fingerprint)?.ok_or_else(invalid)?
            }
        };
        self.still_good(&entry, now)?;
        entry.used(now);
        Ok(entry)
    }

    /// What is known of the token with this id, if it is good.
    pub(crate) fn by_id(&self, id: &TokenId) -> Result<Arc<Entry>, Failure> {
        let now = self.clock().now();
        self.look(now);
        let entry = self.read(|state| state.by_id(id));
        let entry = entry.ok_or_else(|| Failure::new(Code::Unauthenticated, "token revoked"))?;
        self.still_good(&entry, now)?;
        Ok(entry)
    }

    /// Changes the file while nobody else does; nothing is written if `change` fails.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut Document) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let path = &self.shared.path;
        let _lock = Lock::of(path)?;
        let (mut document, _) = Document::read(path)?;
        self.read(|state| state.kept.note_use(&mut document.tokens));
        let outcome = change(&mut document)?;
        let stamp = document.write(path)?;
        // Under the lock still, so that nobody's newer file is taken for older.
        let _reading = self.shared.reading();
        self.adopt(document, Some(stamp));
        Ok(outcome)
    }

    /// The clock that says when tokens end.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// The directory the file is in.
    pub(crate) fn root(&self) -> &Path {
        self.shared.path.parent().unwrap_or(Path::new("."))
    }

    /// Tells when a token may have gone.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes.subscribe()
    }

    fn find(&self, fingerprint: &Fingerprint) -> Result<Option<Arc<Entry>>, Failure> {
        self.read(|state| {
            let entry = state.passing.find(fingerprint);
            let entry = entry.or_else(|| state.vouched.find(fingerprint));
            if entry.is_none() && state.trouble.is_some() {
                return Err(unreadable());
            }
            Ok(entry.or_else(|| state.kept.find(fingerprint)))
        })
    }

    fn still_good(&self, entry: &Entry, now: Millis) -> Result<(), Failure> {
        if entry.record.is_expired(now) {
            return Err(Failure::new(Code::Unauthenticated, "token expired"));
        }
        Ok(())
    }

    /// Refreshes when it is time to. A clock that was set back does not stop us.
    fn look(&self, now: Millis) {
        let looked = self.shared.looked.load(Ordering::Relaxed);
        if !(looked..looked.saturating_add(LOOK_EVERY)).contains(&now) {
            self.refresh();
        }
    }

    fn adopt(&self, document: Document, stamp: Option<Stamp>) {
        self.write(|state| {
            state.kept.adopt(document.tokens);
            state.stamp = stamp;
            state.trouble = None;
        });
        self.shared.changes.send_replace(());
    }

    fn falter(&self, trouble: Failure) {
        self.write(|state| state.trouble = Some(trouble));
    }

    fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(
            &self
                .shared
                .state
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    fn write<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(
            &mut self
                .shared
                .state
                .write()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}

impl Shared {
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

/// What callers hear while the file cannot be read; where and why is for the log.
pub(crate) fn unreadable() -> Failure {
    let message = "the hub cannot read its tokens; its log says why";
    Failure::new(Code::Unavailable, message)
}

fn invalid() -> Failure {
    Failure::new(Code::Unauthenticated, "invalid token")
}

fn unknown_id(id: &TokenId) -> Failure {
    let message =
        format!("there is no token with the id {id}; pinion hub token list shows those there are");
    Failure::new(Code::NotFound, message)
}
