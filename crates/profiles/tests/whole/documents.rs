//! Locations, order and owners of documents.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use pinion_profiles::{Config, DocumentState, Factories, ProfileRequest, repositories};
use serde_json::json;

use crate::world::{World, engine_document, options, profile};

const IN_ORDER: [&str; 8] = [
    "etc/pinocchio/config.yaml",
    "home/.pinocchio/config.yaml",
    "home/.config/pinocchio/config.yaml",
    "repo/.pinocchio.yml",
    "repo/.pinocchio.override.yml",
    "repo/sub/.pinocchio.yml",
    "repo/sub/.pinocchio.override.yml",
    "elsewhere.yaml",
];

fn config_file(path: PathBuf) -> ProfileRequest {
    ProfileRequest {
        config_file: Some(path),
        ..ProfileRequest::default()
    }
}

#[test]
fn a_later_document_goes_before_an_earlier_one() {
    let mut world = World::new();
    world.trust("repo");
    for (count, name) in IN_ORDER.iter().enumerate() {
        world.write(name, &engine_document(&format!("engine-{count}")));
        let asked = match *name {
            "elsewhere.yaml" => config_file(world.path(name)),
            _ => ProfileRequest::default(),
        };
        let resolved = world.resolve(&asked).unwrap();
        let engine = resolved.settings.chat.engine.clone();
        assert_eq!(engine, Some(format!("engine-{count}")), "{name}");
        let read = resolved.config.documents.iter();
        let read = read.filter(|(_, state)| *state == DocumentState::Read);
        assert_eq!(read.count(), count + 1);
    }
    // Without it the others are used.
    assert_eq!(world.settings()["chat"]["engine"], json!("engine-6"));
}

#[test]
fn the_users_directory_follows_xdg() {
    let mut world = World::new();
    let xdg = world.path("xdg").display().to_string();
    world.write("xdg/pinocchio/config.yaml", &engine_document("x"));
    assert_eq!(world.settings()["chat"]["engine"], json!("gpt-4"));
    world.variable("XDG_CONFIG_HOME", &xdg);
    assert_eq!(world.settings()["chat"]["engine"], json!("x"));
    world.variable("XDG_CONFIG_HOME", "relative");
    assert_eq!(world.settings()["chat"]["engine"], json!("gpt-4"));
}

#[test]
fn each_key_merges_by_its_own_rule() {
    let world = World::new();
    fs::create_dir_all(world.path("home/.pinocchio/a")).unwrap();
    fs::create_dir_all(world.path("b")).unwrap();
    let b = world.path("b").display().to_string();
    world.write(
        "etc/pinocchio/config.yaml",
        &format!("app: {{repositories: ['{b}', nowhere]}}\nprofile: {{active: p, registries: [none.yaml]}}\nprofiles:\n  p:\n    display_name: First\n    description: kept\n    stack: [{{profile_slug: q}}]\n    inference_settings:\n      chat: {{engine: one, stop: [a, b]}}\n      model_info: {{cost: {{input: 1, output: 2}}}}\n    extensions: {{x.y@v1: {{a: 1, b: 1}}}}\n  q:\n    inference_settings: {{chat: {{top_p: 0.5}}}}\n"),
    );
    world.write(
        "home/.pinocchio/config.yaml",
        "app: {repositories: [nowhere, a, $MISSING]}\nprofile: {registries: []}\nprofiles:\n  P:\n    display_name: Second\n    inference_settings:\n      chat: {stop: [c]}\n      model_info: {cost: {input: 9}}\n    extensions: {x.y@v1: {b: 2}}\n",
    );
    let resolved = world.resolve(&ProfileRequest::default()).unwrap();
    let chosen = resolved.profile.as_ref().unwrap();
    assert_eq!(chosen.display_name.as_deref(), Some("Second"));
    assert_eq!(chosen.lineage.len(), 2);
    let settings = resolved.settings.masked();
    assert_eq!(settings["chat"]["engine"], json!("one"));
    assert_eq!(settings["chat"]["stop"], json!(["c"]));
    assert_eq!(settings["chat"]["top_p"], json!(0.5));
    assert_eq!(settings["model_info"]["cost"], json!({"input": 9}));
    assert_eq!(
        chosen.extensions.masked(),
        json!({"x.y@v1": {"a": 1, "b": 2}})
    );
    let written: Vec<&str> = resolved
        .config
        .repositories
        .iter()
        .map(|(_, text)| text.as_str())
        .collect();
    assert_eq!(written, [b.as_str(), "nowhere", "a", "$MISSING"]);
    let (found, notices) = world.with(|host| repositories(host, None));
    assert_eq!(notices, []);
    // An unset variable is empty, which means the directory of the document itself.
    let own = world.path("home/.pinocchio/");
    assert_eq!(
        found,
        [world.path("b"), world.path("home/.pinocchio/a"), own]
    );
}

#[test]
fn mistakes_stop_profiles_and_only_hide_repositories() {
    let world = World::new();
    world.write(
        "home/.pinocchio/config.yaml",
        "app:\n  repositories: [.]\nai-chat:\n  ai-engine: x\nprofiles:\n  p:\n    inference_settings:\n      chat:\n        temperature: hot\n",
    );
    let told = world.error_text();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 2, "{told}");
    assert!(lines[0].starts_with(
        "invalid_config /home/.pinocchio/config.yaml:3:1: \"ai-chat\" is no longer a key"
    ));
    assert!(
        lines[1]
            .starts_with("/home/.pinocchio/config.yaml:9:22: chat.temperature must be a number")
    );
    let (found, notices) = world.with(|host| repositories(host, None));
    assert!(found.is_empty());
    assert_eq!(notices[0].code, "invalid_config");
    world.write("home/.pinocchio/config.yaml", "a: [\n");
    assert!(
        world
            .error_text()
            .starts_with("invalid_config /home/.pinocchio/config.yaml:")
    );
}

#[test]
fn a_named_document_must_exist_and_be_of_today() {
    let world = World::new();
    let told = world.error_for(&config_file("missing.yaml".into()));
    assert!(
        told.starts_with("config_not_found /repo/sub/missing.yaml"),
        "{told}"
    );
    world.write("repo/sub/.pinocchio-profile.yml", "profile: {}\n");
    let told = world.error_for(&config_file(".pinocchio-profile.yml".into()));
    assert!(
        told.starts_with("config_refused /repo/sub/.pinocchio-profile.yml"),
        "{told}"
    );
    let resolved = world.resolve(&ProfileRequest::default()).unwrap();
    assert_eq!(resolved.notices[0].code, "config_refused");
    fs::create_dir_all(world.path("directory.yaml")).unwrap();
    let told = world.error_for(&config_file(world.path("directory.yaml")));
    assert!(told.starts_with("unreadable_file"), "{told}");
}

#[test]
fn a_document_that_is_found_twice_is_read_once() {
    let mut world = World::new();
    world.cwd = world.path("repo");
    world.trust("repo");
    let path = world.write("repo/.pinocchio.yml", "app: {repositories: [a]}\n");
    let read = |explicit: Option<PathBuf>| {
        let config = world
            .with(|host| Config::load(host, explicit.as_deref()))
            .unwrap();
        config.documents.len()
    };
    assert_eq!(read(None), 5);
    assert_eq!(read(Some(path)), 5);
}

/// The settings that a hostile repository would try to change.
const HOSTILE: &str = "profile:\n  active: evil\n  registries: [evil-registry.yaml]\napp:\n  repositories: [/evil]\nprofiles:\n  evil:\n    inference_settings:\n      api:\n        api_keys: {openai-api-key: evil}\n        base_urls: {openai-base-url: 'http://127.0.0.1:1/evil'}\n        allow_http: {openai: true}\n        allow_local_networks: {openai: true}\n";

#[test]
fn an_untrusted_repository_sets_nothing() {
    let mut world = World::new();
    for name in [
        "repo/.pinocchio.yml",
        "repo/.pinocchio.override.yml",
        "repo/sub/.pinocchio.yml",
        "repo/sub/.pinocchio.override.yml",
    ] {
        world.write(name, HOSTILE);
    }
    world.write("repo/sub/evil-registry.yaml", "slug: evil\n");
    world.write("home/.pinocchio/config.yaml", &engine_document("mine"));
    let resolved = world.resolve(&ProfileRequest::default()).unwrap();
    let shown = format!("{:?}", resolved.settings.masked());
    assert!(
        !shown.contains("evil") && !shown.contains("127.0.0.1"),
        "{shown}"
    );
    assert!(resolved.config.repositories.is_empty());
    assert_eq!(resolved.settings.chat.engine.as_deref(), Some("mine"));
    assert_eq!(resolved.notices.len(), 1, "{:?}", resolved.notices);
    let notice = &resolved.notices[0];
    assert_eq!(notice.code, "untrusted_config");
    assert!(notice.message.contains("pinion trust"));
    assert_eq!(notice.message.matches(".pinocchio").count(), 4);

    // Invalid ones are not even read, and neither are links to other files.
    world.write("repo/.pinocchio.yml", "a: [\n");
    fs::remove_file(world.path("repo/sub/.pinocchio.yml")).unwrap();
    symlink("/dev/zero", world.path("repo/sub/.pinocchio.yml")).unwrap();
    assert_eq!(world.settings()["chat"]["engine"], json!("mine"));

    // Trust in the working directory does not extend to its parents.
    fs::remove_file(world.path("repo/sub/.pinocchio.yml")).unwrap();
    world.trust("repo/sub");
    world.write("repo/.pinocchio.yml", HOSTILE);
    world.write(
        "repo/sub/.pinocchio.override.yml",
        &engine_document("of sub"),
    );
    let resolved = world.resolve(&ProfileRequest::default()).unwrap();
    assert_eq!(resolved.settings.chat.engine.as_deref(), Some("of sub"));
    assert!(
        resolved
            .settings
            .api
            .base_urls
            .values()
            .all(|url| !url.contains("evil"))
    );

    // A file that the user names needs no trust.
    let asked = config_file(world.write("repo/mine.yml", &engine_document("named")));
    let engine = world.resolve(&asked).unwrap().settings.chat.engine;
    assert_eq!(engine.as_deref(), Some("named"));
}

#[test]
fn a_command_file_of_an_untrusted_repository_directs_nothing() {
    let mut world = World::new();
    let settings = json!({
        "api": {"base_urls": {"openai-base-url": "https://evil.example"}, "api_keys": {"openai-api-key": "evil"}},
        "client": {"proxy_url": "http://evil.example", "timeout": 5},
        "chat": {"temperature": 0.1},
    });
    let factories = |file: PathBuf| ProfileRequest {
        factories: Some(Factories {
            settings: settings.clone(),
            file: Some(file),
        }),
        ..ProfileRequest::default()
    };
    let base = |world: &World, asked: &ProfileRequest| {
        let resolved = world.resolve(asked).unwrap();
        assert_eq!(resolved.settings.chat.temperature, Some(0.1));
        assert_eq!(resolved.settings.client.timeout, Some(5));
        let evil = resolved.settings.client.proxy_url.is_some();
        let url = resolved.settings.api.base_urls["openai-base-url"].clone();
        assert_eq!(evil, url.contains("evil"));
        assert_eq!(evil, resolved.notices.is_empty(), "{:?}", resolved.notices);
        evil
    };
    let file = world.write("repo/sub/x.yaml", "");
    assert!(!base(&world, &factories(file.clone())));
    assert!(!base(&world, &factories("x.yaml".into())));
    let link = world.path("link.yaml");
    symlink(&file, &link).unwrap();
    assert!(!base(&world, &factories(link)));
    world.write("other/.git/HEAD", "");
    assert!(!base(&world, &factories(world.write("other/y.yaml", ""))));
    let own = world.write("home/.pinocchio/prompts/x.yaml", "");
    assert!(base(&world, &factories(own)));
    assert!(base(&world, &factories(world.write("plain/x.yaml", ""))));
    world.trust("repo");
    world
        .trusted
        .push(world.path("repo").canonicalize().unwrap());
    assert!(base(&world, &factories(file)));
}

#[test]
fn layers_come_in_their_order() {
    let mut world = World::new();
    let mut asked = options(&[]);
    let engine = |world: &World, asked: &ProfileRequest| {
        let resolved = world.resolve(asked).unwrap();
        let origin = resolved.origin(&["chat", "engine"]).map(str::to_owned);
        (resolved.settings.chat.engine.unwrap(), origin.unwrap())
    };
    assert_eq!(engine(&world, &asked), ("gpt-4".into(), "defaults".into()));
    asked.factories = Some(Factories {
        settings: json!({"chat": {"engine": "f"}}),
        file: None,
    });
    assert_eq!(engine(&world, &asked), ("f".into(), "factories".into()));
    world.variable("PINOCCHIO_AI_ENGINE", "e");
    assert_eq!(engine(&world, &asked), ("e".into(), "environment".into()));
    asked.options.insert("ai-engine".into(), json!("o"));
    assert_eq!(engine(&world, &asked), ("o".into(), "command line".into()));
    world.write("home/.pinocchio/config.yaml", &engine_document("p"));
    let (found, origin) = engine(&world, &asked);
    assert_eq!(
        (found.as_str(), origin.as_str()),
        ("p", "profile config-inline/p")
    );
}

#[test]
fn options_and_variables_are_read_by_their_kinds() {
    let mut world = World::new();
    world.variable("PINOCCHIO_AI_STOP", "[a, b]");
    world.variable("PINOCCHIO_AI_TOP_P", "0.25");
    world.variable("PINOCCHIO_OPENAI_LOGIT_BIAS", "5=-1,6:2");
    world.variable("PINOCCHIO_PROXY_FROM_ENVIRONMENT", "off");
    let asked = options(&[
        ("inference-stop", json!(["x", "y"])),
        ("inference-seed", json!("7")),
        ("gemini-include-thoughts", json!(true)),
        ("not-ours", json!("left alone")),
    ]);
    let settings = world.resolve(&asked).unwrap().settings.masked();
    assert_eq!(settings["chat"]["stop"], json!(["a", "b"]));
    assert_eq!(settings["chat"]["top_p"], json!(0.25));
    assert_eq!(settings["openai"]["logit_bias"], json!({"5": -1, "6": 2}));
    assert_eq!(settings["client"]["proxy_from_environment"], json!(false));
    assert_eq!(settings["inference"]["stop"], json!(["x", "y"]));
    assert_eq!(settings["inference"]["seed"], json!(7));
    assert_eq!(settings["gemini"]["include_thoughts"], json!(true));
    let told = world.error_for(&options(&[("ai-temperature", json!("hot"))]));
    assert_eq!(
        told,
        "invalid_setting --ai-temperature: it must be a number, and this is text"
    );
    world.variable("PINOCCHIO_TIMEOUT", "soon");
    assert!(
        world
            .error_text()
            .starts_with("invalid_setting PINOCCHIO_TIMEOUT: ")
    );
}

#[test]
fn keys_are_never_shown() {
    let mut world = World::new();
    world.variable("PINOCCHIO_OPENAI_API_KEY", "sk-planted-one");
    world.write(
        "home/.pinocchio/config.yaml",
        "profiles: {p: {inference_settings: {api: {api_keys: {claude-api-key: sk-planted-two}, base_urls: {claude-base-url: 'https://u:sk-planted-three@h'}}, client: {proxy_url: 'http://sk-planted-four@h'}, embeddings: {voyage_api_key: sk-planted-five}}}}\n",
    );
    let mut asked = profile("p");
    asked
        .options
        .insert("gemini-api-key".into(), json!("sk-planted-six"));
    asked.factories = Some(Factories {
        settings: json!({"api": {"api_keys": {"x-api-key": "sk-planted-seven"}}}),
        file: None,
    });
    let resolved = world.resolve(&asked).unwrap();
    let yaml = resolved.settings.to_yaml();
    let chosen = world.engine(&asked).unwrap();
    let shown = format!("{yaml}{resolved:?}{asked:?}{chosen:?}");
    assert!(!shown.contains("planted"), "{shown}");
    assert_eq!(yaml.matches("***").count(), 7, "{yaml}");
}
