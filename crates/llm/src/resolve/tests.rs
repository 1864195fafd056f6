//! Names and the models they stand for.

use std::collections::BTreeMap;
use std::fs;

use super::*;
use crate::{Environment, RegistryOptions};

const MOCK: &str = r#"{"providers":{"mock":{"baseUrl":"http://127.0.0.1:9","apiKey":"k","api":"anthropic-messages",
    "models":[{"id":"mock-1","name":"Mock One","reasoning":true},{"id":"mock-2"},{"id":"vendor/deep:free"}]}}}"#;

fn registry(models: &str, variables: &[&str]) -> Registry {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("models.json"), models).unwrap();
    let pairs = variables
        .iter()
        .map(|name| ((*name).to_owned(), "k".to_owned()));
    let environment = Environment::Fixed(pairs.collect::<BTreeMap<_, _>>());
    let options = RegistryOptions {
        environment,
        ..RegistryOptions::default()
    };
    let (registry, notices) = Registry::load(directory.path(), options);
    assert!(notices.is_empty(), "{notices:?}");
    registry
}

fn shown(resolved: &Resolved) -> String {
    let level = resolved
        .thinking
        .map(|level| format!(":{level}"))
        .unwrap_or_default();
    format!("{}/{}{level}", resolved.model.provider, resolved.model.id)
}

#[test]
fn names_stand_for_models() {
    let registry = registry(MOCK, &["ANTHROPIC_API_KEY"]);
    for (provider, pattern, expected) in [
        (Some("mock"), "mock-1", "mock/mock-1"),
        (Some("MOCK"), "Mock/MOCK-1:high", "mock/mock-1:high"),
        (None, "mock/mock-2", "mock/mock-2"),
        (None, "mock-2:low", "mock/mock-2:low"),
        (None, "mock one", "mock/mock-1"),
        // Ids with slashes and colons of their own.
        (None, "vendor/deep:free", "mock/vendor/deep:free"),
        (
            None,
            "mock/vendor/deep:free:max",
            "mock/vendor/deep:free:max",
        ),
        // The text before the slash is a provider, but the id belongs to a router.
        (None, "openai/gpt-5.4", "openai/gpt-5.4"),
        (
            None,
            "openrouter/openai/gpt-5.4",
            "openrouter/openai/gpt-5.4",
        ),
        (None, "moonshotai/kimi-k2.6", "moonshotai/kimi-k2.6"),
        // Several providers have it; the one with a key is meant.
        (None, "claude-opus-4-7", "anthropic/claude-opus-4-7"),
        (
            None,
            "claude-haiku-4-5-20251001",
            "anthropic/claude-haiku-4-5-20251001",
        ),
        // Partial names: aliases before dated ids, the highest first.
        (None, "haiku-4-5", "anthropic/claude-haiku-4-5"),
        (Some("anthropic"), "sonnet", "anthropic/claude-sonnet-5-5"),
        (None, "opus:xhigh", "anthropic/claude-opus-5-5:xhigh"),
        (None, "offline/demo", "offline/demo"),
        (None, "demo", "offline/demo"),
        (
            None,
            "offline/scenario:a:b.json",
            "offline/scenario:a:b.json",
        ),
    ] {
        let resolved = resolve_model(&registry, provider, pattern).unwrap();
        assert_eq!(shown(&resolved), expected, "{provider:?} {pattern}");
        assert_eq!(resolved.warning, None, "{pattern}");
    }
}

#[test]
fn the_provider_of_the_maker_is_preferred() {
    for (variables, pattern, expected) in [
        (&[][..], "sonnet:high", "anthropic/claude-sonnet-5-5:high"),
        (&[], "claude-opus-4-7", "anthropic/claude-opus-4-7"),
        (&[], "gpt-5.4", "openai/gpt-5.4"),
        (
            &[],
            "gemini-3.1-pro-preview",
            "google/gemini-3.1-pro-preview",
        ),
        (&[], "kimi-k2.6", "moonshotai/kimi-k2.6"),
        // A key for another provider that serves it decides.
        (
            &["OPENCODE_API_KEY"],
            "claude-opus-4-7",
            "opencode/claude-opus-4-7",
        ),
        (&["AZURE_OPENAI_API_KEY"], "gpt-5.4", "azure/gpt-5.4"),
        (
            &["OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "OPENCODE_API_KEY"],
            "gpt-5.4",
            "openai/gpt-5.4",
        ),
        // Credentials for an API that is not supported do not.
        (&["RADIUS_API_KEY"], "opus", "anthropic/claude-opus-5-5"),
        (
            &["AWS_PROFILE"],
            "opus",
            "amazon-bedrock/us.anthropic.claude-opus-5-5",
        ),
    ] {
        let registry = registry("{\"providers\":{}}", variables);
        let resolved = resolve_model(&registry, None, pattern).unwrap();
        assert_eq!(shown(&resolved), expected, "{variables:?} {pattern}");
    }
}

#[test]
fn a_partial_name_never_selects_an_unsupported_api() {
    let registry = registry("{\"providers\":{}}", &[]);
    for candidate in registry.candidates() {
        let words = candidate.id.split(['/', '-', ':', '.']);
        for pattern in words.chain([candidate.id]).filter(|word| word.len() > 2) {
            let Ok(resolved) = resolve_model(&registry, None, pattern) else {
                continue;
            };
            let wanted = pattern.to_lowercase();
            let another = || {
                registry.candidates().any(|other| {
                    other.is_supported()
                        && !other.is_offline()
                        && (other.id.to_lowercase().contains(&wanted)
                            || other.name.to_lowercase().contains(&wanted))
                })
            };
            let supported = crate::wire::SUPPORTED_APIS.contains(&&*resolved.model.api)
                || resolved.model.provider == "offline";
            assert!(supported || !another(), "{pattern}: {}", shown(&resolved));
        }
    }
}

#[test]
fn a_hint_suggests_nothing_that_cannot_work() {
    let registry = registry("{\"providers\":{}}", &[]);
    for (provider, needed) in [("radius", "openrouter with OPENROUTER_API_KEY")] {
        let model = registry.candidates_of(provider).next().unwrap().to_model();
        let error = registry.check_credentials(&model).unwrap_err().to_string();
        assert!(error.contains(needed), "{error}");
        assert!(error.contains("does not support"), "{error}");
        for useless in ["AWS_", "auth.json", "RADIUS_"] {
            assert!(!error.contains(useless), "{error}");
        }
    }
    let model = resolve_model(&registry, None, "sonnet").unwrap().model;
    let error = registry.check_credentials(&model).unwrap_err().to_string();
    assert!(error.contains("Set ANTHROPIC_API_KEY"), "{error}");
}

#[test]
fn a_built_in_provider_takes_ids_the_catalogue_lacks() {
    let registry = registry(MOCK, &[]);
    let resolved = resolve_model(&registry, None, "anthropic/claude-opus-99:high").unwrap();
    assert_eq!(shown(&resolved), "anthropic/claude-opus-99:high");
    assert_eq!(resolved.model.name, "claude-opus-99");
    assert_eq!(resolved.model.api, "anthropic-messages");
    assert_eq!(
        resolved.warning.as_deref(),
        Some(
            "Model \"claude-opus-99\" not found for provider \"anthropic\". Using custom model id."
        )
    );
}

#[test]
fn unknown_names_are_refused_with_the_nearest_one() {
    let registry = registry(MOCK, &[]);
    for (provider, pattern, message) in [
        (
            Some("mock"),
            "absent-model",
            "Model \"mock/absent-model\" not found. Use --list-models to see available models.",
        ),
        (
            Some("mock"),
            "mokc-1",
            "Model \"mock/mokc-1\" not found. Did you mean \"mock/mock-1\"? Use --list-models to see available models.",
        ),
        (
            None,
            "mock-1:loud",
            "Model \"mock-1:loud\" not found. Use --list-models to see available models.",
        ),
        (
            None,
            "zzzzzz",
            "Model \"zzzzzz\" not found. Use --list-models to see available models.",
        ),
        (
            Some("antrhopic"),
            "opus",
            "Unknown provider \"antrhopic\". Did you mean \"anthropic\"? Use --list-models to see available providers/models.",
        ),
        (
            Some("nobody-at-all"),
            "x",
            "Unknown provider \"nobody-at-all\". Use --list-models to see available providers/models.",
        ),
        (
            None,
            "",
            "Model \"\" not found. Use --list-models to see available models.",
        ),
        (
            None,
            "offline/dmo",
            "Model \"offline/dmo\" not found. Did you mean \"offline/demo\"? Use --list-models to see available models.",
        ),
    ] {
        let error = resolve_model(&registry, provider, pattern).unwrap_err();
        assert_eq!(error.to_string(), message, "{provider:?} {pattern}");
    }
}

#[test]
fn a_scope_is_globs_and_names_of_available_models() {
    let registry = registry(MOCK, &["ANTHROPIC_API_KEY"]);
    let names = |patterns: &[&str]| {
        let (models, warnings) = scope(&registry, patterns);
        let names = models.iter().map(|scoped| {
            let level = scoped
                .thinking
                .map(|level| format!(":{level}"))
                .unwrap_or_default();
            format!("{}/{}{level}", scoped.model.provider, scoped.model.id)
        });
        (names.collect::<Vec<_>>(), warnings)
    };
    assert_eq!(
        names(&["MOCK/*:low", "mock-1", "*haiku*5-5"]).0,
        [
            "mock/mock-1:low",
            "mock/mock-2:low",
            "anthropic/claude-haiku-5-5"
        ]
    );
    assert_eq!(
        names(&["mock-[2]", "vendor/*"]).0,
        ["mock/mock-2", "mock/vendor/deep:free"]
    );
    let (found, warnings) = names(&["mock-1:loud", "gpt-5.4", "x*y", "["]);
    assert_eq!(found, ["mock/mock-1"]);
    assert_eq!(
        warnings,
        [
            "Invalid thinking level \"loud\" in pattern \"mock-1:loud\". Using default instead.",
            "No models match pattern \"gpt-5.4\"",
            "No models match pattern \"x*y\"",
            "No models match pattern \"[\"",
        ]
    );
}

#[test]
fn the_first_model_follows_the_order_of_sources() {
    let registry = registry(MOCK, &["ANTHROPIC_API_KEY"]);
    let begin = |options: InitialOptions<'_>| {
        let initial = initial_model(&registry, &options).unwrap();
        let name = format!("{}/{}", initial.model.provider, initial.model.id);
        (name, initial.thinking, initial.warning)
    };
    let (scoped, _) = scope(&registry, &["mock-2:high", "mock-1"]);
    let chosen = resolve_model(&registry, None, "opus:low").unwrap();
    let everything = InitialOptions {
        chosen: Some(&chosen),
        scope: &scoped,
        continuing: false,
        session: Some(("mock", "mock-1")),
        saved: Some(("anthropic", "claude-sonnet-5")),
    };
    assert_eq!(begin(everything).0, "anthropic/claude-opus-5-5");
    assert_eq!(begin(everything).1, Some(ThinkingLevel::Low));
    let unnamed = InitialOptions {
        chosen: None,
        ..everything
    };
    assert_eq!(
        begin(unnamed),
        ("mock/mock-2".into(), Some(ThinkingLevel::High), None)
    );
    let saved_in_scope = InitialOptions {
        saved: Some(("mock", "mock-1")),
        ..unnamed
    };
    assert_eq!(begin(saved_in_scope).0, "mock/mock-1");
    let continuing = InitialOptions {
        continuing: true,
        ..unnamed
    };
    assert_eq!(begin(continuing).0, "mock/mock-1");
    let keyless = InitialOptions {
        session: Some(("openai", "gpt-5.4")),
        ..continuing
    };
    assert_eq!(
        begin(keyless),
        (
            "anthropic/claude-sonnet-5".into(),
            None,
            Some("Could not restore model openai/gpt-5.4 (no API key). Using anthropic/claude-sonnet-5.".into())
        )
    );
    assert_eq!(
        begin(InitialOptions::default()).0,
        "anthropic/claude-opus-4-7"
    );
}

#[test]
fn without_keys_there_is_no_first_model_and_unsupported_apis_do_not_count() {
    let empty = registry("{\"providers\":{}}", &["RADIUS_API_KEY"]);
    assert!(initial_model(&empty, &InitialOptions::default()).is_none());
    empty.set_include_offline(true);
    let initial = initial_model(&empty, &InitialOptions::default()).unwrap();
    assert_eq!(initial.model.provider, "offline");
}
