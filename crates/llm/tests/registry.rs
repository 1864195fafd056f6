//! The registry over files a user might have.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use pinion_llm::{
    CredentialError, Environment, Registry, RegistryOptions, Request, RequestOptions, build_request,
};
use pinion_message::{Model, Secret};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

struct Home {
    directory: TempDir,
    variables: BTreeMap<String, String>,
}

impl Home {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            variables: BTreeMap::new(),
        }
    }

    fn file(self, name: &str, text: &str) -> Self {
        let path = self.directory.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The registry and the notices, without the path of the directory.
    fn load(&self) -> (Registry, Vec<String>) {
        let environment = Environment::Fixed(self.variables.clone());
        let options = RegistryOptions {
            environment,
            ..RegistryOptions::default()
        };
        let (registry, notices) = Registry::load(self.directory.path(), options);
        let directory = format!("{}/", self.directory.path().display());
        (
            registry,
            notices
                .iter()
                .map(|notice| notice.to_string().replace(&directory, ""))
                .collect(),
        )
    }

    fn quiet(&self) -> Registry {
        let (registry, notices) = self.load();
        assert!(notices.is_empty(), "{notices:?}");
        registry
    }
}

fn names(models: &[std::sync::Arc<Model>]) -> Vec<String> {
    models
        .iter()
        .map(|model| format!("{}/{}", model.provider, model.id))
        .collect()
}

async fn key(registry: &Registry, model: &Model) -> String {
    registry
        .api_key(model)
        .await
        .unwrap()
        .unwrap()
        .expose_secret()
        .to_owned()
}

const MOCK: &str = r#"{
  "providers": { // comments are fine
    "mock": {
      "baseUrl": "http://127.0.0.1:9999", "apiKey": "mock-key", "api": "anthropic-messages",
      "models": [
        {"id": "mock-1", "name": "Mock One", "reasoning": true, "input": ["text", "image"],
         "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75},
         "contextWindow": 200000, "maxTokens": 8192},
        {"id": "mock-2"},
      ],
    },
  },
}"#;

#[test]
fn custom_models_have_the_members_pi_prints_in_its_order() {
    let registry = Home::new().file("models.json", MOCK).quiet();
    let text = serde_json::to_string(&*registry.find("mock", "mock-1").unwrap()).unwrap();
    let whole_numbers = text.replace(".0,", ",").replace(".0}", "}");
    assert_eq!(
        whole_numbers,
        r#"{"id":"mock-1","name":"Mock One","api":"anthropic-messages","provider":"mock","baseUrl":"http://127.0.0.1:9999","reasoning":true,"input":["text","image"],"cost":{"input":3,"output":15,"cacheRead":0.3,"cacheWrite":3.75},"contextWindow":200000,"maxTokens":8192}"#
    );
    let plain = serde_json::to_value(&*registry.find("mock", "mock-2").unwrap()).unwrap();
    assert_eq!(
        plain,
        json!({"id":"mock-2","name":"mock-2","api":"anthropic-messages","provider":"mock",
            "baseUrl":"http://127.0.0.1:9999","reasoning":false,"input":["text"],
            "cost":{"input":0.0,"output":0.0,"cacheRead":0.0,"cacheWrite":0.0},
            "contextWindow":128_000,"maxTokens":16_384})
    );
}

#[test]
fn available_models_are_those_with_a_credential_built_in_ones_first() {
    let home = Home::new()
        .file("models.json", MOCK)
        .variable("XAI_API_KEY", "x");
    let registry = home.quiet();
    let available = names(&registry.available());
    assert!(available.len() > 2, "{available:?}");
    let (built_in, custom) = available.split_at(available.len() - 2);
    assert!(
        built_in.iter().all(|name| name.starts_with("xai/")),
        "{built_in:?}"
    );
    assert_eq!(custom, ["mock/mock-1", "mock/mock-2"]);
    assert!(registry.find("openai", "gpt-5.4").is_some());
    assert!(registry.find("openai", "GPT-5.4").is_none());
    assert!(registry.all().len() > 1500);
}

#[test]
fn the_offline_model_exists_but_is_listed_only_when_asked_for() {
    let registry = Home::new().quiet();
    assert!(registry.available().is_empty());
    assert!(registry.find("offline", "demo").is_some());
    assert!(registry.find("offline", "scenario:x.json").is_some());
    assert!(registry.has_credentials("offline"));
    registry.set_include_offline(true);
    assert_eq!(names(&registry.available()), ["offline/demo"]);
    let small = r#"{"providers":{"offline":{"modelOverrides":{"demo":{"contextWindow":5}}}}}"#;
    let registry = Home::new().file("models.json", small).quiet();
    assert_eq!(registry.find("offline", "demo").unwrap().context_window, 5);
}

#[test]
fn built_in_models_can_be_changed_and_added_to() {
    let registry = Home::new()
        .file(
            "models.json",
            r#"{"providers":{
                "anthropic":{"baseUrl":"http://proxy","compat":{"supportsTemperature":true},
                  "modelOverrides":{
                    "claude-opus-4-7":{"name":"Big","cost":{"input":1},"contextWindow":5,"thinkingLevelMap":{"low":null},
                        "compat":{"extra":{"a":1}}},
                    "no-such-model":{"name":"ignored"}},
                  "models":[{"id":"claude-sonnet-5"},{"id":"mine"}]},
                "openrouter":{"compat":{"openRouterRouting":{"only":["x"]}},
                  "models":[{"id":"mine","compat":{"openRouterRouting":{"order":["y"]},"supportsStore":true}}]}}}"#,
        )
        .variable("ANTHROPIC_API_KEY", "k")
        .quiet();
    let plain = Home::new().quiet();

    let (before, after) = (
        plain.find("anthropic", "claude-opus-4-7").unwrap(),
        registry.find("anthropic", "claude-opus-4-7").unwrap(),
    );
    assert_eq!(
        (after.name.as_str(), after.base_url.as_str()),
        ("Big", "http://proxy")
    );
    assert_eq!(
        (after.cost.input, after.cost.output),
        (1.0, before.cost.output)
    );
    assert_eq!(
        (after.context_window, after.max_tokens),
        (5, before.max_tokens)
    );
    assert!(
        !after
            .thinking_levels()
            .contains(&pinion_message::ThinkingLevel::Low)
    );
    assert!(
        after
            .thinking_levels()
            .contains(&pinion_message::ThinkingLevel::Xhigh)
    );
    let compat = after.compat.as_ref().unwrap();
    assert_eq!(compat["supportsTemperature"], true);
    assert_eq!(compat["extra"], json!({"a": 1}));
    assert_eq!(
        compat["forceAdaptiveThinking"],
        before.compat.as_ref().unwrap()["forceAdaptiveThinking"]
    );

    // A model of the file replaces the built-in one at its position; a new one comes last.
    let replaced = registry.find("anthropic", "claude-sonnet-5").unwrap();
    assert_eq!(
        (replaced.reasoning, replaced.api.as_str()),
        (false, "anthropic-messages")
    );
    let ids = names(&registry.available());
    let builtin_ids = {
        let plain = Home::new().variable("ANTHROPIC_API_KEY", "k").quiet();
        names(&plain.available())
    };
    assert_eq!(ids[..ids.len() - 1], builtin_ids);
    assert_eq!(ids.last().unwrap(), "anthropic/mine");

    let routed = registry.find("openrouter", "mine").unwrap();
    assert_eq!(
        Value::Object(routed.compat.clone().unwrap()),
        json!({"openRouterRouting":{"only":["x"],"order":["y"]},"supportsStore":true})
    );
}

#[test]
fn an_invalid_provider_is_ignored_and_its_position_reported() {
    let cases = [
        (
            r#"{"models":[{"id":"m"}],"baseUrl":"u","api":"a"}"#,
            "\"apiKey\" is required",
        ),
        (
            r#"{"models":[{"id":"m"}],"apiKey":"k","api":"a"}"#,
            "\"baseUrl\" is required",
        ),
        (
            r#"{"models":[{"id":"m"}],"apiKey":"k","baseUrl":"u"}"#,
            "\"api\" is required",
        ),
        (
            r#"{"models":[{"id":""}],"apiKey":"k","baseUrl":"u","api":"a"}"#,
            "must not be empty",
        ),
        (
            r#"{"models":[{}],"apiKey":"k","baseUrl":"u","api":"a"}"#,
            "\"id\" is missing",
        ),
        (
            r#"{"models":[{"id":"m","contextWindow":0}],"apiKey":"k","baseUrl":"u","api":"a"}"#,
            "greater than zero",
        ),
        (r#"{"apiKey":"k"}"#, "needs \"models\""),
        (r#"{"baseUrl":7}"#, "expected text, found the number 7"),
        ("[]", "expected"),
    ];
    for (entry, words) in cases {
        let text = format!(
            "{{\n \"providers\": {{\n  \"bad\": {entry},\n  \"good\": {{\"baseUrl\":\"u\",\"apiKey\":\"k\",\"api\":\"a\",\"models\":[{{\"id\":\"m\"}}]}}\n }}\n}}"
        );
        let (registry, notices) = Home::new().file("models.json", &text).load();
        assert!(registry.find("good", "m").is_some(), "{entry}");
        assert!(registry.find("bad", "m").is_none(), "{entry}");
        let [notice] = notices.as_slice() else {
            panic!("{entry}: {notices:?}")
        };
        assert!(
            notice.starts_with("models.json: line 3, column "),
            "{notice}"
        );
        assert!(notice.contains(words), "{entry}: {notice}");
        assert!(
            notice.ends_with("; provider \"bad\" is ignored"),
            "{notice}"
        );
    }
}

#[test]
fn a_file_that_is_not_json_is_reported_with_its_position_and_built_ins_stay() {
    let (registry, notices) = Home::new()
        .file(
            "models.json",
            "{\"providers\": {\n  \"a\": {\"baseUrl\": }\n}}",
        )
        .file("auth.json", "[1]")
        .load();
    assert!(registry.find("anthropic", "claude-opus-4-7").is_some());
    assert_eq!(
        notices,
        [
            "models.json: line 2, column 20: a value is expected here; the file is ignored",
            "auth.json: line 1, column 1: expected an object, found a list; the file is ignored",
        ]
    );
}

#[tokio::test]
async fn keys_come_from_the_command_line_then_auth_then_environment_then_models() {
    let models = r#"{"providers":{"openai":{"apiKey":"from-models"}}}"#;
    let auth = r#"{"openai":{"type":"api_key","key":"from-auth"}}"#;
    let home = Home::new().file("models.json", models);
    let registry = home.quiet();
    let model = registry.find("openai", "gpt-5.4").unwrap();
    assert_eq!(key(&registry, &model).await, "from-models");
    let home = home.variable("OPENAI_API_KEY", "from-environment");
    assert_eq!(key(&home.quiet(), &model).await, "from-environment");
    let home = home.file("auth.json", auth);
    let registry = home.quiet();
    assert_eq!(key(&registry, &model).await, "from-auth");
    registry.set_runtime_key("openai", Secret::from("from-command-line"));
    assert_eq!(key(&registry, &model).await, "from-command-line");
}

#[tokio::test]
async fn configured_values_may_be_commands_or_names_of_variables() {
    let models = r#"{"providers":{"mock":{"baseUrl":"u","api":"a","apiKey":"!printf 'from command\n'","authHeader":true,
        "headers":{"X-Name":"SET_VARIABLE","X-Literal":"UNSET_VARIABLE","X-Model":"provider"},
        "models":[{"id":"m","headers":{"X-Model":"!echo model"}}]}}}"#;
    let home = Home::new()
        .file("models.json", models)
        .variable("SET_VARIABLE", "value");
    let registry = home.quiet();
    let model = registry.find("mock", "m").unwrap();
    assert_eq!(model.headers, None);
    let mut options = RequestOptions::default();
    options
        .headers
        .insert("X-Literal".into(), "of the request".into());
    registry
        .authorize(&model)
        .await
        .unwrap()
        .apply(&mut options);
    assert_eq!(options.api_key.unwrap().expose_secret(), "from command");
    let headers: Vec<_> = options
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    assert_eq!(
        headers,
        [
            "Authorization: Bearer from command",
            "X-Literal: of the request",
            "X-Model: model",
            "X-Name: value"
        ]
    );
}

/// The address and the body of a request to the first model of `provider` with the API `api`.
async fn sent(registry: &Registry, provider: &str, api: &str) -> Result<(String, Value), String> {
    let models = registry.all();
    let model = models
        .iter()
        .find(|model| model.provider == provider && model.api == api);
    let model = Arc::clone(model.unwrap());
    let mut options = RequestOptions::default();
    let authorization = registry.authorize(&model).await;
    authorization
        .map_err(|error| error.to_string())?
        .apply(&mut options);
    let request = Request {
        model,
        system_prompt: None,
        messages: Vec::new(),
        tools: Arc::new([]),
        options,
        cancel: CancellationToken::new(),
    };
    let built = build_request(&request)?;
    Ok((built.url, serde_json::from_slice(&built.body).unwrap()))
}

#[tokio::test]
async fn variables_of_an_entry_reach_the_addresses_of_cloudflare() {
    let gateway = json!({"CLOUDFLARE_ACCOUNT_ID": "of-entry", "CLOUDFLARE_GATEWAY_ID": "gate"});
    let auth = json!({
        // Beside a key, and instead of one.
        "cloudflare-workers-ai": {"type": "api_key", "key": "k", "env": {"CLOUDFLARE_ACCOUNT_ID": "of-entry"}},
        "cloudflare-ai-gateway": {"type": "api_key", "env": gateway},
    });
    let home = Home::new()
        .file("auth.json", &auth.to_string())
        .variable("CLOUDFLARE_API_KEY", "k")
        .variable("CLOUDFLARE_ACCOUNT_ID", "of-environment");
    let registry = home.quiet();
    let workers = sent(&registry, "cloudflare-workers-ai", "openai-completions").await;
    assert_eq!(
        workers.unwrap().0,
        "https://api.cloudflare.com/client/v4/accounts/of-entry/ai/v1/chat/completions"
    );
    for api in [
        "anthropic-messages",
        "openai-responses",
        "openai-completions",
    ] {
        let (url, _) = sent(&registry, "cloudflare-ai-gateway", api).await.unwrap();
        let begin = "https://gateway.ai.cloudflare.com/v1/of-entry/gate/";
        assert!(url.starts_with(begin), "{api}: {url}");
    }
    // A key of the command line replaces the entry's key, not its variables.
    registry.set_runtime_key("cloudflare-workers-ai", Secret::from("from-command-line"));
    let workers = sent(&registry, "cloudflare-workers-ai", "openai-completions").await;
    assert!(workers.unwrap().0.contains("/of-entry/"));
}

#[tokio::test]
async fn without_an_entry_addresses_come_from_the_environment() {
    let home = Home::new()
        .variable("CLOUDFLARE_API_KEY", "k")
        .variable("CLOUDFLARE_ACCOUNT_ID", "of-environment");
    let registry = home.quiet();
    let workers = sent(&registry, "cloudflare-workers-ai", "openai-completions").await;
    assert!(workers.unwrap().0.contains("/of-environment/"));
    let gateway = sent(&registry, "cloudflare-ai-gateway", "openai-completions").await;
    let error = gateway.unwrap_err();
    for words in [
        "CLOUDFLARE_GATEWAY_ID",
        "cloudflare-ai-gateway",
        "auth.json",
    ] {
        assert!(error.contains(words), "{words} is missing in: {error}");
    }
    // An empty variable of an entry counts as absent.
    let auth = r#"{"cloudflare-workers-ai":{"type":"api_key","key":"k","env":{"CLOUDFLARE_ACCOUNT_ID":""}}}"#;
    let registry = home.file("auth.json", auth).quiet();
    let workers = sent(&registry, "cloudflare-workers-ai", "openai-completions").await;
    assert!(workers.unwrap().0.contains("/of-environment/"));
}

#[tokio::test]
async fn variables_of_an_entry_reach_the_address_and_the_deployment_of_azure() {
    let api = "azure-openai-responses";
    let model = {
        let models = Home::new().quiet().all();
        let azure = |model: &&Arc<Model>| model.provider == "azure" && model.api == api;
        models.iter().find(azure).unwrap().id.clone()
    };
    let entry = |env: Value| json!({"azure": {"type": "api_key", "env": env}}).to_string();
    let env = json!({"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_RESOURCE_NAME": "mine",
        "AZURE_OPENAI_API_VERSION": "preview",
        "AZURE_OPENAI_DEPLOYMENT_NAME_MAP": format!("{model}=deployed")});
    let home = Home::new().file("auth.json", &entry(env));
    let (url, body) = sent(&home.quiet(), "azure", api).await.unwrap();
    assert_eq!(
        url,
        "https://mine.openai.azure.com/openai/v1/responses?api-version=preview"
    );
    assert_eq!(body["model"], "deployed");

    let base = "AZURE_OPENAI_BASE_URL";
    let env = json!({"AZURE_OPENAI_API_KEY": "k", base: "https://of-entry.openai.azure.com"});
    let home = Home::new()
        .file("auth.json", &entry(env))
        .variable(base, "https://of-environment.openai.azure.com");
    let (url, body) = sent(&home.quiet(), "azure", api).await.unwrap();
    assert!(url.starts_with("https://of-entry."), "{url}");
    assert_eq!(body["model"], model.as_str());

    let home = Home::new()
        .variable("AZURE_OPENAI_API_KEY", "k")
        .variable(base, "https://of-environment.openai.azure.com");
    let (url, _) = sent(&home.quiet(), "azure", api).await.unwrap();
    assert!(url.starts_with("https://of-environment."), "{url}");
    let registry = Home::new().variable("AZURE_OPENAI_API_KEY", "k").quiet();
    let error = sent(&registry, "azure", api).await.unwrap_err();
    assert!(
        error.contains(base) && error.contains("auth.json"),
        "{error}"
    );
}

#[tokio::test]
async fn variables_of_an_entry_belong_to_its_provider_alone_and_reach_its_headers() {
    let auth = r#"{"openai":{"type":"api_key","key":"MY_KEY","env":{"MY_KEY":"key-of-entry","TEAM":"of-entry"}}}"#;
    let models = r#"{"providers":{"openai":{"headers":{"X-Team":"TEAM"}},"groq":{"headers":{"X-Team":"TEAM"}}}}"#;
    let home = Home::new()
        .file("auth.json", auth)
        .file("models.json", models)
        .variable("GROQ_API_KEY", "k")
        .variable("TEAM", "of-environment");
    let registry = home.quiet();
    for (provider, expected) in [("openai", "of-entry"), ("groq", "of-environment")] {
        let models = registry.all();
        let model = models.iter().find(|model| model.provider == provider);
        let authorization = registry.authorize(model.unwrap()).await.unwrap();
        assert_eq!(authorization.headers["X-Team"].expose_secret(), expected);
    }
    let known = registry.known_keys();
    let masked = |key: &Secret| key.expose_secret() == "key-of-entry";
    assert!(known.iter().any(masked), "the key must be masked");
}

#[tokio::test]
async fn asking_whether_there_is_a_key_runs_no_command() {
    let home = Home::new();
    let mark = home.directory.path().join("ran");
    let auth =
        json!({"openai":{"type":"api_key","key":format!("!touch '{}'; false", mark.display())}});
    let home = home.file("auth.json", &auth.to_string());
    let registry = home.quiet();
    let model = registry.find("openai", "gpt-5.4").unwrap();
    assert!(registry.has_credentials("openai"));
    assert!(registry.check_credentials(&model).is_ok());
    assert!(!registry.available().is_empty());
    assert!(!mark.exists());
    let error = registry.api_key(&model).await.unwrap_err();
    assert!(mark.exists());
    assert_eq!(error.code(), "key_command_failed");
}

#[tokio::test]
async fn a_missing_key_names_the_variable_to_set() {
    let home = Home::new();
    let registry = home.quiet();
    for (provider, id, variable) in [
        (
            "anthropic",
            "claude-opus-4-7",
            "Set ANTHROPIC_API_KEY (or ANTHROPIC_OAUTH_TOKEN) in the environment",
        ),
        (
            "meta",
            "muse-spark-1.3",
            "Set META_API_KEY in the environment",
        ),
        (
            "huggingface",
            "moonshotai/Kimi-K2.6",
            "Set HF_TOKEN in the environment",
        ),
    ] {
        let model = registry.find(provider, id).unwrap();
        let error = registry.api_key(&model).await.unwrap_err();
        let words = error.to_string();
        assert!(
            words.starts_with(&format!("No API key found for {provider}.\n")),
            "{words}"
        );
        assert!(words.contains(variable), "{words}");
        assert_eq!(registry.check_credentials(&model), Err(error));
    }
    let offline = registry.find("offline", "demo").unwrap();
    assert!(registry.api_key(&offline).await.unwrap().is_none());
}

#[tokio::test]
async fn a_stored_login_owns_its_provider() {
    let later = pinion_message::now_millis() + 60_000;
    let auth = json!({"anthropic":{"type":"oauth","access":"token","refresh":"r","expires":later},
        "github-copilot":{"type":"oauth","access":"old","refresh":"r","expires":1},
        "openai":{"type":"oauth","access":"old","refresh":"planted-refresh","expires":1}});
    let home = Home::new().file("auth.json", &auth.to_string());
    let registry = home.quiet();
    // A login that pinion does not renew is used until it expires.
    let model = registry.find("anthropic", "claude-opus-4-7").unwrap();
    assert_eq!(key(&registry, &model).await, "token");
    let models = registry.all();
    let copilot = models
        .iter()
        .find(|model| model.provider == "github-copilot")
        .unwrap();
    assert!(!registry.has_credentials("github-copilot"));
    let error = registry.api_key(copilot).await.unwrap_err();
    assert!(matches!(error, CredentialError::Expired { .. }), "{error}");
    assert!(
        error.to_string().contains("COPILOT_GITHUB_TOKEN"),
        "{error}"
    );
    assert_eq!(registry.check_credentials(copilot).unwrap_err(), error);

    // One that pinion renews is available, and no other source is asked when the renewal fails.
    let models = r#"{"providers":{"openai":{"apiKey":"from-models"}}}"#;
    let home = home
        .variable("OPENAI_API_KEY", "from-environment")
        .file("models.json", models);
    let registry = home.quiet();
    let model = registry.find("openai", "gpt-5.4").unwrap();
    assert!(registry.has_credentials("openai"));
    assert!(registry.check_credentials(&model).is_ok());
    let error = registry.api_key(&model).await.unwrap_err();
    assert_eq!(error.code(), "login_not_renewed");
    let words = error.to_string();
    assert!(
        words.starts_with("OAuth refresh failed for openai: "),
        "{words}"
    );
    assert!(
        words.contains("pinion login openai") && !words.contains("planted"),
        "{words}"
    );
    let after = fs::read_to_string(home.directory.path().join("auth.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&after).unwrap(),
        auth,
        "nothing is cleared"
    );
}

#[tokio::test]
async fn an_entry_that_is_not_understood_owns_its_provider_too() {
    for entry in [
        r#"{"type":"later"}"#,
        r#"{"key":"k"}"#,
        r#"{"type":"api_key","key":7}"#,
        "3",
    ] {
        let home = Home::new()
            .file("auth.json", &format!(r#"{{"openai":{entry}}}"#))
            .variable("OPENAI_API_KEY", "from-environment");
        let (registry, notices) = home.load();
        let model = registry.find("openai", "gpt-5.4").unwrap();
        let error = registry.api_key(&model).await.unwrap_err().to_string();
        assert!(error.contains("Repair it, or remove the entry"), "{error}");
        assert_eq!(notices.is_empty(), entry.contains("later"), "{notices:?}");
        for notice in notices {
            assert!(
                notice.contains(r#"an entry is {"type":"api_key""#),
                "{notice}"
            );
        }
    }
}

#[tokio::test]
async fn env_of_an_entry_wins_over_the_environment_for_its_provider() {
    let auth = json!({
        "openai": {"type": "api_key", "env": {"OPENAI_API_KEY": "of-entry"}},
        "mistral": {"type": "api_key", "key": "NAMED", "env": {"NAMED": "named-in-entry"}},
        "groq": {"type": "api_key"},
    });
    let home = Home::new()
        .file("auth.json", &auth.to_string())
        .variable("OPENAI_API_KEY", "from-environment")
        .variable("MISTRAL_API_KEY", "from-environment");
    let registry = home.quiet();
    let first = |provider: &str| {
        let all = registry.all();
        all.into_iter()
            .find(|model| model.provider == provider)
            .unwrap()
    };
    assert_eq!(key(&registry, &first("openai")).await, "of-entry");
    assert_eq!(key(&registry, &first("mistral")).await, "named-in-entry");
    let masked: Vec<_> = registry.known_keys();
    assert!(masked.iter().any(|key| key.expose_secret() == "of-entry"));
    let error = registry.api_key(&first("groq")).await.unwrap_err();
    assert!(
        error.to_string().contains("has neither \"key\" nor"),
        "{error}"
    );
}

#[test]
fn a_hint_does_not_suggest_what_cannot_work() {
    let home = Home::new().file(
        "auth.json",
        r#"{"openai-codex":{"type":"api_key","key":"k"}}"#,
    );
    let registry = home.quiet();
    for (provider, part) in [
        ("radius", "pinion does not support the API of"),
        ("openai-codex", "takes logins only"),
        ("amazon-bedrock", "AWS_BEARER_TOKEN_BEDROCK"),
        ("google-vertex", "GOOGLE_CLOUD_PROJECT"),
        ("openrouter", "pinion login openrouter"),
    ] {
        let all = registry.all();
        let model = all.iter().find(|model| model.provider == provider).unwrap();
        let error = registry.check_credentials(model).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[tokio::test]
async fn a_gateway_token_of_anthropic_is_a_bearer_header() {
    let home = Home::new()
        .variable("ANTHROPIC_AUTH_TOKEN", "gateway-token")
        .variable("ANTHROPIC_FEDERATION_RULE_ID", "r");
    let registry = home.quiet();
    assert!(registry.has_credentials("anthropic"));
    let model = registry.find("anthropic", "claude-opus-4-7").unwrap();
    let authorization = registry.authorize(&model).await.unwrap();
    assert!(authorization.api_key.is_none());
    let bearer = authorization.headers["Authorization"].expose_secret();
    assert_eq!(bearer, "Bearer gateway-token");
    let masked = authorization
        .all_secrets()
        .any(|it| it.expose_secret() == "gateway-token");
    assert!(
        masked
            && registry
                .known_keys()
                .iter()
                .any(|it| it.expose_secret() == "gateway-token")
    );
}

#[test]
fn a_pipe_in_place_of_a_file_does_not_stop_the_start() {
    let home = Home::new();
    for name in ["models.json", "auth.json"] {
        let path = home.directory.path().join(name);
        let made = std::process::Command::new("mkfifo")
            .args(["-m", "600"])
            .arg(path)
            .status();
        assert!(made.unwrap().success());
    }
    let (_, notices) = home.load();
    assert_eq!(notices.len(), 2, "{notices:?}");
    for notice in notices {
        assert!(notice.contains("is a FIFO, not a regular file"), "{notice}");
    }
}

#[test]
fn nothing_that_can_be_printed_holds_a_key() {
    let models = r#"{"providers":{"mock":{"baseUrl":"u","api":"a","apiKey":"sk-planted-1","headers":{"X":"sk-planted-2"},
        "models":[{"id":"m","headers":{"Y":"sk-planted-3"}}]}}}"#;
    let auth = r#"{"openai":{"type":"api_key","key":"sk-planted-4"},"x":{"type":"oauth","access":"sk-planted-5","expires":9}}"#;
    let home = Home::new()
        .file("models.json", models)
        .file("auth.json", auth);
    let registry = home.quiet();
    registry.set_runtime_key("mock", Secret::from("sk-planted-6"));
    let mut printed = format!("{registry:?}");
    for model in registry.all() {
        printed.push_str(&serde_json::to_string(&*model).unwrap());
    }
    assert!(!printed.contains("sk-planted"));
}

#[tokio::test]
async fn configured_values_may_contain_variables() {
    let home = Home::new().variable("NAME", "value");
    let registry = home.quiet();
    for (configured, expected) in [
        ("$NAME", "value"),
        ("${NAME}", "value"),
        ("key-${NAME}-$NAME", "key-value-value"),
        ("a$NAMED", "a$NAMED"),
        ("${NAME", "${NAME"),
        ("$$NAME", "$NAME"),
        ("$!echo", "!echo"),
        ("a$", "a$"),
    ] {
        let config = json!({
            "baseUrl": "u", "api": "a", "apiKey": configured, "models": [{"id": "m"}],
        });
        let registry = registry.with_provider("mock", &config).unwrap();
        let model = registry.find("mock", "m").unwrap();
        assert_eq!(key(&registry, &model).await, expected, "{configured}");
    }
}

#[test]
fn a_key_that_names_an_unset_variable_is_missing() {
    let registry = Home::new().quiet();
    for configured in ["$NAMED", "${NAMED}"] {
        let config = json!({
            "baseUrl": "u", "api": "a", "apiKey": configured, "models": [{"id": "m"}],
        });
        let registry = registry.with_provider("mock", &config).unwrap();
        let model = registry.find("mock", "m").unwrap();
        assert!(registry.check_credentials(&model).is_err(), "{configured}");
        assert!(names(&registry.available()).is_empty(), "{configured}");
    }
}

#[tokio::test]
async fn a_virtual_model_is_listed_and_needs_no_key() {
    let registry = Home::new().quiet();
    let described = |provider: &str, id: &str| -> Model {
        serde_json::from_value(json!({
            "id": id, "name": "Auto", "api": "virtual", "provider": provider, "baseUrl": "",
            "reasoning": false, "input": ["text"], "contextWindow": 0, "maxTokens": 0,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        }))
        .unwrap()
    };
    let registry = registry.with_virtual_model(described("router", "auto"));
    let auto = registry.find("router", "auto").unwrap();
    assert_eq!(names(&registry.available()), ["router/auto"]);
    registry.check_credentials(&auto).unwrap();
    assert!(registry.authorize(&auto).await.unwrap().api_key.is_none());
    // Beside the models of a provider it needs the key of that provider, and hides the model of the same id.
    let id = registry.all()[0].clone();
    let known = registry.all().len();
    let registry = registry.with_virtual_model(described(&id.provider, &id.id));
    assert_eq!(registry.all().len(), known);
    assert_eq!(registry.find(&id.provider, &id.id).unwrap().api, "virtual");
    assert!(!registry.has_credentials(&id.provider));
    let registry = registry.without_virtual_model("router", "auto");
    assert!(registry.find("router", "auto").is_none());
}
