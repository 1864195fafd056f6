//! Random trees: compares the conversation at a leaf with a simple second implementation.

use std::collections::HashMap;
use std::path::Path;

use crate::support::*;
use pinion_session::{NewEntry, NewSession, Store};
use proptest::prelude::*;
use serde_json::Value;

#[derive(Debug, Clone)]
enum Step {
    User(String),
    Answer(String),
    Level(usize),
    Model(String),
    Compact { back: usize },
    Branch(String),
    Custom(String),
    Label { back: usize, text: Option<String> },
    Name(String),
    GoTo(usize),
    GoToRoot,
}

fn step() -> impl Strategy<Value = Step> {
    let text = "\\PC{0,12}|[a-z\\n\\\\\"\u{2028}\u{1f600}]{0,6}";
    prop_oneof![
        4 => text.prop_map(Step::User),
        4 => text.prop_map(Step::Answer),
        1 => (0..7usize).prop_map(Step::Level),
        1 => "[a-z]{1,4}".prop_map(Step::Model),
        2 => (0..8usize).prop_map(|back| Step::Compact { back }),
        1 => text.prop_map(Step::Branch),
        1 => text.prop_map(Step::Custom),
        1 => (0..8usize, proptest::option::of("[a-z]{0,3}"))
            .prop_map(|(back, text)| Step::Label { back, text }),
        1 => text.prop_map(Step::Name),
        2 => any::<usize>().prop_map(Step::GoTo),
        1 => Just(Step::GoToRoot),
    ]
}

fn run(store: &mut Store, steps: &[Step]) {
    for step in steps {
        let back = |back: usize| {
            let path = store.path();
            path.len()
                .checked_sub(back + 1)
                .map(|at| path[at].id().to_string())
        };
        let entry = match step {
            Step::User(text) => user(text),
            Step::Answer(text) => answer(text),
            Step::Level(level) => {
                NewEntry::ThinkingLevelChange(pinion_message::ThinkingLevel::ALL[*level])
            }
            Step::Model(model) => NewEntry::ModelChange {
                provider: "p".into(),
                model_id: model.clone(),
            },
            Step::Compact { back: n } => NewEntry::Compaction {
                summary: "sum".into(),
                first_kept_entry_id: back(*n).unwrap_or_else(|| "none".into()),
                tokens_before: 1,
                usage: None,
                details: None,
                from_hook: None,
                system_message: None,
            },
            Step::Branch(summary) => NewEntry::BranchSummary {
                from_id: Some("root".into()),
                summary: summary.clone(),
                usage: None,
                details: None,
                from_hook: None,
            },
            Step::Custom(text) => NewEntry::CustomMessage {
                custom_type: "c".into(),
                content: pinion_message::Content::Text(text.clone()),
                display: true,
                details: None,
            },
            Step::Label { back: n, text } => {
                let Some(target_id) = back(*n) else { continue };
                NewEntry::Label {
                    target_id,
                    label: text.clone(),
                }
            }
            Step::Name(name) => NewEntry::SessionInfo { name: name.clone() },
            Step::GoTo(at) => {
                let ids: Vec<String> = store
                    .entries()
                    .map(|entry| entry.id().to_string())
                    .collect();
                if !ids.is_empty() {
                    store.set_leaf(Some(&ids[at % ids.len()])).unwrap();
                }
                continue;
            }
            Step::GoToRoot => {
                store.set_leaf(None).unwrap();
                continue;
            }
        };
        store.append(entry).unwrap();
    }
}

/// The rules of the format in their simplest form.
fn naive(lines: &[Value], leaf: Option<&str>) -> (Vec<String>, Option<String>, Option<String>) {
    let by_id: HashMap<&str, &Value> = lines
        .iter()
        .map(|line| (line["id"].as_str().unwrap(), line))
        .collect();
    let mut path = Vec::new();
    let mut next = leaf;
    while let Some(line) = next.and_then(|id| by_id.get(id)) {
        path.insert(0, *line);
        next = line["parentId"].as_str();
    }
    let (mut level, mut model) = (None, None);
    for line in &path {
        match line["type"].as_str().unwrap() {
            "thinking_level_change" => level = line["thinkingLevel"].as_str().map(str::to_owned),
            "model_change" => model = line["modelId"].as_str().map(str::to_owned),
            "message" if line["message"]["role"] == "assistant" => {
                model = line["message"]["model"].as_str().map(str::to_owned);
            }
            _ => {}
        }
    }
    let said = |line: &Value| match line["type"].as_str().unwrap() {
        "message" => line["message"]["content"][0]["text"]
            .as_str()
            .map(str::to_owned),
        "custom_message" => Some(format!("({})", line["content"].as_str().unwrap())),
        "branch_summary" if line["summary"] != "" => {
            Some(format!("<{}>", line["summary"].as_str().unwrap()))
        }
        _ => None,
    };
    let compaction = path.iter().rposition(|line| line["type"] == "compaction");
    let mut texts = Vec::new();
    if let Some(at) = compaction {
        texts.push("[sum]".to_owned());
        let mut keeping = false;
        for line in &path[..at] {
            keeping |= line["id"] == path[at]["firstKeptEntryId"];
            if keeping {
                texts.extend(said(line));
            }
        }
    }
    texts.extend(
        path[compaction.map_or(0, |at| at + 1)..]
            .iter()
            .filter_map(|line| said(line)),
    );
    (texts, level, model)
}

fn as_lines(store: &Store) -> Vec<Value> {
    store
        .entries()
        .map(|entry| entry.value().unwrap())
        .collect()
}

fn summary(store: &Store) -> (Vec<String>, Option<String>, Option<String>) {
    let context = store.context();
    (
        texts(store),
        context.thinking_level.map(|level| level.to_string()),
        context.model.map(|(_, model)| model),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_conversation_at_every_entry_follows_the_rules(steps in prop::collection::vec(step(), 0..40)) {
        let mut store = Store::create(NewSession::default()).unwrap();
        run(&mut store, &steps);
        let lines = as_lines(&store);
        let ids: Vec<String> = store.entries().map(|entry| entry.id().to_string()).collect();
        for id in ids {
            store.set_leaf(Some(&id)).unwrap();
            prop_assert_eq!(summary(&store), naive(&lines, Some(&id)));
        }
        store.set_leaf(None).unwrap();
        prop_assert_eq!(summary(&store), naive(&lines, None));
    }

    #[test]
    fn an_opened_session_equals_the_written_one(steps in prop::collection::vec(step(), 0..40)) {
        let home = tempfile::tempdir().unwrap();
        let mut store = new_session(home.path());
        run(&mut store, &steps);
        store.append(answer("at last")).unwrap();
        let path = store.file().unwrap().to_owned();
        let before = (as_lines(&store), summary(&store), store.name().map(str::to_owned));
        let labels: Vec<(String, String)> =
            store.labels().iter().map(|(id, label)| (id.to_string(), label.text.clone())).collect();
        drop(store);
        let opened = Store::open(&path, Path::new("/")).unwrap();
        prop_assert_eq!(&opened.notices, &[]);
        let store = opened.store;
        let after = (as_lines(&store), summary(&store), store.name().map(str::to_owned));
        prop_assert_eq!(after, before);
        let reread: Vec<(String, String)> =
            store.labels().iter().map(|(id, label)| (id.to_string(), label.text.clone())).collect();
        prop_assert_eq!(reread, labels);
    }

    #[test]
    fn a_fork_has_the_conversation_of_its_origin(steps in prop::collection::vec(step(), 1..40)) {
        let mut store = Store::create(NewSession::default()).unwrap();
        run(&mut store, &steps);
        for (id, text) in store.user_messages() {
            let (fork, forked_text) = store.fork_before(&id).unwrap();
            let fork = fork.save().unwrap();
            prop_assert_eq!(forked_text, text);
            let parent = store.entry(&id).unwrap().parent_id().map(|id| id.to_string());
            let origin = naive(&as_lines(&store), parent.as_deref());
            prop_assert_eq!(summary(&fork), origin);
        }
    }
}
