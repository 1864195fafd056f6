//! Renews stored logins: once, however many processes need that, and under the lock that all of them share.
//!
//! A server may accept each refresh token once. So the token request, and the write of its answer, run on a thread of their
//! own that the end of a run does not cancel, and no other process sends the same refresh token meanwhile.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use pinion_files::LockDirectory;
use pinion_logins::{Login, LoginError, LoginProvider};
use pinion_message::{Mask, Millis};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::auth_file::{AuthFile, LOCK_TIMEOUT, Stored};

/// The interval of the holder's signs of life.
const TOUCH_INTERVAL: Duration = Duration::from_secs(15);
/// The longest wait for a token request at the end of the process.
const EXIT_TIMEOUT: Duration = Duration::from_secs(15);
/// The first delay and the longest one between two attempts to take the lock.
const FIRST_DELAY: Duration = Duration::from_millis(10);
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// The reason why there is no fresh login.
#[derive(Debug)]
pub(crate) enum RenewalError {
    /// The entry was removed, or is not a login any more.
    LoggedOut,
    /// The cause, without secrets.
    Failed(String),
}

/// Returns the stored login of `provider`, renewed if it ends within `margin` milliseconds.
///
/// Dropping the future ends the wait for the lock, and nothing else.
pub(crate) async fn fresh_login(
    file: &Arc<AuthFile>,
    provider: &str,
    renewer: Arc<dyn LoginProvider>,
    margin: Millis,
) -> Result<Login, RenewalError> {
    let waiting = CancellationToken::new();
    let _stop_waiting = waiting.clone().drop_guard();
    let renewal = Renewal {
        file: Arc::clone(file),
        provider: provider.to_owned(),
        renewer,
        margin,
    };
    let (sender, receiver) = oneshot::channel();
    let spawned = std::thread::Builder::new()
        .name("login-renewal".to_owned())
        .spawn(move || {
            let _running = Running::new();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let result = match runtime {
                Ok(runtime) => runtime.block_on(renewal.run(waiting)),
                Err(error) => Err(RenewalError::Failed(error.to_string())),
            };
            // Nothing waits for the result of a run that was cancelled; it is stored all the same.
            let _ = sender.send(result);
        });
    if let Err(error) = spawned {
        return Err(RenewalError::Failed(error.to_string()));
    }
    let ended_early = || Err(RenewalError::Failed("the renewal ended early".to_owned()));
    receiver.await.unwrap_or_else(|_| ended_early())
}

/// The number of renewals that run in this process.
static RUNNING: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// Counts a renewal while it runs.
struct Running;

impl Running {
    fn new() -> Self {
        *RUNNING.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        *RUNNING.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        RUNNING.1.notify_all();
    }
}

/// Waits until the renewals that run have stored their results, for at most 15 seconds. Call it before the process ends:
/// a server accepts each refresh token once, so a result that is lost signs the user out.
pub fn finish_renewals() {
    let running = RUNNING.0.lock().unwrap_or_else(PoisonError::into_inner);
    let finished = RUNNING
        .1
        .wait_timeout_while(running, EXIT_TIMEOUT, |running| *running > 0);
    drop(finished);
}

struct Renewal {
    file: Arc<AuthFile>,
    provider: String,
    renewer: Arc<dyn LoginProvider>,
    margin: Millis,
}

impl Renewal {
    async fn run(self, waiting: CancellationToken) -> Result<Login, RenewalError> {
        let lock = tokio::select! {
            biased;
            () = waiting.cancelled() => return Err(RenewalError::Failed("cancelled".to_owned())),
            outcome = self.wait() => match outcome? {
                Wait::Renewed(login) => return Ok(login),
                Wait::Locked(lock) => lock,
            },
        };
        let lock = Arc::new(lock);
        let stored = self.read().await?;
        if !stored.ends_within(self.margin) {
            return Ok(stored);
        }
        let renewed = {
            let alive = keep_alive(&lock);
            tokio::pin!(alive);
            tokio::select! {
                renewed = self.renewer.renew(&stored) => renewed,
                () = &mut alive => Err(LoginError::from("the lock could not be held")),
            }
        };
        let renewed =
            renewed.map_err(|error| RenewalError::Failed(stored.masked(&error.to_string())))?;
        for secret in renewed.secrets() {
            Mask::of_process().learn(&secret);
        }
        self.write(lock, stored, renewed).await
    }

    /// Waits until another process has renewed the login, or this one holds the lock.
    async fn wait(&self) -> Result<Wait, RenewalError> {
        let start = Instant::now();
        let mut delay = FIRST_DELAY;
        loop {
            let stored = self.read().await?;
            if !stored.ends_within(self.margin) {
                return Ok(Wait::Renewed(stored));
            }
            if let Some(lock) = self.try_lock().await? {
                return Ok(Wait::Locked(lock));
            }
            if start.elapsed() >= LOCK_TIMEOUT {
                return Err(RenewalError::Failed(
                    "Lock file is already being held".to_owned(),
                ));
            }
            sleep(delay.mul_f64(1.0 + crate::transport::random())).await;
            delay = (delay * 2).min(LONGEST_DELAY);
        }
    }

    async fn try_lock(&self) -> Result<Option<LockDirectory>, RenewalError> {
        let file = Arc::clone(&self.file);
        blocking(move || LockDirectory::try_take(file.path(), LOCK_TIMEOUT)).await
    }

    async fn read(&self) -> Result<Login, RenewalError> {
        let file = Arc::clone(&self.file);
        let entries = blocking(move || Ok(file.entries())).await?;
        match entries.get(&self.provider) {
            Some(Stored::Login(login)) => Ok(login.clone()),
            _ => Err(RenewalError::LoggedOut),
        }
    }

    /// Stores the renewed login. If another process took the lock over, it is taken again: the refresh token of the old
    /// login is spent, so the new one must not be lost. It is not written over anything but the old one.
    async fn write(
        &self,
        lock: Arc<LockDirectory>,
        stored: Login,
        renewed: Login,
    ) -> Result<Login, RenewalError> {
        let file = Arc::clone(&self.file);
        let provider = self.provider.clone();
        blocking(move || {
            let again;
            let lock = if lock.is_held() {
                &*lock
            } else {
                again = LockDirectory::take(file.path(), LOCK_TIMEOUT, LOCK_TIMEOUT)?;
                &again
            };
            let old = stored.entry();
            let written = file.change(lock, |entries| {
                let is_old = entries.get(&provider) == Some(&old);
                if is_old {
                    entries.insert(provider.clone(), renewed.entry());
                }
                is_old
            })?;
            if written {
                return Ok(renewed);
            }
            match file.entries().get(&provider) {
                Some(Stored::Login(login)) => Ok(login.clone()),
                _ => Err(io::Error::other("the login was removed meanwhile")),
            }
        })
        .await
    }
}

enum Wait {
    Renewed(Login),
    Locked(LockDirectory),
}

/// Shows other processes that this one still holds the lock. A lock that was taken over is noticed when the answer is
/// written.
async fn keep_alive(lock: &Arc<LockDirectory>) {
    loop {
        sleep(TOUCH_INTERVAL).await;
        let lock = Arc::clone(lock);
        let _ = blocking(move || lock.touch()).await;
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, RenewalError> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|error| RenewalError::Failed(error.to_string()))?;
    done.map_err(|error| RenewalError::Failed(error.to_string()))
}
