//! Models that requests could not be sent for.

use std::collections::BTreeSet;

use pinion_llm::{Registry, is_supported_api};
use pinion_message::Model;
use url::Url;

use crate::Report;

/// The provider of the built-in model, which has no address.
const OFFLINE: &str = "offline";

/// Reports models whose API is unknown or whose base URL is not one. Only models with a key are looked at.
pub fn check_models(report: &mut Report, registry: &Registry) {
    let mut seen = BTreeSet::new();
    for model in registry.all() {
        if model.provider == OFFLINE || !registry.has_credentials(&model.provider) {
            continue;
        }
        for problem in problems(&model) {
            if seen.insert(problem.clone()) {
                report.problem("models", problem);
            }
        }
    }
}

fn problems(model: &Model) -> Vec<String> {
    let Model {
        provider,
        api,
        base_url,
        ..
    } = model;
    let mut problems = Vec::new();
    if !is_supported_api(api) {
        problems.push(format!(
            "models of provider {provider:?} have the api {api:?}, which pinion does not speak. Name another one in \
             models.json, such as \"openai-completions\"."
        ));
    }
    // Parts in braces are filled in from variables when a request is sent.
    let has_host = |text: &str| {
        let url = Url::parse(&text.replace(['{', '}'], ""));
        url.is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
    };
    if !base_url.is_empty() && !has_host(base_url) {
        problems.push(format!(
            "the baseUrl {base_url:?} of provider {provider:?} is not an http or https address. Write it like \
             \"http://127.0.0.1:11434/v1\" in models.json."
        ));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinion_llm::RegistryOptions;

    fn check(models: &str) -> Report {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("models.json"), models).unwrap();
        let (registry, _) = Registry::load(place.path(), RegistryOptions::default());
        let mut report = Report::default();
        check_models(&mut report, &registry);
        report
    }

    fn provider(api: &str, url: &str) -> String {
        format!(
            r#"{{"providers": {{"local": {{"baseUrl": "{url}", "api": "{api}", "apiKey": "none",
            "models": [{{"id": "a"}}, {{"id": "b"}}]}}}}}}"#
        )
    }

    #[test]
    fn an_unknown_api_and_an_address_without_a_scheme_are_named_once() {
        let report = check(&provider("openai-completion", "localhost:11434/v1"));
        let text = report.text();
        assert_eq!(report.problems(), 2, "{text}");
        assert!(text.contains("the api \"openai-completion\""), "{text}");
        assert!(
            text.contains("the baseUrl \"localhost:11434/v1\""),
            "{text}"
        );
        let report = check(&provider("openai-completions", "http://localhost:11434/v1"));
        assert_eq!(report.problems(), 0, "{}", report.text());
    }
}
