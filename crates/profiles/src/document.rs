//! One configuration document: three keys, and advice about old ones.

use pinion_yaml::{Entry, Node, Problem};

use crate::check::{Findings, describe_unknown};
use crate::profile::{self, ProfileFormat, ProfilePart, slug_at};
use crate::slug::Slug;

/// The content of a document.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub repositories: Vec<String>,
    pub active: Option<Slug>,
    pub registries: Option<Vec<String>>,
    pub profiles: Vec<(Slug, ProfilePart)>,
}

/// Parses a document; returns every error, not only the first.
pub(crate) fn read(text: &str) -> Result<Document, Vec<Problem>> {
    let node = pinion_yaml::parse(text).map_err(|problem| vec![problem])?;
    let mut document = Document::default();
    let mut findings = Findings::default();
    match node.members("a configuration document") {
        Ok(entries) => {
            for entry in entries {
                if let Err(problem) = member(&mut document, entry, &mut findings) {
                    findings.problems.push(problem);
                }
            }
        }
        Err(problem) => findings.problems.push(problem),
    }
    if findings.problems.is_empty() {
        Ok(document)
    } else {
        let mut problems = findings.problems;
        problems.sort_by_key(|problem| (problem.line, problem.column));
        Err(problems)
    }
}

fn member(document: &mut Document, entry: &Entry, findings: &mut Findings) -> Result<(), Problem> {
    match entry.key.as_str() {
        "app" => {
            for entry in entry.value.members("app")? {
                match entry.key.as_str() {
                    "repositories" => {
                        document.repositories = texts(&entry.value, "app.repositories")?;
                    }
                    other => {
                        let words = describe_unknown("app", other, ["repositories"].into_iter());
                        findings.problems.push(entry.at.problem(words));
                    }
                }
            }
        }
        "profile" => {
            for entry in entry.value.members("profile")? {
                match entry.key.as_str() {
                    "active" => {
                        let text = entry.value.text("profile.active")?;
                        document.active = Some(slug_at(entry.value.at, "profile", &text)?);
                    }
                    "registries" => {
                        document.registries = Some(texts(&entry.value, "profile.registries")?);
                    }
                    other => {
                        let known = ["active", "registries"].into_iter();
                        let words = describe_unknown("profile", other, known);
                        findings.problems.push(entry.at.problem(words));
                    }
                }
            }
        }
        "profiles" => {
            for entry in entry.value.members("profiles")? {
                let slug = match slug_at(entry.at, "profile", &entry.key) {
                    Ok(slug) => slug,
                    Err(problem) => {
                        findings.problems.push(problem);
                        continue;
                    }
                };
                let named = format!("profiles.{slug}");
                let part = profile::read(&entry.value, &named, ProfileFormat::Document, findings);
                document.profiles.push((slug, part));
            }
        }
        other => return Err(entry.at.problem(advice(other))),
    }
    Ok(())
}

fn texts(node: &Node, what: &str) -> Result<Vec<String>, Problem> {
    let items = node.items(what)?.iter();
    items.map(|item| item.text(what)).collect()
}

/// Returns advice about an unknown top-level key.
fn advice(key: &str) -> String {
    let section = |section: &str| {
        format!(
            "\"{key}\" is no longer a key: write it as profiles.<name>.inference_settings.{section}, and choose that profile with profile.active"
        )
    };
    match key {
        "profile-settings" => {
            "\"profile-settings\" is no longer a key: write profile.active and profile.registries"
                .to_owned()
        }
        "repositories" => {
            "\"repositories\" is no longer a key here: write app.repositories".to_owned()
        }
        "ai-chat" => section("chat"),
        "ai-client" => section("client"),
        "openai-chat" => section("openai (keys and addresses: inference_settings.api)"),
        "claude-chat" => section("claude (keys and addresses: inference_settings.api)"),
        "gemini-chat" => section("gemini (keys and addresses: inference_settings.api)"),
        other => {
            let words = describe_unknown(
                "a configuration document",
                other,
                ["app", "profile", "profiles"].into_iter(),
            );
            format!("{words}; its keys are app, profile and profiles")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(text: &str) -> Vec<String> {
        match read(text) {
            Ok(_) => Vec::new(),
            Err(problems) => problems.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn a_whole_document_is_read() {
        let document = read(
            "app:\n  repositories: [~/prompts]\nprofile:\n  active: Fast\n  registries: [yaml:a.yaml]\nprofiles:\n  fast:\n    display_name: Fast\n    stack: [{profile_slug: base}, {registry_slug: team, profile_slug: x}]\n    inference_settings: {chat: {engine: m}}\n    extensions: {acme.colour@v1: {a: 1}}\n  base:\n",
        )
        .unwrap();
        assert_eq!(document.active.as_ref().map(Slug::as_str), Some("fast"));
        assert_eq!(
            document.registries.as_deref(),
            Some(&["yaml:a.yaml".to_owned()][..])
        );
        assert_eq!(document.repositories, ["~/prompts"]);
        assert_eq!(document.profiles.len(), 2);
        assert_eq!(document.profiles[0].1.stack.as_ref().map(Vec::len), Some(2));
        assert!(mistakes("").is_empty());
        assert!(mistakes("# nothing\n").is_empty());
    }

    #[test]
    fn keys_of_long_ago_get_advice() {
        for (key, advice) in [
            ("profile-settings", "profile.active"),
            ("repositories", "app.repositories"),
            ("ai-chat", "inference_settings.chat"),
            ("openai-chat", "inference_settings.openai"),
            ("claude-chat", "inference_settings.claude"),
            ("gemini-chat", "inference_settings.gemini"),
            ("ai-client", "inference_settings.client"),
            ("profil", "did you mean profile?"),
            ("weather", "its keys are app, profile and profiles"),
        ] {
            let told = mistakes(&format!("app:\n{key}: 1\n"));
            assert_eq!(told.len(), 1, "{key}");
            assert!(told[0].starts_with("2:1: "), "{told:?}");
            assert!(told[0].contains(advice), "{told:?}");
        }
    }

    #[test]
    fn nested_mistakes_are_all_told_with_their_lines() {
        let told = mistakes(
            "app:\n  repos: []\nprofile:\n  active: \"a b\"\n  registry: x\nprofiles:\n  \"-x\": {}\n  good:\n    slug: good\n    stack: [{profile: x}]\n    inference_settings: {chats: {}}\n    extensions: {oauth: {}, pinocchio.oauth@v1: {}}\n    colour: red\n",
        );
        let starts = [
            "2:3: app has no \"repos\"",
            "4:11: \"a b\" cannot be the name of a profile",
            "7:3: \"-x\" cannot be",
            "9:5: profiles.good has no \"slug\": its name",
            "10:13: each entry of profiles.good.stack must name",
            "10:14: profiles.good.stack has no \"profile\"",
            "11:26: inference_settings has no \"chats\"; did you mean chat?",
            "12:18: \"oauth\" cannot be the key of an extension",
            "12:29: pinocchio.oauth@v1 may stand only in a YAML registry file",
            "13:5: profiles.good has no \"colour\"",
        ];
        for (told, start) in told.iter().zip(starts) {
            assert!(told.starts_with(start), "{told} / {start}");
        }
        assert_eq!(told.len(), starts.len(), "{told:#?}");
        assert_eq!(mistakes("- a\n").len(), 1);
        assert_eq!(mistakes("profile: {registries: x}\n").len(), 1);
    }
}
