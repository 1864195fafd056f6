//! The life of tokens: created, recognised, ended, in one process and in several.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pinion_access::{
    Caller, Clock, Gate, Grant, Method, Mode, NewToken, Origin, Peer, Principal, Scope, TOKENS,
    Token, TokenId, TokenStore, Transport, Via,
};
use pinion_status::{Code, Failure};
use tempfile::{TempDir, tempdir};

const START: i64 = 1_790_000_000_000;
const DAY: Duration = Duration::from_secs(86_400);

fn hub(manage: bool) -> Grant {
    let scope: Scope = "@me".parse().unwrap();
    Grant::Hub { scope, manage }
}

struct Fixture {
    root: TempDir,
    clock: Clock,
    gate: Gate,
}

impl Fixture {
    fn new(mode: Mode) -> Self {
        let (root, clock) = (tempdir().unwrap(), Clock::manual(START));
        let store = TokenStore::open_at(root.path(), clock.clone()).unwrap();
        let gate = Gate::new(mode, store);
        Self { root, clock, gate }
    }

    fn store(&self) -> &TokenStore {
        self.gate.store()
    }

    /// Opens the same file again, as another process does.
    fn another(&self) -> TokenStore {
        TokenStore::open_at(self.root.path(), self.clock.clone()).unwrap()
    }

    fn ask(&self, token: &Token) -> Result<Caller, Failure> {
        self.gate.authenticate(Some(token.reveal()), Peer::LOCAL)
    }

    fn refusal(&self, token: &Token) -> (&'static str, String) {
        let failure = self.ask(token).unwrap_err();
        (failure.code.as_str(), failure.message.into_owned())
    }
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_token_is_its_bearer_until_it_is_revoked() {
    let fixture = Fixture::new(Mode::Secured);
    let minted = fixture
        .store()
        .mint(NewToken::new(hub(true)).labelled("laptop"))
        .unwrap();
    let caller = fixture.ask(&minted.token).unwrap();
    assert_eq!(caller.to_string(), "@me");
    assert_eq!(caller.token.as_ref(), Some(&minted.record.id));
    assert_eq!(caller.via, Via::Token);
    caller.may(Method::AddClip).unwrap();

    let listed = fixture.store().list().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (listed[0].label.as_str(), listed[0].last_used),
        ("laptop", Some(START))
    );

    fixture.store().revoke(&minted.record.id).unwrap();
    assert_eq!(
        fixture.refusal(&minted.token),
        ("unauthenticated", "invalid token".into())
    );
    let again = fixture.store().revoke(&minted.record.id).unwrap_err();
    assert_eq!(again.code, Code::NotFound);
}

#[test]
fn the_file_holds_no_token_and_only_its_owner_reads_it() {
    let fixture = Fixture::new(Mode::Secured);
    let grants = [Grant::Super, hub(false), clip("todo")];
    let minted: Vec<_> = grants
        .into_iter()
        .map(|grant| fixture.store().mint(NewToken::new(grant)).unwrap())
        .collect();
    let path = fixture.root.path().join(TOKENS);
    assert_eq!(mode_of(&path), 0o600);
    let text = fs::read_to_string(&path).unwrap();
    for minted in &minted {
        assert!(!text.contains(minted.token.reveal()));
        assert!(
            !format!(
                "{minted:?} {:?} {:?}",
                fixture.gate,
                fixture.ask(&minted.token)
            )
            .contains(minted.token.reveal())
        );
    }
    assert!(!fixture.root.path().join(".tokens.json.unfinished").exists());
}

fn clip(alias: &str) -> Grant {
    let alias = alias.to_owned();
    Grant::Clip { alias, owner: None }
}

#[test]
fn tokens_end_when_their_time_has_come() {
    let fixture = Fixture::new(Mode::Secured);
    let minted = fixture
        .store()
        .mint(NewToken::new(hub(false)).lasting(DAY))
        .unwrap();
    fixture.clock.advance(DAY - Duration::from_millis(1));
    fixture.ask(&minted.token).unwrap();
    fixture.clock.advance(Duration::from_millis(1));
    assert_eq!(
        fixture.refusal(&minted.token),
        ("unauthenticated", "token expired".into())
    );

    let id = &minted.record.id;
    fixture
        .store()
        .expire(id, Some(START + 2 * 86_400_000))
        .unwrap();
    fixture.ask(&minted.token).unwrap();
    fixture.store().expire(id, Some(START)).unwrap();
    fixture.ask(&minted.token).unwrap_err();

    // Listed for a month, so that people see why they are refused; then removed when the next token is created.
    fixture.clock.advance(DAY * 40);
    assert_eq!(fixture.another().list().unwrap().len(), 1);
    fixture.store().mint(NewToken::new(hub(false))).unwrap();
    assert!(
        fixture
            .another()
            .list()
            .unwrap()
            .iter()
            .all(|record| record.id != *id)
    );
}

#[test]
fn what_another_process_does_is_seen() {
    let fixture = Fixture::new(Mode::Secured);
    let another = fixture.another();
    // Created elsewhere: valid at once, without any time passing.
    let minted = another.mint(NewToken::new(hub(false))).unwrap();
    fixture.ask(&minted.token).unwrap();
    // Revoked elsewhere: refused after a second at the latest, at once after a signal.
    another.revoke(&minted.record.id).unwrap();
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(fixture.refusal(&minted.token).0, "unauthenticated");

    let minted = another.mint(NewToken::new(hub(false))).unwrap();
    fixture.ask(&minted.token).unwrap();
    another.revoke(&minted.record.id).unwrap();
    fixture.store().refresh();
    assert_eq!(fixture.refusal(&minted.token).0, "unauthenticated");
}

#[test]
fn a_removed_file_takes_all_its_tokens_with_it() {
    let fixture = Fixture::new(Mode::Secured);
    let minted = fixture.store().mint(NewToken::new(Grant::Super)).unwrap();
    fs::remove_file(fixture.root.path().join(TOKENS)).unwrap();
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(
        fixture.refusal(&minted.token),
        ("unauthenticated", "invalid token".into())
    );
}

#[test]
fn use_is_written_down_now_and_then() {
    let fixture = Fixture::new(Mode::Secured);
    let minted = fixture.store().mint(NewToken::new(hub(false))).unwrap();
    let path = fixture.root.path().join(TOKENS);
    let before = fs::read(&path).unwrap();
    fixture.ask(&minted.token).unwrap();
    assert_eq!(fs::read(&path).unwrap(), before, "not at every request");
    fixture.store().write_last_use().unwrap();
    let last_used = |store: &TokenStore| store.list().unwrap()[0].last_used;
    assert_eq!(last_used(&fixture.another()), Some(START));

    let written = fs::read(&path).unwrap();
    fixture.clock.advance(Duration::from_secs(30));
    fixture.ask(&minted.token).unwrap();
    fixture.store().write_last_use().unwrap();
    assert_eq!(fs::read(&path).unwrap(), written, "not for half a minute");
    assert_eq!(last_used(fixture.store()), Some(START + 30_000));
    fixture.clock.advance(Duration::from_secs(31));
    fixture.ask(&minted.token).unwrap();
    fixture.store().write_last_use().unwrap();
    assert_eq!(last_used(&fixture.another()), Some(START + 61_000));
}

#[test]
fn a_file_that_makes_no_sense_is_an_error_and_stays_as_it_is() {
    let hash = "0".repeat(64);
    let twice = format!(r#"{{"id":"a","kind":"super","sha256":"{hash}"}}"#);
    for text in [
        String::new(),
        "{".into(),
        "[]".into(),
        r#"{"tokens":[]}"#.into(),
        r#"{"version":2,"tokens":[]}"#.into(),
        r#"{"version":1,"tokens":[{"id":"a","kind":"hub"}]}"#.into(),
        format!(r#"{{"version":1,"tokens":[{twice},{twice}]}}"#),
    ] {
        let fixture = Fixture::new(Mode::Secured);
        let good = fixture.store().mint(NewToken::new(Grant::Super)).unwrap();
        let ephemeral = fixture.store().mint_ephemeral(clip("todo")).unwrap();
        let path = fixture.root.path().join(TOKENS);
        fs::write(&path, &text).unwrap();
        fixture.clock.advance(Duration::from_secs(1));

        let failure = TokenStore::open(fixture.root.path()).unwrap_err();
        assert!(
            failure.message.contains("tokens.json"),
            "{}",
            failure.message
        );
        fixture
            .store()
            .mint(NewToken::new(Grant::Super))
            .unwrap_err();
        fixture.store().revoke(&good.record.id).unwrap_err();
        fixture.store().list().unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);

        // Tokens of an unreadable file are not accepted. Since that is not the caller's fault, the error does not ask
        // to discard the token.
        let (code, words) = fixture.refusal(&good.token);
        assert_eq!(code, "unavailable");
        assert!(!words.contains("tokens.json"));
        assert_eq!(fixture.store().read_error(), Some(failure));
        fixture.ask(ephemeral.token()).unwrap();

        fs::remove_file(&path).unwrap();
        fixture.store().mint(NewToken::new(Grant::Super)).unwrap();
        assert_eq!(fixture.store().read_error(), None);
    }
}

#[test]
fn a_file_that_others_can_read_is_refused_with_the_way_to_mend_it() {
    let fixture = Fixture::new(Mode::Secured);
    let minted = fixture.store().mint(NewToken::new(Grant::Super)).unwrap();
    let path = fixture.root.path().join(TOKENS);
    for mode in [0o640, 0o604, 0o620, 0o602, 0o666] {
        set_mode(&path, mode);
        let failure = TokenStore::open(fixture.root.path()).unwrap_err();
        assert_eq!(failure.code, Code::FailedPrecondition);
        assert!(
            failure
                .message
                .contains(&format!("chmod 600 {}", path.display())),
            "{}",
            failure.message
        );
        fixture
            .store()
            .mint(NewToken::new(Grant::Super))
            .unwrap_err();
        assert_eq!(mode_of(&path), mode);
    }
    set_mode(&path, 0o600);
    fixture.clock.advance(Duration::from_secs(1));
    fixture.ask(&minted.token).unwrap();
}

#[test]
fn passing_tokens_are_never_written_and_go_with_their_guard() {
    let fixture = Fixture::new(Mode::Secured);
    let ephemeral = fixture.store().mint_ephemeral(clip("todo")).unwrap();
    assert!(ephemeral.token().reveal().starts_with("pnc_"));
    assert!(!format!("{ephemeral:?}").contains(ephemeral.token().reveal()));
    let caller = fixture.ask(ephemeral.token()).unwrap();
    assert_eq!(caller.to_string(), "clip:todo");
    fixture.store().mint(NewToken::new(Grant::Super)).unwrap();
    let text = fs::read_to_string(fixture.root.path().join(TOKENS)).unwrap();
    assert!(!text.contains("todo"));
    fixture.ask(ephemeral.token()).unwrap();

    let token = ephemeral.token().clone();
    drop(ephemeral);
    assert_eq!(
        fixture.refusal(&token),
        ("unauthenticated", "invalid token".into())
    );
}

#[test]
fn a_super_token_of_ones_own_choice_is_accepted() {
    let fixture = Fixture::new(Mode::Secured);
    let own = Token::chosen("correct horse battery").unwrap();
    let held = fixture.store().accept_super(own.clone()).unwrap();
    assert_eq!(fixture.ask(&own).unwrap().principal, Principal::Super);
    assert!(!fixture.root.path().join(TOKENS).exists());
    drop(held);
    fixture.ask(&own).unwrap_err();
    let short = Token::given("short").unwrap();
    assert_eq!(
        fixture.store().accept_super(short).unwrap_err().code,
        Code::InvalidArgument
    );
}

#[test]
fn without_a_token_the_mode_decides() {
    let peer = |loopback, origin| Peer { loopback, origin };
    let expect = [
        (
            Mode::Secured,
            peer(true, Origin::Absent),
            Ok(Principal::Anonymous),
        ),
        (
            Mode::Secured,
            peer(false, Origin::Served),
            Ok(Principal::Anonymous),
        ),
        (
            Mode::Manage,
            peer(false, Origin::Absent),
            Ok(Principal::Guest),
        ),
        (
            Mode::Manage,
            peer(true, Origin::Served),
            Ok(Principal::Guest),
        ),
        (
            Mode::Manage,
            peer(true, Origin::Foreign),
            Ok(Principal::Anonymous),
        ),
        (
            Mode::OpenLocal,
            peer(true, Origin::Absent),
            Ok(Principal::Super),
        ),
        (
            Mode::OpenLocal,
            peer(true, Origin::Served),
            Ok(Principal::Super),
        ),
        (
            Mode::OpenLocal,
            peer(true, Origin::Foreign),
            Err("token required"),
        ),
        (
            Mode::OpenLocal,
            peer(false, Origin::Absent),
            Err("token required"),
        ),
        (
            Mode::OpenLocal,
            peer(false, Origin::Served),
            Err("token required"),
        ),
    ];
    for (mode, peer, expected) in expect {
        let fixture = Fixture::new(mode);
        for header in [None, Some(""), Some("Basic abc"), Some("Bearer ")] {
            let got = fixture.gate.admit(header, None, peer);
            let got = got
                .map(|caller| caller.principal)
                .map_err(|failure| failure.message.into_owned());
            assert_eq!(
                got,
                expected.clone().map_err(str::to_owned),
                "{mode:?} {peer:?}"
            );
        }
        // An invalid token is invalid in every mode: a revoked one must not gain rights.
        let wrong = fixture
            .gate
            .admit(Some("Bearer pnc_example"), None, peer)
            .unwrap_err();
        assert_eq!(
            (wrong.code, &*wrong.message),
            (Code::Unauthenticated, "invalid token")
        );
    }
    assert_eq!(Mode::default(), Mode::Secured);
    for mode in [Mode::Secured, Mode::Manage, Mode::OpenLocal] {
        assert_eq!(mode.as_str().parse::<Mode>(), Ok(mode));
    }
}

#[test]
fn pages_of_others_are_told_from_ours_and_from_programs() {
    let is_served = |origin: &str| origin == "http://127.0.0.1:9000";
    for (origin, site, expected) in [
        (None, None, Origin::Absent),
        (None, Some("none"), Origin::Absent),
        (None, Some("same-origin"), Origin::Served),
        (Some("http://127.0.0.1:9000"), None, Origin::Served),
        (
            Some("http://127.0.0.1:9000"),
            Some("same-origin"),
            Origin::Served,
        ),
        (None, Some("same-site"), Origin::Foreign),
        (None, Some("cross-site"), Origin::Foreign),
        (None, Some("whatever comes later"), Origin::Foreign),
        (
            Some("http://127.0.0.1:3000"),
            Some("same-site"),
            Origin::Foreign,
        ),
        (
            Some("https://example.com"),
            Some("same-origin"),
            Origin::Foreign,
        ),
        (Some("null"), None, Origin::Foreign),
        (Some(""), None, Origin::Foreign),
    ] {
        assert_eq!(
            Origin::of(origin, site, is_served),
            expected,
            "{origin:?} {site:?}"
        );
    }
}

#[test]
fn a_session_is_worth_what_its_token_is() {
    let fixture = Fixture::new(Mode::Secured);
    let minted = fixture.store().mint(NewToken::new(hub(false))).unwrap();
    let caller = fixture.ask(&minted.token).unwrap();
    let set = fixture
        .gate
        .open_session(&caller, Transport::Plain)
        .unwrap();
    let (cookie, attributes) = set.split_once("; ").unwrap();
    assert_eq!(
        attributes,
        "Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"
    );
    assert!(
        fixture
            .gate
            .open_session(&caller, Transport::Tls)
            .unwrap()
            .ends_with("; Secure")
    );
    assert!(!cookie.contains(minted.token.reveal()));

    let ask = |origin| {
        let peer = Peer {
            loopback: true,
            origin,
        };
        fixture.gate.admit(None, Some(cookie), peer).unwrap()
    };
    let by_cookie = ask(Origin::Served);
    assert_eq!(
        (by_cookie.via, &by_cookie.principal),
        (Via::Session, &caller.principal)
    );
    assert_eq!(ask(Origin::Foreign).principal, Principal::Anonymous);

    // A token beside the cookie is used, and the cookie does not replace an invalid token.
    fixture
        .gate
        .admit(Some("Bearer wrong"), Some(cookie), Peer::LOCAL)
        .unwrap_err();

    fixture.store().revoke(&minted.record.id).unwrap();
    assert_eq!(ask(Origin::Served).principal, Principal::Anonymous);
}

#[test]
fn sessions_end_by_time_and_by_wish() {
    let fixture = Fixture::new(Mode::Secured);
    let minted = fixture.store().mint(NewToken::new(Grant::Super)).unwrap();
    let caller = fixture.ask(&minted.token).unwrap();
    let open = || {
        let set = fixture
            .gate
            .open_session(&caller, Transport::Plain)
            .unwrap();
        set.split_once(';').unwrap().0.to_owned()
    };
    let who = |cookie: &str| {
        fixture
            .gate
            .admit(None, Some(cookie), Peer::LOCAL)
            .unwrap()
            .principal
    };
    let (one, other) = (open(), open());
    assert_eq!(
        (who(&one), who(&other)),
        (Principal::Super, Principal::Super)
    );
    let taken_back = fixture.gate.close_session(Some(&one));
    assert!(taken_back.starts_with("pinion_session=; ") && taken_back.contains("Max-Age=0"));
    assert_eq!(
        (who(&one), who(&other)),
        (Principal::Anonymous, Principal::Super)
    );
    fixture.clock.advance(Duration::from_secs(12 * 3600));
    assert_eq!(who(&other), Principal::Anonymous);

    // The number is limited: the oldest ends.
    let first = open();
    let later: Vec<_> = (0..256).map(|_| open()).collect();
    assert_eq!(who(&first), Principal::Anonymous);
    assert!(later.iter().all(|cookie| who(cookie) == Principal::Super));

    let anonymous = fixture.gate.authenticate(None, Peer::LOCAL).unwrap();
    assert_eq!(
        fixture
            .gate
            .open_session(&anonymous, Transport::Plain)
            .unwrap_err()
            .code,
        Code::Unauthenticated
    );
}

#[tokio::test(start_paused = true)]
async fn open_streams_end_with_their_token() {
    let fixture = Fixture::new(Mode::OpenLocal);
    let lease = |token: &Token| fixture.gate.watch(&fixture.ask(token).unwrap());
    let here = fixture.store().mint(NewToken::new(hub(false))).unwrap();
    let there = fixture.store().mint(NewToken::new(hub(false))).unwrap();
    let brief = fixture
        .store()
        .mint(NewToken::new(hub(false)).lasting(Duration::from_secs(3)))
        .unwrap();
    let ephemeral = fixture.store().mint_ephemeral(clip("todo")).unwrap();
    let stays = fixture.store().mint(NewToken::new(hub(false))).unwrap();
    let mut stays = tokio::spawn(lease(&stays.token).ended());
    let free = fixture
        .gate
        .watch(&fixture.gate.authenticate(None, Peer::LOCAL).unwrap());
    let mut free = tokio::spawn(free.ended());

    // Revoked by this process, or ended with its guard: at once, by a clock that stands still while a task has work to
    // do.
    let before = tokio::time::Instant::now();
    let mut told = Vec::new();
    let revoked = tokio::spawn(lease(&here.token).ended());
    tokio::task::yield_now().await;
    fixture.store().revoke(&here.record.id).unwrap();
    told.push(revoked.await.unwrap());
    let left = tokio::spawn(lease(ephemeral.token()).ended());
    tokio::task::yield_now().await;
    drop(ephemeral);
    told.push(left.await.unwrap());
    assert_eq!(before.elapsed(), Duration::ZERO);
    for ended in told {
        assert_eq!(
            (ended.code, &*ended.message),
            (Code::Unauthenticated, "token revoked")
        );
    }

    // Expired, or revoked by another process: as soon as time has passed, at most ten seconds.
    let tick = Duration::from_millis(500);
    let expiring = tokio::spawn(lease(&brief.token).ended());
    let revoked = tokio::spawn(lease(&there.token).ended());
    tokio::task::yield_now().await;
    fixture.another().revoke(&there.record.id).unwrap();
    let mut ended = [None, None];
    for step in 0..20 {
        for (slot, task) in ended.iter_mut().zip([&expiring, &revoked]) {
            if slot.is_none() && task.is_finished() {
                *slot = Some(tick * step);
            }
        }
        fixture.clock.advance(tick);
        tokio::time::sleep(tick).await;
    }
    let ended = ended.map(Option::unwrap);
    assert!(ended[0] >= Duration::from_secs(3), "{ended:?}");
    assert_eq!(expiring.await.unwrap().message, "token expired");
    assert_eq!(revoked.await.unwrap().message, "token revoked");

    assert!(!stays.is_finished() && !free.is_finished());
    stays.abort();
    free.abort();
    let _ = ((&mut stays).await, (&mut free).await);
}

#[test]
fn many_threads_with_stores_of_their_own_lose_nothing() {
    let root = Arc::new(tempdir().unwrap());
    let threads = (0..8).map(|thread| {
        let root = Arc::clone(&root);
        std::thread::spawn(move || {
            let store = TokenStore::open(root.path()).unwrap();
            let mut kept = Vec::new();
            for number in 0..12 {
                let minted = store
                    .mint(NewToken::new(hub(false)).labelled(format!("{thread}.{number}")))
                    .unwrap();
                if number % 3 == 0 {
                    store.revoke(&minted.record.id).unwrap();
                } else {
                    kept.push(minted);
                }
            }
            kept
        })
    });
    let threads: Vec<_> = threads.collect();
    let kept: Vec<_> = threads
        .into_iter()
        .flat_map(|thread| thread.join().unwrap())
        .collect();
    let gate = Gate::new(Mode::Secured, TokenStore::open(root.path()).unwrap());
    let mut listed: Vec<TokenId> = gate
        .store()
        .list()
        .unwrap()
        .into_iter()
        .map(|record| record.id)
        .collect();
    let mut expected: Vec<TokenId> = kept.iter().map(|minted| minted.record.id.clone()).collect();
    listed.sort();
    expected.sort();
    assert_eq!(listed, expected);
    for minted in &kept {
        gate.authenticate(Some(minted.token.reveal()), Peer::LOCAL)
            .unwrap();
    }
}
