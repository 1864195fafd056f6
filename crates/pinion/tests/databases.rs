//! `pinion turns` and `pinion timeline`: the content of the databases as users see it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pinion_history::{
    Block, BlockKind, EntityChange, StoreChoice, TimelineEntity, TimelineEvent, Turn, TurnSave,
    open_timeline, open_turns,
};
use serde_json::{Value, json};

struct Home {
    home: tempfile::TempDir,
}

impl Home {
    /// Creates two sessions: `notes` with a failed run and two final ones, `other` with one.
    fn filled() -> Self {
        let home = tempfile::tempdir().unwrap();
        let filled = Self { home };
        let file = filled.path("turns.db");
        let mut turns = open_turns(&at(&file)).unwrap().unwrap();
        let mut turn = Turn {
            id: "turn-1".to_owned(),
            ..Turn::default()
        };
        for (session, phase, at_ms, text) in [
            ("notes", "final", 1_000, "What is <b>bold</b>?"),
            ("notes", "failed", 2_000, "And this"),
            ("notes", "final", 3_000, "Thank \u{1b}[31myou"),
            ("other", "final", 4_000, "Elsewhere"),
        ] {
            if session == "other" {
                turn = Turn {
                    id: "turn-2".to_owned(),
                    ..Turn::default()
                };
            }
            let id = turn.blocks.len();
            turn.blocks
                .push(Block::text(format!("u{id}"), BlockKind::User, text));
            turn.blocks.push(Block::text(
                format!("a{id}"),
                BlockKind::LlmText,
                "An *answer*",
            ));
            let save = TurnSave {
                conversation: session,
                session,
                turn: &turn,
                phase,
                at_ms,
                runtime_key: "default",
                inference_id: "run",
            };
            turns.save(&save).unwrap();
        }
        let file = filled.path("timeline.db");
        let mut timeline = open_timeline(&at(&file)).unwrap();
        for session in ["notes", "other"] {
            let said = [
                (
                    1,
                    "ChatMessage",
                    "u",
                    json!({ "role": "user", "content": "hi <script>" }),
                ),
                (
                    2,
                    "ChatToolCall",
                    "c",
                    json!({ "toolName": "read", "input": "{\"path\":\"a\"}", "status": "pending" }),
                ),
                (
                    3,
                    "ChatMessage",
                    "a",
                    json!({ "role": "assistant", "content": format!("from {session}") }),
                ),
            ];
            for (ordinal, kind, id, payload) in said {
                let event = TimelineEvent {
                    ordinal,
                    name: format!("Event{ordinal}").into(),
                    payload: "{ \"n\": 1 }".into(),
                };
                let entity = TimelineEntity {
                    kind: kind.into(),
                    id: id.into(),
                    created_ordinal: 0,
                    last_event_ordinal: 0,
                    tombstone: false,
                    payload: payload.to_string().into(),
                };
                timeline
                    .append(session, &[event], &[EntityChange { ordinal, entity }])
                    .unwrap();
            }
        }
        filled
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn run(&self, line: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_pinion"))
            .args(line.split(' '))
            .current_dir(self.home.path())
            .output()
            .unwrap()
    }

    fn said(&self, line: &str) -> String {
        let output = self.run(line);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn refused(&self, line: &str, code: i32) -> String {
        let output = self.run(line);
        assert_eq!(output.status.code(), Some(code), "{line}");
        assert_eq!(output.stdout, b"", "{line}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn lines(&self, line: &str) -> Vec<Value> {
        let said = self.said(line);
        said.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn at(path: &Path) -> StoreChoice<'_> {
    StoreChoice {
        db: path.to_str().unwrap(),
        ..StoreChoice::default()
    }
}

#[test]
fn turns_are_listed_and_shown() {
    let home = Home::filled();
    let table = home.said("turns list --turns-db turns.db");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[0][..4],
        ["1970-01-01T00:00:04Z", "other", "final", "2"]
    );
    assert_eq!(
        rows[2][..5],
        ["1970-01-01T00:00:02Z", "notes", "failed", "4", "And"]
    );
    assert_eq!(rows.len(), 4);
    let lines = home.lines("turns list --turns-db turns.db --session notes --phase final --json");
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["savedAtMs"], 3_000);
    assert_eq!(lines[0]["blocks"], 6);
    assert_eq!(lines[0]["inferenceId"], "run");

    let text = home.said("turns show --turns-db turns.db --session notes");
    assert!(
        text.starts_with("User: What is <b>bold</b>?\n\nAssistant: An *answer*\n\n"),
        "{text}"
    );
    assert!(
        text.contains("Thank \u{fffd}[31myou"),
        "no escape reaches the terminal"
    );
    let yaml = home.said("turns show --turns-db turns.db --session notes --yaml");
    let turn = Turn::from_yaml(&yaml).unwrap();
    assert_eq!(turn.blocks.len(), 6);
    let shown = home.lines("turns show --turns-db turns.db --session notes --phase failed --json");
    assert_eq!(shown[0]["turn"]["blocks"].as_array().unwrap().len(), 4);
    assert_eq!(home.said("turns check --turns-db turns.db"), "ok\n");
}

#[test]
fn an_export_does_not_empty_or_wait_for_what_is_not_a_regular_file() {
    let home = Home::filled();
    nix::unistd::mkfifo(&home.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let errors = home.refused("turns export --turns-db turns.db -o pipe", 1);
    assert!(
        errors.contains("pipe: is a FIFO, not a regular file"),
        "{errors}"
    );
}

#[test]
fn turns_are_exported() {
    let home = Home::filled();
    let newest = home.lines("turns export --turns-db turns.db");
    let told = |line: &Value| format!("{} {}", line["session"], line["savedAtMs"]);
    assert_eq!(
        newest.iter().map(told).collect::<Vec<_>>(),
        ["\"notes\" 3000", "\"other\" 4000"]
    );
    assert_eq!(
        home.lines("turns export --turns-db turns.db --all").len(),
        4
    );
    home.said("turns export --turns-db turns.db --session notes -o talk.html");
    let page = fs::read_to_string(home.path("talk.html")).unwrap();
    assert!(page.contains("What is &lt;b&gt;bold&lt;/b&gt;?") && !page.contains("<b>"));
    let markdown = home.said("turns export --turns-db turns.db --format markdown");
    assert!(
        markdown.contains("# notes\n") && markdown.contains("# other\n"),
        "{markdown}"
    );
    let refused = home.refused("turns export --turns-db turns.db --format html", 2);
    assert!(refused.contains("name one with --session"), "{refused}");
}

#[test]
fn timelines_are_listed_shown_and_exported() {
    let home = Home::filled();
    let listed = home.lines("timeline list --timeline-db timeline.db --json");
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0]["events"], 3);
    let table = home.said("timeline list --timeline-db timeline.db --session notes");
    let row: Vec<&str> = table.split_whitespace().collect();
    assert_eq!(row[1..], ["notes", "3", "3"]);

    let text = home.said("timeline show --timeline-db timeline.db --session notes");
    assert_eq!(
        text,
        "User: hi <script>\n\nCall read (pending): {\n  \"path\": \"a\"\n}\n\nAssistant: from notes\n\n"
    );
    let before = home.said("timeline show --timeline-db timeline.db --session notes --as-of 1");
    assert_eq!(before, "User: hi <script>\n\n");
    let events =
        home.said("timeline show --timeline-db timeline.db --session notes --events --as-of 2");
    assert_eq!(
        events,
        "     1  Event1  { \"n\": 1 }\n     2  Event2  { \"n\": 1 }\n"
    );

    let lines = home.lines("timeline export --timeline-db timeline.db --session notes");
    let types: Vec<&str> = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        types,
        ["event", "event", "event", "entity", "entity", "entity"]
    );
    assert_eq!(lines[0]["payload"], json!({ "n": 1 }));
    assert_eq!(lines[5]["payload"]["content"], "from notes");
    assert_eq!(
        home.lines("timeline export --timeline-db timeline.db")
            .len(),
        12
    );
    let page = home.said("timeline export --timeline-db timeline.db --session notes --format html");
    assert!(page.contains("hi &lt;script&gt;") && !page.contains("<script"));
    let markdown =
        home.said("timeline export --timeline-db timeline.db --session notes --format md");
    assert!(
        markdown.contains("## Call read (pending)\n\n```json\n"),
        "{markdown}"
    );
    assert_eq!(
        home.said("timeline check --timeline-db timeline.db"),
        "ok\n"
    );
}

#[test]
fn nothing_is_made_and_mistakes_are_told() {
    let home = Home::filled();
    for (line, code, said) in [
        (
            "turns list --turns-db none.db",
            1,
            "there is no database at none.db",
        ),
        (
            "timeline list --timeline-db turns.db",
            1,
            "there is no table sessionstream_sessions in it",
        ),
        (
            "timeline show --timeline-db timeline.db",
            2,
            "there are 2 sessions",
        ),
        (
            "timeline show --timeline-db timeline.db --session x",
            1,
            "there is no session \"x\"",
        ),
        (
            "turns show --turns-db turns.db --session x",
            1,
            "there is no final turn of session \"x\"",
        ),
        (
            "turns list --turns-dsn turns.db",
            2,
            "persistence DSN requires an explicit backend",
        ),
        (
            "turns list --turns-backend mysql --turns-dsn x",
            2,
            "this program has no MySQL",
        ),
        ("turns list", 2, "name a database with --turns-db"),
        (
            "turns lst --turns-db turns.db",
            2,
            "Did you mean `pinion turns list`?",
        ),
    ] {
        let told = home.refused(line, code);
        assert!(told.contains(said), "{line}: {told}");
    }
    let mut names: Vec<_> = fs::read_dir(home.home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["timeline.db", "turns.db"]);
    fs::write(home.path("broken.db"), "no database").unwrap();
    let told = home.refused("turns check --turns-db broken.db", 1);
    assert!(
        told.contains("broken.db is not a SQLite database and is left untouched"),
        "{told}"
    );
}

#[test]
fn help_has_examples() {
    let home = Home::filled();
    for command in ["turns", "timeline"] {
        let help = home.said(&format!("{command} --help"));
        assert!(
            help.contains("Examples:") && help.contains(&format!("--{command}-db")),
            "{help}"
        );
        assert_eq!(home.said(command), help);
    }
    assert!(home.said("completions bash").contains(" turns timeline "));
}
