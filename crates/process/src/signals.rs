//! Signals that end the program in an orderly way, and the one that must not end it.

use std::io;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, sigaction};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Prevents SIGXFSZ from ending the process: a write beyond `ulimit -f` fails and is reported like one on a full disk.
///
/// It installs a handler, because child processes would inherit `SIG_IGN`.
#[allow(unsafe_code, reason = "installing a signal handler")]
pub fn survive_file_limits() {
    extern "C" fn ignore(_: libc::c_int) {}
    let action = SigAction::new(
        SigHandler::Handler(ignore),
        SaFlags::SA_RESTART,
        SigSet::empty(),
    );
    // SAFETY: the handler does nothing, which is safe in any context.
    let installed = unsafe { sigaction(nix::sys::signal::Signal::SIGXFSZ, &action) };
    // It fails only for signals that cannot have a handler.
    debug_assert!(installed.is_ok());
}

/// Listens to SIGTERM and SIGHUP from its creation on, so that no signal between two waits is lost.
#[derive(Debug)]
pub struct ShutdownSignals {
    terminate: Signal,
    hang_up: Signal,
    /// SIGINT, if it does not end the program at once.
    interrupt: Option<Signal>,
    /// SIGQUIT, if the program must restore a terminal first.
    quit: Option<Signal>,
}

impl ShutdownSignals {
    /// Listens to SIGTERM and SIGHUP.
    pub fn listen(runtime: &Runtime) -> io::Result<Self> {
        let _inside = runtime.enter();
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: None,
            quit: None,
        })
    }

    /// Listens to SIGTERM, SIGHUP and SIGINT.
    pub fn listen_to_all(runtime: &Runtime) -> io::Result<Self> {
        let signals = Self::listen(runtime)?;
        let _inside = runtime.enter();
        Ok(Self {
            interrupt: Some(signal(SignalKind::interrupt())?),
            ..signals
        })
    }

    /// Adds SIGQUIT.
    pub fn and_to_quit(self, runtime: &Runtime) -> io::Result<Self> {
        let _inside = runtime.enter();
        Ok(Self {
            quit: Some(signal(SignalKind::quit())?),
            ..self
        })
    }

    /// Waits for a signal and returns its exit code.
    pub async fn received(&mut self) -> u8 {
        tokio::select! {
            _ = self.terminate.recv() => 143,
            _ = self.hang_up.recv() => 129,
            () = heard(&mut self.interrupt) => 130,
            () = heard(&mut self.quit) => 131,
        }
    }
}

/// Waits for a signal. Never returns for `None`.
async fn heard(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
