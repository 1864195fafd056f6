//! The routing table: the endpoint of each alias. An alias belongs to one owner at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use pinion_access::Scope;
use pinion_clip::alias;
use pinion_status::{Code, Failure};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::endpoint::Endpoint;

/// The time after a provider was lost during which calls to its clips fail with "reconnecting" instead of "not found".
pub(crate) const RECONNECT_WINDOW: Duration = Duration::from_secs(30);

/// The owner of a route.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Owner {
    /// A part of this program.
    Builtin,
    /// The clips installed here.
    Local,
    /// The session of a remote provider, by its id.
    Session(Arc<str>),
    /// Another hub of the cluster, by its id.
    Hub(Arc<str>),
}

/// One row of the table.
#[derive(Debug, Clone)]
pub struct Route {
    pub alias: String,
    pub owner: Owner,
    /// The name of the provider, for display.
    pub provider: Arc<str>,
    /// The scope (`@name`) that the clip belongs to; `None` if everyone may see it.
    pub scope: Option<Scope>,
    pub endpoint: Arc<dyn Endpoint>,
}

/// The treatment of a registration whose alias has another owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// The whole registration is refused.
    Refuse,
    /// The clip gets another alias: the requested one with four digits appended.
    Rename,
}

/// The routing table.
#[derive(Debug)]
pub struct Table {
    state: RwLock<TableState>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct TableState {
    routes: BTreeMap<String, Arc<Route>>,
    /// Aliases of running installations, with the owner and the number of the reservation.
    reserved: BTreeMap<String, (Owner, u64)>,
    reservations: u64,
    /// Aliases of lost providers that may reconnect.
    returning: BTreeMap<String, LostRoute>,
}

/// A route whose provider was lost.
#[derive(Debug)]
struct LostRoute {
    /// The scope of the route: callers who could not see the clip are not informed that it existed.
    scope: Option<Scope>,
    until: Instant,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            state: RwLock::default(),
            changes: watch::Sender::new(0),
        }
    }
}

impl Table {
    fn read(&self) -> RwLockReadGuard<'_, TableState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, TableState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A receiver that changes with every change of routes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn changed(&self) {
        self.changes.send_modify(|version| *version += 1);
    }

    /// Inserts all of `routes`, or none. Returns the aliases they got, in order.
    ///
    /// Routes of the same owner are replaced.
    pub fn insert(&self, routes: Vec<Route>, conflict: Conflict) -> Result<Vec<String>, Failure> {
        self.insert_replacing(routes, conflict, None)
    }

    /// Like [`Self::insert`], but aliases of `earlier` count as free.
    pub(crate) fn insert_replacing(
        &self,
        routes: Vec<Route>,
        conflict: Conflict,
        earlier: Option<&Owner>,
    ) -> Result<Vec<String>, Failure> {
        let mut state = self.write();
        let mut granted: Vec<Route> = Vec::with_capacity(routes.len());
        for mut route in routes {
            let taken = |alias: &str| {
                state.is_held(alias, &route.owner, earlier)
                    || granted.iter().any(|it| it.alias == alias)
            };
            route.alias = match conflict {
                Conflict::Refuse => alias::choose(Some(&route.alias), "", taken)?,
                Conflict::Rename => alias::choose(None, &route.alias, taken)?,
            };
            granted.push(route);
        }
        let aliases = granted.iter().map(|route| route.alias.clone()).collect();
        for route in granted {
            state.returning.remove(&route.alias);
            state.routes.insert(route.alias.clone(), Arc::new(route));
        }
        drop(state);
        self.changed();
        Ok(aliases)
    }

    /// Removes the route of `alias` if it belongs to `owner`.
    pub fn remove(&self, alias: &str, owner: &Owner) -> Option<Arc<Route>> {
        let mut state = self.write();
        state
            .routes
            .get(alias)
            .filter(|route| route.owner == *owner)?;
        let removed = state.routes.remove(alias);
        drop(state);
        self.changed();
        removed
    }

    /// Removes all routes of `owner`. If the owner was lost, calls report for `RECONNECT_WINDOW` that it may come
    /// back.
    pub fn forget(&self, owner: &Owner, departure: Departure) {
        let mut state = self.write();
        let now = Instant::now();
        state.returning.retain(|_, it| it.until > now);
        state.reserved.retain(|_, (holder, _)| holder != owner);
        let gone: Vec<(String, Arc<Route>)> = state
            .routes
            .extract_if(.., |_, route| route.owner == *owner)
            .collect();
        if departure == Departure::Lost {
            let until = now + RECONNECT_WINDOW;
            let returning = gone.into_iter().map(|(alias, route)| {
                let scope = route.scope.clone();
                (alias, LostRoute { scope, until })
            });
            state.returning.extend(returning);
        }
        drop(state);
        self.changed();
    }

    /// Reserves an alias for `owner` during an installation.
    pub fn reserve(
        self: &Arc<Self>,
        requested: Option<&str>,
        source: &str,
        owner: &Owner,
    ) -> Result<Reservation, Failure> {
        let mut state = self.write();
        let wanted = requested.and_then(alias::normalise);
        let taken = |alias: &str| {
            // A requested alias that the owner already uses is an upgrade; a chosen alias must be free.
            let upgrade = wanted.as_deref() == Some(alias);
            state.reserved.contains_key(alias)
                || state
                    .routes
                    .get(alias)
                    .is_some_and(|route| !upgrade || route.owner != *owner)
        };
        let alias = alias::choose(requested, source, taken)?;
        state.reservations += 1;
        let number = state.reservations;
        state
            .reserved
            .insert(alias.clone(), (owner.clone(), number));
        drop(state);
        Ok(Reservation {
            table: self.clone(),
            alias,
            number,
        })
    }

    /// Finds the route that `name` refers to, among those whose scope and alias `sees` accepts. A lost route that
    /// `sees` rejects is reported as not found.
    pub fn resolve(
        &self,
        name: &str,
        sees: impl Fn(Option<&Scope>, &str) -> bool,
    ) -> Result<Arc<Route>, Failure> {
        let state = self.read();
        let sees_route = |route: &Route| sees(route.scope.as_ref(), &route.alias);
        if let Some(route) = state.routes.get(name)
            && sees_route(route)
        {
            return Ok(route.clone());
        }
        let visible: Vec<(&Arc<Route>, String)> = state
            .routes
            .values()
            .filter(|route| sees_route(route))
            .map(|route| (route, route.endpoint.snapshot().manifest.package.clone()))
            .collect();
        let names = visible
            .iter()
            .map(|(route, package)| (route.alias.as_str(), package.as_str()));
        match alias::resolve(name, names) {
            Ok(alias) => match state.routes.get(alias) {
                Some(route) => Ok(route.clone()),
                None => Err(Failure::no_clip(name)),
            },
            Err(_) if state.may_return(name, sees) => {
                let message = format!("the provider of clip \"{name}\" is reconnecting; try again");
                Err(Failure::new(Code::Unavailable, message))
            }
            Err(failure) => Err(failure),
        }
    }

    /// Inserts a route of another hub, unless this hub has a route of its own for the alias.
    pub fn place(&self, route: Route) {
        let mut state = self.write();
        let present = state.routes.get(&route.alias);
        if present.is_some_and(|present| !matches!(present.owner, Owner::Hub(_))) {
            return;
        }
        state.returning.remove(&route.alias);
        state.routes.insert(route.alias.clone(), Arc::new(route));
        drop(state);
        self.changed();
    }

    /// Removes the route of another hub for an alias, if there is one.
    pub fn retract(&self, alias: &str, departure: Departure) {
        let mut state = self.write();
        let present = state.routes.get(alias);
        if !present.is_some_and(|present| matches!(present.owner, Owner::Hub(_))) {
            return;
        }
        let removed = state.routes.remove(alias);
        if departure == Departure::Lost
            && let Some(removed) = removed
        {
            let until = Instant::now() + RECONNECT_WINDOW;
            let scope = removed.scope.clone();
            state
                .returning
                .insert(alias.to_owned(), LostRoute { scope, until });
        }
        drop(state);
        self.changed();
    }

    /// Returns the ids of the other hubs that hold routes.
    pub fn holders(&self) -> BTreeSet<Arc<str>> {
        let state = self.read();
        let owners = state
            .routes
            .values()
            .filter_map(|route| match &route.owner {
                Owner::Hub(id) => Some(id.clone()),
                Owner::Builtin | Owner::Local | Owner::Session(_) => None,
            });
        owners.collect()
    }

    /// Reports whether the provider of this alias was lost a moment ago and may come back.
    pub fn may_return(&self, alias: &str) -> bool {
        self.read().may_return(alias, |_, _| true)
    }

    /// Returns the route of exactly this alias.
    pub fn get(&self, alias: &str) -> Option<Arc<Route>> {
        self.read().routes.get(alias).cloned()
    }

    /// Returns the routes that `sees` accepts, sorted by alias.
    pub fn routes(&self, sees: impl Fn(&Route) -> bool) -> Vec<Arc<Route>> {
        let state = self.read();
        state
            .routes
            .values()
            .filter(|route| sees(route))
            .cloned()
            .collect()
    }
}

impl TableState {
    /// Reports whether `name` is the alias of a lost provider that may reconnect and that `sees` accepts.
    fn may_return(&self, name: &str, sees: impl Fn(Option<&Scope>, &str) -> bool) -> bool {
        let alias = alias::normalise(name);
        let returning = alias.and_then(|alias| self.returning.get_key_value(&alias));
        returning
            .is_some_and(|(alias, it)| it.until > Instant::now() && sees(it.scope.as_ref(), alias))
    }

    /// Reports whether an owner other than `owner` and `earlier` uses or has reserved `alias`. Aliases of other hubs are
    /// not considered: the claim in the cluster has decided about them.
    fn is_held(&self, alias: &str, owner: &Owner, earlier: Option<&Owner>) -> bool {
        let routed = self.routes.get(alias).map(|route| &route.owner);
        let routed = routed.filter(|holder| !matches!(holder, Owner::Hub(_)));
        let reserved = self.reserved.get(alias).map(|(holder, _)| holder);
        routed
            .into_iter()
            .chain(reserved)
            .any(|holder| holder != owner && Some(holder) != earlier)
    }
}

/// The way in which an owner disconnected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// It closed its session.
    InOrder,
    /// The connection broke; it may reconnect.
    Lost,
}

/// An alias that is reserved for an installation. Dropping it releases the alias.
#[derive(Debug)]
pub struct Reservation {
    table: Arc<Table>,
    alias: String,
    number: u64,
}

impl Reservation {
    pub fn alias(&self) -> &str {
        &self.alias
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // The owner may have disconnected since, and another may have reserved the alias.
        let mut state = self.table.write();
        let holder = state.reserved.get(&self.alias);
        if holder.is_some_and(|(_, number)| *number == self.number) {
            state.reserved.remove(&self.alias);
        }
    }
}

#[cfg(test)]
mod tests {
    use pinion_clip::manifest::Manifest;
    use pinion_clip::{ClipState, Snapshot, Status};

    use super::*;
    use crate::endpoint::{Answers, HubCall, answered};

    #[derive(Debug)]
    struct Named(&'static str);

    impl Endpoint for Named {
        fn snapshot(&self) -> Snapshot {
            let manifest = Manifest {
                package: self.0.into(),
                ..Manifest::default()
            };
            Snapshot {
                status: Status {
                    state: ClipState::Running,
                    message: String::new(),
                },
                manifest: manifest.into(),
            }
        }

        fn invoke(self: Arc<Self>, _: HubCall) -> Answers {
            answered("{}")
        }
    }

    fn session(id: &str) -> Owner {
        Owner::Session(id.into())
    }

    fn route(alias: &str, package: &'static str, owner: &Owner) -> Route {
        Route {
            alias: alias.into(),
            owner: owner.clone(),
            provider: "p".into(),
            scope: None,
            endpoint: Arc::new(Named(package)),
        }
    }

    fn aliases(table: &Table) -> Vec<String> {
        let routes = table.routes(|_| true);
        routes.iter().map(|route| route.alias.clone()).collect()
    }

    #[test]
    fn a_registration_is_accepted_completely_or_not_at_all() {
        let table = Table::default();
        let (one, two) = (session("1"), session("2"));
        table
            .insert(vec![route("todo", "", &one)], Conflict::Refuse)
            .unwrap();
        let both = vec![route("fresh", "", &two), route("todo", "", &two)];
        let refused = table.insert(both, Conflict::Refuse).unwrap_err();
        assert_eq!(refused.code, Code::AlreadyExists);
        assert_eq!(refused.message, "clip \"todo\" already exists");
        assert_eq!(aliases(&table), ["todo"]);
    }

    #[test]
    fn a_taken_alias_is_renamed_on_request() {
        let table = Table::default();
        let (one, two) = (session("1"), session("2"));
        table
            .insert(vec![route("todo", "", &one)], Conflict::Refuse)
            .unwrap();
        let granted = table
            .insert(
                vec![route("todo", "", &two), route("todo", "", &two)],
                Conflict::Rename,
            )
            .unwrap();
        assert_eq!(granted.len(), 2);
        assert_ne!(granted[0], granted[1]);
        for alias in &granted {
            assert!(alias.starts_with("todo-") && alias.len() == 9, "{alias}");
        }
    }

    #[test]
    fn names_are_aliases_first_and_packages_second() {
        let table = Table::default();
        let one = session("1");
        let routes = vec![
            route("todo", "@acme/list", &one),
            route("other", "@acme/todo", &one),
            route("third", "@else/list", &one),
        ];
        table.insert(routes, Conflict::Refuse).unwrap();
        let resolve = |name: &str| table.resolve(name, |_, _| true).map(|it| it.alias.clone());
        assert_eq!(resolve("todo").unwrap(), "todo");
        assert_eq!(resolve("@acme/todo").unwrap(), "other");
        assert_eq!(resolve("list").unwrap_err().code, Code::InvalidArgument);
        assert_eq!(resolve("nobody").unwrap_err().code, Code::NotFound);
        let hidden = table.resolve("todo", |_, alias| alias != "todo");
        assert_eq!(hidden.unwrap().alias, "other");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_provider_is_expected_back_for_thirty_seconds() {
        let table = Table::default();
        let (one, two) = (session("1"), session("2"));
        for (owner, departure) in [(&one, Departure::Lost), (&two, Departure::InOrder)] {
            let alias = format!("of-{departure:?}");
            table
                .insert(vec![route(&alias, "", owner)], Conflict::Refuse)
                .unwrap();
            table.forget(owner, departure);
        }
        let code = |name: &str| table.resolve(name, |_, _| true).unwrap_err().code;
        assert_eq!(code("of-lost"), Code::Unavailable);
        assert_eq!(code("of-inorder"), Code::NotFound);
        tokio::time::advance(RECONNECT_WINDOW).await;
        assert_eq!(code("of-lost"), Code::NotFound);
    }

    #[test]
    fn a_lost_clip_is_reported_only_to_callers_who_could_see_it() {
        let table = Table::default();
        let one = session("1");
        let mut lost = route("todo", "", &one);
        lost.scope = "@ann".parse().ok();
        table.insert(vec![lost], Conflict::Refuse).unwrap();
        table.forget(&one, Departure::Lost);
        let ann: Scope = "@ann".parse().unwrap();
        let code = |name: &str, sees: &dyn Fn(Option<&Scope>, &str) -> bool| {
            table.resolve(name, sees).unwrap_err().code
        };
        for name in ["todo", "Todo", " todo"] {
            assert_eq!(
                code(name, &|scope, _| scope == Some(&ann)),
                Code::Unavailable
            );
            assert_eq!(code(name, &|scope, _| scope.is_none()), Code::NotFound);
        }
    }

    #[test]
    fn aliases_of_an_earlier_session_are_free_for_its_successor() {
        let table = Table::default();
        let (old, new, other) = (session("1"), session("2"), session("3"));
        table
            .insert(vec![route("todo", "", &old)], Conflict::Refuse)
            .unwrap();
        table
            .insert(vec![route("mail", "", &other)], Conflict::Refuse)
            .unwrap();
        let both = vec![route("todo", "", &new), route("mail", "", &new)];
        let refused = table.insert_replacing(both, Conflict::Refuse, Some(&old));
        assert_eq!(refused.unwrap_err().message, "clip \"mail\" already exists");
        assert_eq!(table.get("todo").unwrap().owner, old);
        let one = vec![route("todo", "", &new)];
        table
            .insert_replacing(one, Conflict::Refuse, Some(&old))
            .unwrap();
        table.forget(&old, Departure::Lost);
        assert_eq!(table.get("todo").unwrap().owner, new);
    }

    #[test]
    fn dropping_an_old_reservation_leaves_a_new_one() {
        let table = Arc::new(Table::default());
        let (one, two) = (session("1"), session("2"));
        let old = table.reserve(Some("todo"), "", &one).unwrap();
        table.forget(&one, Departure::Lost);
        let _new = table.reserve(Some("todo"), "", &two).unwrap();
        drop(old);
        let taken = table.reserve(Some("todo"), "", &one).unwrap_err();
        assert_eq!(taken.code, Code::AlreadyExists);
    }

    #[test]
    fn a_reserved_alias_is_not_free_for_others() {
        let table = Arc::new(Table::default());
        let (one, two) = (session("1"), session("2"));
        let kept = table.reserve(Some("Todo"), "@a/x", &one).unwrap();
        assert_eq!(kept.alias(), "todo");
        assert!(table.reserve(Some("todo"), "", &one).is_err());
        assert!(
            table
                .insert(vec![route("todo", "", &two)], Conflict::Refuse)
                .is_err()
        );
        table
            .insert(vec![route("todo", "", &one)], Conflict::Refuse)
            .unwrap();
        drop(kept);
        let upgrade = table.reserve(Some("todo"), "", &one).unwrap();
        assert_eq!(upgrade.alias(), "todo");
        drop(upgrade);
        let another = table.reserve(None, "local/todo:/x", &one).unwrap();
        assert!(another.alias().starts_with("todo-"), "{}", another.alias());
    }
}
