//! The permissions of every kind of caller, cell by cell, against a copy of the table in the documentation.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use pinion_access::{ClipView, Method, Principal, Scope, TokenId};
use pinion_status::{Code, Failure};

/// The table in `docs/security.md`, with a column for each kind of hub token. `yes`: always. `seen`: visible clips.
/// `scope`: clips of the token's scope. `self`: the clip itself. `any`: any clip. `no`: never.
const MATRIX: &str = "
    method            super  hub    hub+manage  clip   guest  anonymous
    HubInfo           yes    yes    yes         yes    yes    yes
    ListClips         yes    seen   seen        seen   seen   no
    GetClipManifest   yes    seen   seen        seen   seen   no
    GetManifest       yes    seen   seen        seen   seen   no
    ListProviders     yes    scope  scope       no     seen   no
    GetClipWeb        yes    seen   seen        self   seen   no
    Invoke            yes    seen   seen        seen   seen   no
    InvokeStream      yes    seen   seen        seen   seen   no
    DataRead          yes    scope  scope       any    seen   no
    DataWrite         yes    scope  scope       self   no     no
    GetLogs           yes    scope  scope       self   seen   no
    AddClip           yes    no     scope       no     no     no
    RemoveClip        yes    no     scope       no     no     no
    GetBindings       yes    scope  scope       self   no     no
    SetBinding        yes    no     scope       no     no     no
    RemoveBinding     yes    no     scope       no     no     no
    ProviderStream    yes    yes    yes         no     yes    no
    RuntimeStream     yes    no     yes         no     yes    no
";

/// The result of each word of the table for each clip: `ok`, `denied`, or `hidden` as if it did not exist. `todo` and
/// `notes` belong to @me, `clock` has no owner, `news` and `diary` belong to @you, who shares `news`. The caller is @me
/// or its clip `todo`; a guest has no identity.
const MEANING: &str = "
    word   asks   todo    notes   clock   news    diary   ghost
    yes    super  ok      ok      ok      ok      ok      hidden
    yes    other  ok      ok      ok      ok      ok      hidden
    seen   hub    ok      ok      ok      ok      hidden  hidden
    seen   clip   ok      ok      ok      ok      hidden  hidden
    seen   guest  hidden  hidden  ok      ok      hidden  hidden
    scope  hub    ok      ok      denied  denied  hidden  hidden
    self   clip   ok      denied  denied  denied  hidden  hidden
    any    clip   ok      ok      ok      ok      ok      hidden
    no     other  denied  denied  denied  denied  denied  denied
";

struct Clip {
    alias: &'static str,
    owner: Option<Scope>,
    shared: bool,
}

fn scope(name: &str) -> Scope {
    name.parse().unwrap()
}

fn clips() -> Vec<Clip> {
    let clip = |alias, owner: Option<&str>, shared| Clip {
        alias,
        owner: owner.map(scope),
        shared,
    };
    vec![
        clip("todo", Some("@me"), false),
        clip("notes", Some("@me"), false),
        clip("clock", None, false),
        clip("news", Some("@you"), true),
        clip("diary", Some("@you"), false),
    ]
}

fn view(clip: &Clip) -> ClipView<'_> {
    ClipView {
        alias: clip.alias,
        owner: clip.owner.as_ref(),
        shared: clip.shared,
    }
}

fn caller(column: &str) -> Principal {
    let hub = |manage| Principal::Hub {
        scope: scope("@me"),
        manage,
        id: TokenId::from("k3v9q2mx"),
    };
    match column {
        "super" => Principal::Super,
        "hub" => hub(false),
        "hub+manage" => hub(true),
        "clip" => Principal::Clip {
            alias: "todo".into(),
            owner: Some(scope("@me")),
        },
        "guest" => Principal::Guest,
        "anonymous" => Principal::Anonymous,
        other => panic!("no caller {other}"),
    }
}

fn table(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| line.split_whitespace().collect())
        .collect()
}

/// Returns every cell: method, column and word.
fn cells() -> Vec<(Method, &'static str, &'static str)> {
    let rows = table(MATRIX);
    let (head, rows) = rows.split_first().unwrap();
    let cells = rows.iter().flat_map(|row| {
        let method = Method::from_name(row[0]).unwrap();
        assert_eq!(row.len(), head.len());
        head.iter()
            .zip(row)
            .skip(1)
            .map(move |(column, word)| (method, *column, *word))
    });
    cells.collect()
}

/// Returns the result of a word for a caller and a clip.
fn meaning(word: &str, column: &str, alias: &str) -> &'static str {
    let rows = table(MEANING);
    let (head, rows) = rows.split_first().unwrap();
    let asks = column.split('+').next().unwrap();
    let named = |who: &str| rows.iter().find(|row| row[0] == word && row[1] == who);
    let row = named(asks).or_else(|| named("other")).unwrap();
    let place = head.iter().position(|name| *name == alias).unwrap();
    row[place]
}

/// Checks the code and message of a result, and returns its word.
fn outcome<T>(
    result: Result<T, Failure>,
    column: &str,
    method: Method,
    alias: &str,
) -> &'static str {
    let Err(failure) = result else { return "ok" };
    let words = failure.message.to_string();
    match failure.code {
        Code::NotFound => {
            assert_eq!(words, format!("Clip '{alias}' not found"));
            "hidden"
        }
        Code::Unauthenticated => {
            assert!(["guest", "anonymous"].contains(&column));
            assert_eq!(words, "token required");
            "denied"
        }
        Code::PermissionDenied => {
            let whole = format!("token does not allow {method}");
            let words = words
                .strip_suffix(": it was created without --manage")
                .unwrap_or(&words);
            assert!(
                words == whole || words == format!("{whole} of clip '{alias}'"),
                "{words}"
            );
            assert!(!["guest", "anonymous"].contains(&column));
            "denied"
        }
        other => panic!("{other}: {words}"),
    }
}

#[test]
fn every_method_is_in_the_table_but_the_one_that_is_two() {
    let rows = table(MATRIX);
    for method in Method::ALL {
        let is_there = rows.iter().any(|row| row[0] == method.as_str());
        assert_eq!(is_there, *method != Method::Data, "{method}");
        assert_eq!(Method::from_name(method.as_str()), Some(*method));
    }
    assert_eq!(rows.len(), Method::ALL.len());
    assert_eq!(Method::from_name("addclip"), None);
}

#[test]
fn every_cell_says_whether_a_method_may_be_called() {
    for (method, column, word) in cells() {
        let result = caller(column).may(method);
        let expected = if word == "no" { "denied" } else { "ok" };
        assert_eq!(
            outcome(result, column, method, ""),
            expected,
            "{method} {column}"
        );
    }
}

#[test]
fn every_cell_says_on_which_clips() {
    let clips = clips();
    let without_clip = [
        Method::HubInfo,
        Method::ListClips,
        Method::ListProviders,
        Method::AddClip,
        Method::ProviderStream,
        Method::RuntimeStream,
    ];
    for (method, column, word) in cells() {
        if without_clip.contains(&method) {
            continue;
        }
        for alias in ["todo", "notes", "clock", "news", "diary", "ghost"] {
            let found = clips.iter().find(|clip| clip.alias == alias);
            let result = caller(column).find(method, alias, found, |clip| view(clip));
            let expected = meaning(word, column, alias);
            let got = outcome(result, column, method, alias);
            assert_eq!(got, expected, "{method} {column} {alias}");
        }
    }
}

#[test]
fn lists_contain_visible_clips() {
    for (method, column, word) in cells() {
        if method != Method::ListClips {
            continue;
        }
        for clip in clips() {
            let sees = caller(column).sees(clip.owner.as_ref(), clip.alias, clip.shared);
            let expected = word != "no" && meaning(word, column, clip.alias) == "ok";
            assert_eq!(sees, expected, "{column} {}", clip.alias);
        }
    }
}

#[test]
fn providers_are_listed_to_their_own_scope() {
    let (me, you) = (scope("@me"), scope("@you"));
    for (column, mine, yours, nobodys) in [
        ("super", true, true, true),
        ("hub", true, false, false),
        ("hub+manage", true, false, false),
        ("clip", false, false, false),
        ("guest", false, false, true),
        ("anonymous", false, false, false),
    ] {
        let caller = caller(column);
        assert_eq!(caller.sees_provider(Some(&me)), mine, "{column}");
        assert_eq!(caller.sees_provider(Some(&you)), yours, "{column}");
        assert_eq!(caller.sees_provider(None), nobodys, "{column}");
    }
}

#[test]
fn a_clip_is_installed_where_there_is_none_or_ones_own() {
    let clips = clips();
    let try_at = |column: &str, alias: &str| {
        let present = clips.iter().find(|clip| clip.alias == alias).map(view);
        caller(column)
            .may_install(alias, present)
            .map_err(|failure| failure.code())
    };
    for alias in ["ghost", "todo", "notes", "clock", "news", "diary"] {
        assert_eq!(try_at("super", alias), Ok(()));
        for column in ["hub", "clip"] {
            assert_eq!(try_at(column, alias), Err("permission_denied"));
        }
        for column in ["guest", "anonymous"] {
            assert_eq!(try_at(column, alias), Err("unauthenticated"));
        }
    }
    for (alias, expected) in [
        ("ghost", Ok(())),
        ("todo", Ok(())),
        ("notes", Ok(())),
        ("clock", Err("already_exists")),
        ("news", Err("already_exists")),
        ("diary", Err("already_exists")),
    ] {
        assert_eq!(try_at("hub+manage", alias), expected, "{alias}");
    }
}

#[test]
fn the_log_of_the_hub_is_for_super_alone() {
    for (column, code) in [
        ("super", None),
        ("hub", Some("permission_denied")),
        ("hub+manage", Some("permission_denied")),
        ("clip", Some("permission_denied")),
        ("guest", Some("unauthenticated")),
        ("anonymous", Some("unauthenticated")),
    ] {
        let refused = caller(column).may_read_system_log().err();
        assert_eq!(refused.as_ref().map(Failure::code), code, "{column}");
    }
}

#[test]
fn the_double_method_for_data_has_the_rights_of_its_operation() {
    for (operation, method) in [
        ("", Method::DataRead),
        ("read", Method::DataRead),
        ("list", Method::DataRead),
        ("stat", Method::DataRead),
        ("write", Method::DataWrite),
        ("delete", Method::DataWrite),
    ] {
        assert_eq!(Method::of_operation(operation), Ok(method));
    }
    assert_eq!(
        Method::of_operation("chmod").unwrap_err().code,
        Code::InvalidArgument
    );
    let clips = clips();
    for column in ["super", "hub", "hub+manage", "clip", "guest", "anonymous"] {
        let caller = caller(column);
        assert_eq!(
            caller.may(Method::Data).is_ok(),
            caller.may(Method::DataRead).is_ok()
        );
        // Without its operation, the method requires no less than writing.
        for clip in &clips {
            let may = |method| {
                caller
                    .find(method, clip.alias, Some(clip), |clip| view(clip))
                    .is_ok()
            };
            assert_eq!(
                may(Method::Data),
                may(Method::DataWrite),
                "{column} {}",
                clip.alias
            );
        }
    }
}

#[test]
fn a_clip_without_owner_sees_shared_clips_and_itself() {
    let caller = Principal::Clip {
        alias: "clock".into(),
        owner: None,
    };
    let sees = |clip: &Clip| caller.sees(clip.owner.as_ref(), clip.alias, clip.shared);
    let seen: Vec<_> = clips()
        .into_iter()
        .filter(sees)
        .map(|clip| clip.alias)
        .collect();
    assert_eq!(seen, ["clock", "news"]);
    assert_eq!(caller.to_string(), "clip:clock");
}
