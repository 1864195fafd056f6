//! Which providers and runtimes are connected, by name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinion_access::{Caller, Principal};
use pinion_clip::logs::Level;
use pinion_status::{Code, Failure};

use super::ANEW;
use super::clip::RemoteClip;
use super::heard::Dialect;
use super::legacy::{Legacy, Lost};
use super::registration::{self, Registration};
use super::runtimes::RuntimeSession;
use super::session::{Offered, Session};
use super::typed::Granted;
use crate::Hub;
use crate::hub::OWN_NAMES;
use crate::table::{Conflict, Departure, Owner, Route};

/// The longest name of a provider.
const LONGEST_NAME: usize = 200;

/// Everybody who is connected.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    state: Mutex<Connected>,
}

#[derive(Debug, Default)]
pub(super) struct Connected {
    pub(super) providers: BTreeMap<Arc<str>, Arc<Session>>,
    pub(super) runtimes: BTreeMap<Arc<str>, Arc<RuntimeSession>>,
    lost: Lost,
}

impl Sessions {
    pub(super) fn state(&self) -> MutexGuard<'_, Connected> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The providers, by name.
    pub(crate) fn providers(&self) -> Vec<Arc<Session>> {
        self.state().providers.values().cloned().collect()
    }

    /// The runtimes, by name.
    pub(crate) fn runtimes(&self) -> Vec<Arc<RuntimeSession>> {
        self.state().runtimes.values().cloned().collect()
    }

    pub(crate) fn provider(&self, name: &str) -> Option<Arc<Session>> {
        self.state().providers.get(name).cloned()
    }

    pub(crate) fn runtime(&self, name: &str) -> Option<Arc<RuntimeSession>> {
        self.state().runtimes.get(name).cloned()
    }

    /// The provider a route belongs to.
    pub(crate) fn owning(&self, owner: &Owner) -> Option<Arc<Session>> {
        let state = self.state();
        state
            .providers
            .values()
            .find(|session| session.owner == *owner)
            .cloned()
    }
}

/// A name that can be registered.
pub(super) fn checked_name<'a>(name: &'a str, what: &str) -> Result<&'a str, Failure> {
    let name = name.trim();
    if name.is_empty() {
        return Err(Failure::invalid(format!("{what} is required")));
    }
    if name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
        let message = format!("{what} has more than {LONGEST_NAME} bytes, or control characters");
        return Err(Failure::invalid(message));
    }
    if OWN_NAMES.iter().any(|own| name.eq_ignore_ascii_case(own)) {
        let message = format!("{what} \"{name}\" is the hub's own; choose another");
        return Err(Failure::invalid(message));
    }
    Ok(name)
}

/// Whether one who comes with `new` may take the place of one who came with `old`: only with the very same token, or where
/// everybody on this machine may do everything.
pub(super) fn may_replace(old: &Caller, new: &Caller) -> bool {
    let known = new.token.is_some() || new.principal == Principal::Super;
    known && old.token == new.token && old.principal == new.principal
}

/// That somebody else goes by this name.
pub(super) fn name_taken(name: &str) -> Failure {
    let message = format!("provider \"{name}\" already connected");
    Failure::new(Code::AlreadyExists, message)
}

impl Hub {
    /// Lets a provider in with all of its clips, or not at all. Takes the place of an earlier session of the same provider.
    ///
    /// `answer` is given before the first call can come: providers take nothing in before they know that they are.
    pub(super) fn register(
        &self,
        session: &Arc<Session>,
        name: &str,
        dialect: Dialect,
        manages: bool,
        clips: Vec<Registration>,
        answer: impl FnOnce(&[Granted]),
    ) -> Result<(), Failure> {
        let name = checked_name(name, "provider_name")?;
        registration::check(&clips, 0, &session.limits)?;
        session.name_it(name, dialect, manages);
        let mut connected = self.sessions().state();
        let scope = session.caller.scope();
        if let Some(runtime) = connected.runtimes.get(name)
            && runtime.caller.scope() != scope
        {
            return Err(name_taken(name));
        }
        let earlier = connected.providers.get(name).cloned();
        if let Some(earlier) = &earlier
            && !may_replace(&earlier.caller, &session.caller)
        {
            return Err(name_taken(name));
        }
        let legacy = match &earlier {
            Some(earlier) => Legacy::of(earlier),
            None => connected.lost.find(name, &session.caller),
        };
        // The earlier one stays as it is until this one is in its place.
        let granted = self.place(session, dialect, clips, legacy, answer)?;
        connected.providers.insert(session.name(), session.clone());
        connected.lost.forget(name);
        if let Some(earlier) = &earlier {
            let message = format!("the provider {ANEW}");
            let left = earlier.end(Err(Failure::new(Code::Unavailable, message)));
            self.table().forget(&earlier.owner, Departure::Lost);
            for (name, offered) in left.unwrap_or_default() {
                if session.offered(&name).is_none() {
                    offered.clip.leave();
                }
            }
        }
        drop(connected);
        let verb = match earlier {
            Some(_) => ANEW,
            None => "has connected",
        };
        self.say(
            Level::Info,
            &format!(
                "provider \"{name}\" of {} {verb} with {} clips",
                *session.caller,
                granted.len()
            ),
        );
        Ok(())
    }

    /// Adds clips to those of a session, or puts them in the place of its own.
    pub(super) fn add(
        &self,
        session: &Arc<Session>,
        dialect: Dialect,
        clips: Vec<Registration>,
        answer: impl FnOnce(&[Granted]),
    ) -> Result<Vec<Granted>, Failure> {
        let present = {
            let state = session.state();
            let known = clips.iter().filter(|it| state.clips.contains_key(&it.name));
            state.clips.len() - known.count()
        };
        registration::check(&clips, present, &session.limits)?;
        self.place(session, dialect, clips, Legacy::default(), answer)
    }

    fn place(
        &self,
        session: &Arc<Session>,
        dialect: Dialect,
        clips: Vec<Registration>,
        mut legacy: Legacy,
        answer: impl FnOnce(&[Granted]),
    ) -> Result<Vec<Granted>, Failure> {
        let conflict = match dialect {
            Dialect::Register => Conflict::Refuse,
            Dialect::Typed => Conflict::Rename,
        };
        // Held until the clips are in the table and the answer is on its way, so that a session that ends takes all of them away
        // and calls, which look at it first, come behind the answer.
        let mut state = session.state();
        if state.outcome.is_some() {
            return Err(super::flow::disconnected());
        }
        let mut granted = Vec::with_capacity(clips.len());
        let mut routes = Vec::with_capacity(clips.len());
        let mut offered = Vec::with_capacity(clips.len());
        for clip in clips {
            let known = state.clips.get(&clip.name);
            let (name, package) = (clip.name, clip.manifest.package.clone());
            let earlier = known.map(|known| &*known.clip);
            let remote = Arc::new(RemoteClip::new(
                session.clone(),
                clip.called,
                clip.manifest,
                clip.guarded,
                earlier,
                legacy.logs.remove(&name),
            ));
            routes.push(Route {
                alias: known.map_or_else(|| name.clone(), |known| known.alias.clone()),
                owner: session.owner.clone(),
                provider: session.name(),
                scope: session.caller.scope().cloned(),
                endpoint: remote.clone(),
            });
            granted.push(Granted {
                package,
                suggested: name,
                alias: String::new(),
            });
            offered.push(remote);
        }
        let instead_of = legacy.owner.as_ref();
        let aliases = self.table().insert_instead(routes, conflict, instead_of)?;
        for ((clip, alias), granted) in offered.into_iter().zip(aliases).zip(&mut granted) {
            granted.alias.clone_from(&alias);
            clip.arrive();
            let name = granted.suggested.clone();
            state.clips.insert(name, Offered { alias, clip });
        }
        answer(&granted);
        Ok(granted)
    }

    /// Takes clips away that their provider no longer offers.
    pub(super) fn withdraw(&self, session: &Session, names: &[String]) {
        let mut state = session.state();
        for name in names {
            let name = pinion_clip::alias::normalise(name).unwrap_or_default();
            if let Some(offered) = state.clips.remove(&name) {
                self.table().remove(&offered.alias, &session.owner);
                offered.clip.leave();
            }
        }
    }

    /// Ends a session and takes its clips away.
    pub(super) fn dismiss(
        &self,
        session: &Arc<Session>,
        outcome: Result<(), Failure>,
        departure: Departure,
    ) {
        let why = match &outcome {
            Ok(()) => "has left".to_owned(),
            Err(failure) => format!("is gone: {failure}"),
        };
        let Some(left) = session.end(outcome) else {
            return;
        };
        let name = session.name();
        let mut connected = self.sessions().state();
        let is_known = connected
            .providers
            .get(&name)
            .is_some_and(|known| Arc::ptr_eq(known, session));
        if is_known {
            connected.providers.remove(&name);
        }
        if is_known && departure == Departure::Lost {
            connected.lost.remember(session, &left);
        }
        self.table().forget(&session.owner, departure);
        drop(connected);
        for offered in left.into_values() {
            offered.clip.leave();
        }
        if is_known {
            self.say(Level::Info, &format!("provider \"{name}\" {why}"));
        }
    }
}
