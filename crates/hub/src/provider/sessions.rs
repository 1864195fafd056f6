//! The connected providers and runtimes, by name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinion_access::{Caller, Principal};
use pinion_clip::logs::Level;
use pinion_clip::{ClipState, Status};
use pinion_status::{Code, Failure};

use super::RECONNECTED;
use super::clip::RemoteClip;
use super::earlier_session::{EarlierSession, LostLogs};
use super::incoming::Dialect;
use super::registration::{self, Registration};
use super::runtimes::RuntimeSession;
use super::session::{OfferedClip, Session};
use super::typed::Granted;
use crate::Hub;
use crate::convert::clip_registration_of;
use crate::hub::OWN_NAMES;
use crate::neighbours::{Claimant, Claimed, SharedRoute};
use crate::table::{Conflict, Departure, Owner, Route};

/// The most bytes of a provider's name.
const MAX_NAME_BYTES: usize = 200;

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    state: Mutex<Connected>,
}

#[derive(Debug, Default)]
pub(super) struct Connected {
    pub(super) providers: BTreeMap<Arc<str>, Arc<Session>>,
    pub(super) runtimes: BTreeMap<Arc<str>, Arc<RuntimeSession>>,
    lost: LostLogs,
}

impl Sessions {
    pub(super) fn state(&self) -> MutexGuard<'_, Connected> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the providers, sorted by name.
    pub(crate) fn providers(&self) -> Vec<Arc<Session>> {
        self.state().providers.values().cloned().collect()
    }

    /// Returns the runtimes, sorted by name.
    pub(crate) fn runtimes(&self) -> Vec<Arc<RuntimeSession>> {
        self.state().runtimes.values().cloned().collect()
    }

    pub(crate) fn provider(&self, name: &str) -> Option<Arc<Session>> {
        self.state().providers.get(name).cloned()
    }

    pub(crate) fn runtime(&self, name: &str) -> Option<Arc<RuntimeSession>> {
        self.state().runtimes.get(name).cloned()
    }

    /// Returns the provider that owns a route.
    pub(crate) fn owning(&self, owner: &Owner) -> Option<Arc<Session>> {
        let state = self.state();
        state
            .providers
            .values()
            .find(|session| session.owner == *owner)
            .cloned()
    }
}

/// Trims and checks a name; `what` names it in the failure.
pub(super) fn checked_name<'a>(name: &'a str, what: &str) -> Result<&'a str, Failure> {
    let name = name.trim();
    if name.is_empty() {
        return Err(Failure::invalid(format!("{what} is required")));
    }
    if name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) {
        let message = format!("{what} has more than {MAX_NAME_BYTES} bytes, or control characters");
        return Err(Failure::invalid(message));
    }
    if OWN_NAMES.iter().any(|own| name.eq_ignore_ascii_case(own)) {
        let message = format!("{what} \"{name}\" is reserved for the hub; choose another name");
        return Err(Failure::invalid(message));
    }
    Ok(name)
}

/// Reports whether `new` may replace the session of `old`: only with the same token, or without any token on a hub
/// where every local caller has all rights.
pub(super) fn may_replace(old: &Caller, new: &Caller) -> bool {
    let known = new.token.is_some() || new.principal == Principal::Super;
    known && old.token == new.token && old.principal == new.principal
}

/// The failure of a registration whose name is in use.
pub(super) fn name_taken(name: &str) -> Failure {
    let message = format!("provider \"{name}\" already connected");
    Failure::new(Code::AlreadyExists, message)
}

impl Hub {
    /// Registers a provider with all of its clips, or not at all. Replaces an earlier session of the same provider.
    ///
    /// `answer` runs before the first call can arrive, because providers accept calls only after they are registered.
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
        session.set_registered(name, dialect, manages);
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
        let earlier_session = match &earlier {
            Some(earlier) => EarlierSession::of(earlier),
            None => connected.lost.find(name, &session.caller),
        };
        // The earlier session stays unchanged until this one has replaced it.
        let granted = self.insert_clips(session, dialect, clips, earlier_session, answer)?;
        connected.providers.insert(session.name(), session.clone());
        connected.lost.forget(name);
        if let Some(earlier) = &earlier {
            let message = format!("the provider {RECONNECTED}");
            // Before the earlier session's provider learns of its end, and after it, for clips that it added meanwhile.
            self.table().forget(&earlier.owner, Departure::Lost);
            let left = earlier.end(Err(Failure::new(Code::Unavailable, message)));
            self.table().forget(&earlier.owner, Departure::Lost);
            for (name, offered) in left.unwrap_or_default() {
                if session.offered(&name).is_none() {
                    offered.clip.close_log();
                }
            }
        }
        drop(connected);
        let verb = match earlier {
            Some(_) => RECONNECTED,
            None => "has connected",
        };
        self.write_log(
            Level::Info,
            &format!(
                "provider \"{name}\" of {} {verb} with {} clips",
                *session.caller,
                granted.len()
            ),
        );
        Ok(())
    }

    /// Adds clips to a session, or replaces those of the same name.
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
        self.insert_clips(session, dialect, clips, EarlierSession::default(), answer)
    }

    fn insert_clips(
        &self,
        session: &Arc<Session>,
        dialect: Dialect,
        clips: Vec<Registration>,
        mut earlier_session: EarlierSession,
        answer: impl FnOnce(&[Granted]),
    ) -> Result<Vec<Granted>, Failure> {
        let conflict = match dialect {
            Dialect::Register => Conflict::Refuse,
            Dialect::Typed => Conflict::Rename,
        };
        // Locked until the clips are in the table and the answer is queued: a session that ends then removes all of
        // them, and calls, which lock it first, are queued behind the answer.
        let mut state = session.state();
        if state.outcome.is_some() {
            return Err(super::pending_call::disconnected());
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
                earlier_session.logs.remove(&name),
            ));
            routes.push(Route {
                alias: known.map_or_else(
                    || clip.claimed.unwrap_or_else(|| name.clone()),
                    |known| known.alias.clone(),
                ),
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
        let earlier_owner = earlier_session.owner.as_ref();
        let aliases = self
            .table()
            .insert_replacing(routes, conflict, earlier_owner)?;
        for ((clip, alias), granted) in offered.into_iter().zip(aliases).zip(&mut granted) {
            granted.alias.clone_from(&alias);
            clip.reopen_log();
            let name = granted.suggested.clone();
            state.clips.insert(name, OfferedClip { alias, clip });
        }
        answer(&granted);
        Ok(granted)
    }

    /// Claims the aliases of clips in the cluster before they are registered; the local checks of the registration
    /// follow. Without a cluster nothing happens.
    pub(super) async fn claim_clips(
        &self,
        session: &Arc<Session>,
        claimant: Claimant,
        dialect: Dialect,
        clips: &mut [Registration],
    ) -> Result<Option<Claimed>, Failure> {
        if self.neighbours().is_none() {
            return Ok(None);
        }
        let conflict = match dialect {
            Dialect::Register => Conflict::Refuse,
            Dialect::Typed => Conflict::Rename,
        };
        let (provider, scope) = match &claimant {
            Claimant::Provider { name, .. } => (name.clone(), session.caller.scope().cloned()),
            Claimant::Local => return Ok(None),
        };
        let known: Vec<bool> = {
            let state = session.state();
            clips
                .iter()
                .map(|clip| state.clips.contains_key(&clip.name))
                .collect()
        };
        let mut routes = Vec::new();
        for (clip, known) in clips.iter().zip(&known) {
            if *known {
                continue;
            }
            if dialect == Dialect::Register {
                self.check_free_here(&clip.name, &provider)?;
            }
            routes.push(SharedRoute {
                session: session.id.to_string(),
                status: Status {
                    state: ClipState::Running,
                    message: String::new(),
                },
                registration: clip_registration_of(&clip.name, &clip.manifest, clip.guarded),
                ..SharedRoute::planned(&clip.name, &provider, scope.clone(), clip.guarded)
            });
        }
        let claimed = self.claim(claimant, conflict, routes).await?;
        let granted = claimed.as_ref().map(|claimed| claimed.aliases.iter());
        let unknown = clips.iter_mut().zip(known).filter(|(_, known)| !known);
        for ((clip, _), alias) in unknown.zip(granted.into_iter().flatten()) {
            clip.claimed = Some(alias.clone());
        }
        Ok(claimed)
    }

    /// Rejects an alias that another provider or a part of this hub has.
    fn check_free_here(&self, alias: &str, provider: &str) -> Result<(), Failure> {
        match self.table().get(alias) {
            Some(route)
                if !matches!(route.owner, Owner::Hub(_)) && *route.provider != *provider =>
            {
                let message = format!("clip \"{alias}\" already exists");
                Err(Failure::new(Code::AlreadyExists, message))
            }
            _ => Ok(()),
        }
    }

    /// Ends a session from this side; its provider connects elsewhere or again.
    pub(crate) fn dismiss(&self, session: &Arc<Session>, why: &'static str) {
        let failure = Failure::new(Code::Unavailable, why);
        self.end_session(session, Err(failure), Departure::Lost);
    }

    /// Removes clips that their provider no longer offers.
    pub(super) fn withdraw(&self, session: &Session, names: &[String]) {
        let mut state = session.state();
        for name in names {
            let name = pinion_clip::alias::normalise(name).unwrap_or_default();
            if let Some(offered) = state.clips.remove(&name) {
                self.table().remove(&offered.alias, &session.owner);
                offered.clip.close_log();
            }
        }
    }

    /// Ends a session and removes its clips.
    pub(super) fn end_session(
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
            offered.clip.close_log();
        }
        if is_known {
            self.write_log(Level::Info, &format!("provider \"{name}\" {why}"));
        }
    }
}
