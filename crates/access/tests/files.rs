//! Files beside the tokens: the local token, the import from Pinix, and the files of clients.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pinion_access::client::{
    CLI_VARIABLE, ClientConfig, Credential, Credentials, DAEMON_VARIABLE, Source, TokenQuery, User,
};
use pinion_access::{
    Gate, Import, LOCAL_TOKEN, Mode, Peer, Principal, Token, TokenStore, bootstrap,
    import_super_token, local_token,
};
use pinion_status::{Code, Failure};
use tempfile::tempdir;

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn who(store: &TokenStore, token: &str) -> Result<Principal, Failure> {
    let gate = Gate::new(Mode::Secured, store.clone());
    Ok(gate.authenticate(Some(token), Peer::LOCAL)?.principal)
}

#[test]
fn the_first_start_makes_a_way_in_and_later_ones_find_it() {
    let parent = tempdir().unwrap();
    let root = parent.path().join("root");
    let store = TokenStore::open(&root).unwrap();
    assert_eq!(local_token(&root).unwrap(), None);
    let first = bootstrap(&store).unwrap();
    assert!(first.is_new);
    assert!(first.token.reveal().starts_with("pns_"));
    assert_eq!(first.path, root.join(LOCAL_TOKEN));
    assert_eq!((mode_of(&first.path), mode_of(&root)), (0o600, 0o700));
    assert_eq!(local_token(&root).unwrap().as_ref(), Some(&first.token));
    assert_eq!(who(&store, first.token.reveal()), Ok(Principal::Super));

    let second = bootstrap(&TokenStore::open(&root).unwrap()).unwrap();
    assert!(!second.is_new);
    assert_eq!((second.token, second.id), (first.token, first.id));
    assert_eq!(store.list().unwrap().len(), 1);
}

#[test]
fn a_lost_way_in_is_replaced_and_no_longer_good() {
    let root = tempdir().unwrap();
    let store = TokenStore::open(root.path()).unwrap();
    let lost = bootstrap(&store).unwrap();
    fs::remove_file(&lost.path).unwrap();
    let found = bootstrap(&store).unwrap();
    assert!(found.is_new && found.token != lost.token);
    assert_eq!(
        who(&store, lost.token.reveal()).unwrap_err().code,
        Code::Unauthenticated
    );
    assert_eq!(who(&store, found.token.reveal()), Ok(Principal::Super));

    // Revoked on purpose: the next start creates another.
    store.revoke(&found.id).unwrap();
    let again = bootstrap(&store).unwrap();
    assert!(again.is_new && again.token != found.token);
    // A file with other content is not accepted.
    write(&again.path, "pns_something-else-entirely\n", 0o600);
    let last = bootstrap(&store).unwrap();
    assert!(last.is_new);
    assert_eq!(
        store
            .list()
            .unwrap()
            .iter()
            .filter(|record| record.is_local)
            .count(),
        1
    );
    assert_eq!(
        who(&store, again.token.reveal()).unwrap_err().code,
        Code::Unauthenticated
    );
}

#[test]
fn two_first_starts_at_once_agree() {
    let root = tempdir().unwrap();
    let starts = std::thread::scope(|scope| {
        let start = || bootstrap(&TokenStore::open(root.path()).unwrap()).unwrap();
        let starts: Vec<_> = (0..6).map(|_| scope.spawn(start)).collect();
        starts
            .into_iter()
            .map(|start| start.join().unwrap())
            .collect::<Vec<_>>()
    });
    assert_eq!(starts.iter().filter(|start| start.is_new).count(), 1);
    assert!(
        starts
            .iter()
            .all(|start| start.token == starts[0].token && start.id == starts[0].id)
    );
}

#[test]
fn a_way_in_that_others_can_read_is_refused() {
    let root = tempdir().unwrap();
    let store = TokenStore::open(root.path()).unwrap();
    let entrance = bootstrap(&store).unwrap();
    fs::set_permissions(&entrance.path, fs::Permissions::from_mode(0o644)).unwrap();
    for failure in [
        local_token(root.path()).unwrap_err(),
        bootstrap(&store).unwrap_err(),
    ] {
        assert_eq!(failure.code, Code::FailedPrecondition);
        assert!(failure.message.contains("chmod 600"));
        assert!(!failure.message.contains(entrance.token.reveal()));
    }
}

#[test]
fn the_super_token_of_pinix_is_honoured_and_its_plain_text_goes() {
    let root = tempdir().unwrap();
    let store = TokenStore::open(root.path()).unwrap();
    let path = root.path().join("config.json");
    let others =
        r#""clips": {"todo":{"version":"1.0","n":1.50e+3,"big":123456789012345678901234567890}}"#;
    write(
        &path,
        &format!(r#"{{ "zeta": 1, "super_token": "a token from long ago", {others} }}"#),
        0o600,
    );
    let Import::Migrated(id) = import_super_token(&store, &path).unwrap() else {
        unreachable!("not migrated")
    };
    assert_eq!(who(&store, "a token from long ago"), Ok(Principal::Super));
    assert_eq!(store.list().unwrap()[0].id, id);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, format!("{{\n  \"zeta\": 1,\n  {others}\n}}\n"));
    assert_eq!(mode_of(&path), 0o600);
    assert!(
        !fs::read_to_string(root.path().join("tokens.json"))
            .unwrap()
            .contains("long ago")
    );
    assert_eq!(import_super_token(&store, &path).unwrap(), Import::Nothing);

    // Written again by a Pinix that does not know pinion: the same token stays one token.
    write(&path, r#"{"super_token":"a token from long ago"}"#, 0o600);
    assert_eq!(
        import_super_token(&store, &path).unwrap(),
        Import::Migrated(id)
    );
    assert_eq!(store.list().unwrap().len(), 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n");
}

#[test]
fn what_cannot_be_taken_over_stays_as_it_is() {
    let root = tempdir().unwrap();
    let store = TokenStore::open(root.path()).unwrap();
    let path = root.path().join("config.json");
    assert_eq!(import_super_token(&store, &path), Ok(Import::Nothing));
    for (text, mode, expected) in [
        ("{}", 0o644, Ok(Import::Nothing)),
        (r#"{"super_token":""}"#, 0o644, Ok(Import::Nothing)),
        (r#"{"super_token":null}"#, 0o644, Ok(Import::Nothing)),
        (r#"{"super_token":"short"}"#, 0o600, Ok(Import::TooShort)),
        (
            r#"{"super_token":"sixteen letters and more"}"#,
            0o640,
            Err(Code::FailedPrecondition),
        ),
        (r#"{"super_token":7}"#, 0o600, Err(Code::DataLoss)),
        ("[]", 0o600, Err(Code::DataLoss)),
        ("{", 0o600, Err(Code::DataLoss)),
    ] {
        write(&path, text, mode);
        let got = import_super_token(&store, &path).map_err(|failure| failure.code);
        assert_eq!(got, expected, "{text}");
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), mode_of(&path)),
            (text, mode)
        );
    }
    assert_eq!(store.list().unwrap(), []);
}

#[test]
fn client_files_keep_what_others_wrote() {
    let root = tempdir().unwrap();
    let path = root.path().join("client.json");
    write(
        &path,
        r#"{"theme":"dark","hub":"http://hub.example:9000"}"#,
        0o644,
    );
    ClientConfig::update(root.path(), |config| {
        config.hub_token = Token::given("pnx_secret");
        config.user = Some(User {
            username: "me".into(),
            scope: Some("@me".parse().unwrap()),
        });
    })
    .unwrap();
    assert_eq!(mode_of(&path), 0o600);
    let config = ClientConfig::load(root.path()).unwrap();
    assert!(!format!("{config:?}").contains("pnx_secret"));
    assert_eq!(config.hub.as_deref(), Some("http://hub.example:9000"));
    assert_eq!(config.hub_token.unwrap().reveal(), "pnx_secret");
    let value: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(value["theme"], "dark");
    assert_eq!(value["user"]["scope"], "@me");

    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let failure = ClientConfig::load(root.path()).unwrap_err();
    assert!(failure.message.contains("chmod 600") && !failure.message.contains("pnx_secret"));
    ClientConfig::update(root.path(), |_| ()).unwrap_err();
}

#[test]
fn a_flag_beats_the_environment_beats_files() {
    const LOCAL: &str = "http://127.0.0.1:9000";
    const NAMED: &str = "https://hub.example";
    let root = tempdir().unwrap();
    let query = |flag, variable, hub, local_hub| TokenQuery {
        root: root.path(),
        flag,
        variable,
        hub,
        local_hub,
    };
    let environment = |name: &str| (name == "PINIX_TOKEN").then(|| " from-env ".to_owned());
    let nothing = |_: &str| None;
    let chosen = |query: TokenQuery<'_>, set: bool| {
        let chosen = if set {
            query.choose(environment)
        } else {
            query.choose(nothing)
        };
        chosen
            .unwrap()
            .map(|chosen| (chosen.token.reveal().to_owned(), chosen.source))
    };
    assert_eq!(
        chosen(query(None, CLI_VARIABLE, LOCAL, Some(LOCAL)), false),
        None
    );

    let local = bootstrap(&TokenStore::open(root.path()).unwrap())
        .unwrap()
        .token;
    let local = Some((local.reveal().to_owned(), Source::LocalFile));
    let kept = Some(("pnx_kept".to_owned(), Source::ClientFile));
    let flag = Some(("from-flag".to_owned(), Source::Flag));
    let set = Some(("from-env".to_owned(), Source::Variable("PINIX_TOKEN")));
    ClientConfig::update(root.path(), |config| {
        config.hub = Some(format!("{NAMED}/"));
        config.hub_token = Token::given("pnx_kept");
    })
    .unwrap();

    for (flag_given, is_set, hub, local_hub, expected) in [
        (Some("from-flag"), true, NAMED, None, &flag),
        (Some(" "), true, NAMED, None, &set),
        (None, true, LOCAL, Some(LOCAL), &set),
        (None, false, NAMED, Some(LOCAL), &kept),
        (None, false, LOCAL, Some(LOCAL), &local),
        // Other hubs receive neither.
        (None, false, LOCAL, None, &None),
        (None, false, "http://127.0.0.1:9001", Some(LOCAL), &None),
        (None, false, "https://hub.example.org", Some(LOCAL), &None),
    ] {
        let got = chosen(query(flag_given, CLI_VARIABLE, hub, local_hub), is_set);
        assert_eq!(got, *expected, "{hub} {flag_given:?} {is_set}");
    }
    // Daemons have a variable of their own.
    assert_eq!(
        chosen(query(None, DAEMON_VARIABLE, NAMED, None), true),
        kept
    );

    // A token without a hub stays on this machine.
    ClientConfig::update(root.path(), |config| config.hub = None).unwrap();
    assert_eq!(chosen(query(None, CLI_VARIABLE, NAMED, None), false), None);
    assert_eq!(chosen(query(None, CLI_VARIABLE, LOCAL, None), false), kept);
    assert_eq!(
        chosen(query(None, CLI_VARIABLE, LOCAL, Some(LOCAL)), false),
        local
    );
    // The hub in the file is the local one: the token beside its name is used.
    ClientConfig::update(root.path(), |config| config.hub = Some(LOCAL.into())).unwrap();
    assert_eq!(
        chosen(query(None, CLI_VARIABLE, LOCAL, Some(LOCAL)), false),
        kept
    );
}

#[test]
fn credentials_are_kept_by_registry() {
    let root = tempdir().unwrap();
    let path = root.path().join("credentials.json");
    write(
        &path,
        r#"{"note":"mine","registries":{"https://a.example":{"token":"one","username":"me"}}}"#,
        0o600,
    );
    let credential = |token: &str| Credential {
        token: Token::given(token).unwrap(),
        username: "you".into(),
    };
    Credentials::set(root.path(), "https://b.example/", Some(credential("two"))).unwrap();
    let known = Credentials::load(root.path()).unwrap();
    assert_eq!(
        known.get("https://A.example/").unwrap().token.reveal(),
        "one"
    );
    assert_eq!(known.get("https://b.example"), Some(&credential("two")));
    assert_eq!(known.get("https://c.example"), None);
    assert!(!format!("{known:?}").contains("two"));

    Credentials::set(root.path(), "https://a.example", None).unwrap();
    let known = Credentials::load(root.path()).unwrap();
    assert_eq!(
        known.registries().collect::<Vec<_>>(),
        ["https://b.example"]
    );
    assert!(fs::read_to_string(&path).unwrap().contains("mine"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).unwrap();
    assert_eq!(
        Credentials::load(root.path()).unwrap_err().code,
        Code::FailedPrecondition
    );
}
