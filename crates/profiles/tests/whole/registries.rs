//! Registries in files and databases, and merged stacks.

use pinion_profiles::ProfileRequest;
use rusqlite::Connection;
use serde_json::json;

use crate::world::{World, profile};

fn with_registries(sources: &[&str]) -> ProfileRequest {
    ProfileRequest {
        registries: Some(sources.iter().map(ToString::to_string).collect()),
        ..ProfileRequest::default()
    }
}

fn database(world: &World, name: &str, rows: &[(&str, &str)]) {
    let connection = Connection::open(world.path(name)).unwrap();
    connection
        .execute_batch("CREATE TABLE profile_registries(slug TEXT PRIMARY KEY, payload_json TEXT NOT NULL, updated_at_ms INTEGER NOT NULL DEFAULT 0)")
        .unwrap();
    for (slug, payload) in rows {
        let values = (slug, payload);
        connection
            .execute(
                "INSERT INTO profile_registries(slug, payload_json) VALUES (?1, ?2)",
                values,
            )
            .unwrap();
    }
}

fn lineage(world: &World, asked: &ProfileRequest) -> Vec<String> {
    let resolved = world.resolve(asked).unwrap();
    let profile = resolved.profile.unwrap();
    profile.lineage.iter().map(ToString::to_string).collect()
}

#[test]
fn databases_hold_registries_by_row() {
    let world = World::new();
    database(
        &world,
        "repo/sub/r.db",
        &[
            ("zoo", r#"{"slug":"zoo","profiles":{"z":{"slug":"z"}}}"#),
            (
                "abc",
                r#"{"profiles":{"a":{"slug":"a","inference_settings":{"chat":{"engine":"from-row"}}}},"other":1}"#,
            ),
        ],
    );
    for source in [
        "r.db",
        "sqlite:r.db",
        "sqlite-dsn:file:DIR/r.db?cache=private",
    ] {
        let source = source.replace("DIR", &world.cwd.display().to_string());
        let resolved = world.resolve(&with_registries(&[&source])).unwrap();
        assert_eq!(
            resolved.settings.chat.engine.as_deref(),
            Some("from-row"),
            "{source}"
        );
        assert_eq!(resolved.library.imported.len(), 2);
    }
    let before = std::fs::read(world.path("repo/sub/r.db")).unwrap();
    assert_eq!(before, std::fs::read(world.path("repo/sub/r.db")).unwrap());
}

#[test]
fn a_broken_database_is_told() {
    let world = World::new();
    let error_text = |source: &str| world.error_for(&with_registries(&[source]));
    assert!(
        error_text("sqlite:none.db")
            .starts_with("unreadable_file /repo/sub/none.db: the registry database")
    );
    assert!(
        !world.path("repo/sub/none.db").exists(),
        "it was made by looking"
    );
    world.write(
        "repo/sub/words.db",
        "these are only words, and not a database at all",
    );
    assert_eq!(
        error_text("words.db"),
        "unreadable_file /repo/sub/words.db: the registry database cannot be read: it is not an SQLite database"
    );
    Connection::open(world.path("repo/sub/empty.db"))
        .unwrap()
        .execute_batch("CREATE TABLE x(y)")
        .unwrap();
    assert_eq!(
        error_text("empty.db"),
        "unreadable_file /repo/sub/empty.db: the registry database cannot be read: it has no table \"profile_registries\", \
         so it is not a registry of profiles"
    );
    database(&world, "repo/sub/json.db", &[("a", "{\"slug\": planted}")]);
    let words = error_text("json.db");
    assert!(
        words.contains("(row a):1:") && words.contains("not valid JSON"),
        "{words}"
    );
    assert!(!words.contains("planted"));
    database(&world, "repo/sub/name.db", &[("a", "{\"slug\": \"b\"}")]);
    assert!(
        error_text("name.db").contains("calls itself \"b\""),
        "{}",
        error_text("name.db")
    );
    database(&world, "repo/sub/slug.db", &[("a b", "{}")]);
    assert!(
        error_text("slug.db").starts_with("invalid_slug"),
        "{}",
        error_text("slug.db")
    );
}

#[test]
fn sources_that_cannot_be_used_are_told() {
    let world = World::new();
    let error_text = |source: &str| world.error_for(&with_registries(&[source]));
    assert!(
        error_text("none.yaml")
            .starts_with("unreadable_file /repo/sub/none.yaml: the registry cannot be read")
    );
    assert!(
        error_text("yaml:")
            .starts_with("invalid_setting --profile-registries: \"yaml:\" names no registry")
    );
    world.write(
        "repo/sub/bad.yaml",
        "slug: a\nprofiles:\n  x:\n    inference_settings:\n      chat: {top_p: much}\n",
    );
    assert!(
        error_text("bad.yaml")
            .starts_with("invalid_registry /repo/sub/bad.yaml:5:21: chat.top_p must be a number"),
        "{}",
        error_text("bad.yaml")
    );
    world.write("repo/sub/a.yaml", "slug: same\n");
    world.write("repo/sub/b.yaml", "slug: SAME\n");
    let told = world.error_for(&with_registries(&["a.yaml,b.yaml"]));
    assert_eq!(
        told,
        "duplicate_registry registry \"same\" is defined by both /repo/sub/a.yaml and /repo/sub/b.yaml; name only one of them in profile.registries"
    );
}

#[test]
fn a_stack_lies_below_its_profile_each_once_lowest_first() {
    let world = World::new();
    world.write(
        "repo/sub/base.yaml",
        "slug: base\nprofiles:\n  root: {inference_settings: {chat: {engine: root, top_p: 0.1, temperature: 0.1}}}\n  left: {stack: [{profile_slug: root}], inference_settings: {chat: {engine: left, top_p: 0.2}}}\n",
    );
    world.write(
        "repo/sub/team.yaml",
        "slug: team\nprofiles:\n  right: {stack: [{registry_slug: base, profile_slug: root}], inference_settings: {chat: {engine: right}}}\n  leaf:\n    stack:\n      - {registry_slug: base, profile_slug: left}\n      - {profile_slug: right}\n    inference_settings: {chat: {max_response_tokens: 9}}\n",
    );
    let mut asked = with_registries(&["base.yaml", "team.yaml"]);
    asked.profile = Some("LEAF".into());
    assert_eq!(
        lineage(&world, &asked),
        ["base/root", "base/left", "team/right", "team/leaf"]
    );
    let chat = world.resolve(&asked).unwrap().settings.masked()["chat"].clone();
    assert_eq!(chat["engine"], json!("right"));
    assert_eq!(chat["top_p"], json!(0.2));
    assert_eq!(chat["temperature"], json!(0.1));
    assert_eq!(chat["max_response_tokens"], json!(9));
}

#[test]
fn inline_profiles_may_build_on_imported_ones() {
    let world = World::new();
    world.write(
        "home/.config/pinocchio/profiles.yaml",
        "slug: own\nprofiles: {base: {}, other: {}}\n",
    );
    world.write(
        "home/.pinocchio/config.yaml",
        "profiles:\n  top: {stack: [{profile_slug: base}, {registry_slug: own, profile_slug: other}, {profile_slug: mid}]}\n  mid: {}\n",
    );
    let expected = [
        "own/base",
        "own/other",
        "config-inline/mid",
        "config-inline/top",
    ];
    assert_eq!(lineage(&world, &profile("top")), expected);
}

#[test]
fn stacks_that_go_wrong_are_told() {
    let world = World::new();
    let error_text = |profiles: &str| {
        world.write(
            "home/.pinocchio/config.yaml",
            &format!("profiles:\n{profiles}"),
        );
        world.error_for(&profile("a"))
    };
    let cycle =
        error_text("  a: {stack: [{profile_slug: b}]}\n  b: {stack: [{profile_slug: a}]}\n");
    assert_eq!(
        cycle,
        "profile_cycle the stack of profile config-inline/a -> config-inline/b -> config-inline/a leads back to itself; take one of these out"
    );
    assert!(error_text("  a: {stack: [{profile_slug: a}]}\n").starts_with("profile_cycle"));
    let missing = error_text("  a: {stack: [{profile_slug: zz}]}\n");
    assert!(missing.starts_with("profile_not_found profile \"a\" in configuration documents: there is no profile \"zz\"; the profiles are: a"), "{missing}");
    let missing = error_text("  a: {stack: [{registry_slug: r, profile_slug: zz}]}\n");
    assert!(
        missing.starts_with("registry_not_found profile \"a\""),
        "{missing}"
    );

    let chain = |length: usize| {
        let link = |at: usize| {
            if at + 1 == length {
                format!("  p{at}: {{}}\n")
            } else {
                format!("  p{at}: {{stack: [{{profile_slug: p{}}}]}}\n", at + 1)
            }
        };
        let chain: String = (0..length).map(link).collect();
        world.write(
            "home/.pinocchio/config.yaml",
            &format!("profiles:\n{chain}"),
        );
        world
            .resolve(&profile("p0"))
            .map(|_| ())
            .map_err(|error| error.code())
    };
    assert_eq!(chain(32), Ok(()));
    assert_eq!(chain(33), Err("profile_stack_too_deep"));
}

#[test]
fn many_paths_to_one_profile_are_no_trouble() {
    let world = World::new();
    let level = |at: usize| {
        format!(
            "  p{at}: {{stack: [{{profile_slug: p{0}}}, {{profile_slug: p{0}}}]}}\n",
            at + 1
        )
    };
    let levels: String = (0..30).map(level).collect();
    world.write(
        "home/.pinocchio/config.yaml",
        &format!("profiles:\n{levels}  p30: {{}}\n"),
    );
    assert_eq!(lineage(&world, &profile("p0")).len(), 31);
}

#[test]
fn paths_in_a_document_begin_at_the_document() {
    let world = World::new();
    world.write("repo/sub/r.yaml", "slug: evil\nprofiles: {e: }\n");
    world.write("home/.pinocchio/r.yaml", "slug: mine\nprofiles: {m: }\n");
    world.write(
        "home/.pinocchio/config.yaml",
        "profile: {registries: [r.yaml]}\n",
    );
    assert_eq!(lineage(&world, &ProfileRequest::default()), ["mine/m"]);
    assert_eq!(lineage(&world, &with_registries(&["r.yaml"])), ["evil/e"]);
}
