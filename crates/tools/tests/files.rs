//! read, write and edit, with the texts clients expect.

mod common;

use common::{Workspace, text};
use pinion_message::Block;
use pinion_tools::{ChangedTexts, ResultForm, ToolContext, ToolSettings};
use serde_json::{Value, json};

#[tokio::test]
async fn read_shows_a_file_or_a_part_of_it() {
    let ten: String = (1..=10).map(|n| format!("row {n}\n")).collect();
    let workspace = Workspace::new(&[
        ("notes.txt", "alpha\nbeta\ngamma\n"),
        ("ten.txt", &ten),
        ("empty", ""),
    ]);
    for (arguments, shown) in [
        (json!({"path": "notes.txt"}), "alpha\nbeta\ngamma\n"),
        (
            json!({"path": "ten.txt", "offset": 3, "limit": 2}),
            "row 3\nrow 4\n\n[7 more lines in file. Use offset=5 to continue.]",
        ),
        (json!({"path": "ten.txt", "offset": "10"}), "row 10\n"),
        (json!({"path": "ten.txt", "offset": 11}), ""),
        (json!({"path": "ten.txt", "offset": 0, "limit": 99}), &ten),
        (json!({"path": "@empty"}), ""),
    ] {
        let output = workspace.call("read", arguments.clone()).await.unwrap();
        assert_eq!(text(&output), shown, "{arguments}");
        assert_eq!(output.details, None);
    }
}

#[tokio::test]
async fn read_errors_name_the_cause() {
    let workspace = Workspace::new(&[("ten.txt", "1\n2\n"), ("sub/x.txt", "x")]);
    let root = workspace.path().display();
    for (arguments, error) in [
        (
            json!({"path": "ten.txt", "offset": 99}),
            "Offset 99 is beyond end of file (3 lines total)".to_owned(),
        ),
        (
            json!({"path": "missing.txt"}),
            format!("ENOENT: no such file or directory, access '{root}/missing.txt'"),
        ),
        (
            json!({"path": "sub"}),
            "EISDIR: illegal operation on a directory, read".into(),
        ),
        (
            json!({"path": "ten.txt/x"}),
            format!("ENOTDIR: not a directory, access '{root}/ten.txt/x'"),
        ),
    ] {
        assert_eq!(workspace.error("read", arguments).await, error);
    }
    workspace.cancel.cancel();
    assert_eq!(
        workspace.error("read", json!({"path": "ten.txt"})).await,
        "Operation aborted"
    );
}

#[tokio::test]
async fn read_stops_at_the_limits_and_describes_how_to_continue() {
    let big: String = (1..=3000).map(|n| format!("line number {n}\n")).collect();
    let wide = format!("{}\nsecond\n", "w".repeat(60_000));
    let heavy: String = (0..900).map(|_| format!("{}\n", "h".repeat(99))).collect();
    let workspace = Workspace::new(&[
        ("big.txt", &big),
        ("wide.txt", &wide),
        ("heavy.txt", &heavy),
    ]);

    let output = workspace
        .call("read", json!({"path": "big.txt"}))
        .await
        .unwrap();
    let shown = text(&output);
    let tail = "line number 2000\n\n[Showing lines 1-2000 of 3001. Use offset=2001 to continue.]";
    assert!(shown.ends_with(tail));
    let cut = &output.details.unwrap()["truncation"];
    assert_eq!(
        (
            &cut["truncatedBy"],
            &cut["totalLines"],
            &cut["totalBytes"],
            &cut["outputBytes"]
        ),
        (&json!("lines"), &json!(3001), &json!(49893), &json!(32892))
    );

    let output = workspace
        .call("read", json!({"path": "wide.txt"}))
        .await
        .unwrap();
    assert_eq!(
        text(&output),
        "[Line 1 is 58.6KB, exceeds 50.0KB limit. Use bash: sed -n '1p' wide.txt | head -c 51200]"
    );
    assert_eq!(
        output.details.unwrap()["truncation"]["firstLineExceedsLimit"],
        json!(true)
    );

    let shown = workspace
        .text("read", json!({"path": "heavy.txt", "offset": 101}))
        .await;
    let tail = "\n\n[Showing lines 101-612 of 901 (50.0KB limit). Use offset=613 to continue.]";
    assert!(shown.ends_with(tail), "{}", &shown[shown.len() - 100..]);
}

#[tokio::test]
async fn read_shows_images_as_images() {
    let workspace = Workspace::new(&[]);
    let data = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR42mM4IScHRAwQCgAfJgQRSo6NIAAAAABJRU5ErkJggg==";
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(data)
        .unwrap();
    for name in ["dot.png", "dot.txt"] {
        std::fs::write(workspace.path().join(name), &bytes).unwrap();
        for auto_resize_images in [true, false] {
            let settings = ToolSettings {
                auto_resize_images,
                ..ToolSettings::default()
            };
            let output = workspace
                .call_with("read", json!({"path": name}), settings)
                .await
                .unwrap();
            let image = Block::Image {
                data: data.into(),
                mime_type: "image/png".into(),
            };
            assert_eq!(
                output.content,
                [Block::text("Read image file [image/png]"), image]
            );
            assert_eq!(output.details, None);
        }
    }
}

#[tokio::test]
async fn read_of_a_long_file_ends_with_the_call() {
    let workspace = Workspace::new(&[("long", "")]);
    let file = std::fs::File::create(workspace.path().join("long")).unwrap();
    file.set_len(1 << 42).unwrap();
    let cancel = workspace.cancel.clone();
    tokio::spawn(async move {
        // Time to begin; a cancel before that has the same result.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        cancel.cancel();
    });
    assert_eq!(
        workspace.error("read", json!({"path": "long"})).await,
        "Operation aborted"
    );
}

#[tokio::test]
async fn write_makes_directories_and_counts_utf16_units() {
    let workspace = Workspace::new(&[]);
    for (content, count) in [
        ("first\nsecond\n", 13),
        ("ünïcode → only\n", 15),
        ("😀", 2),
        ("", 0),
    ] {
        let shown = workspace
            .text("write", json!({"path": "a/b/new.txt", "content": content}))
            .await;
        assert_eq!(
            shown,
            format!("Successfully wrote {count} bytes to a/b/new.txt")
        );
        assert_eq!(workspace.text_of("a/b/new.txt"), content);
    }
    let root = workspace.path().display();
    assert_eq!(
        workspace
            .error("write", json!({"path": "a/b", "content": "x"}))
            .await,
        format!("EISDIR: illegal operation on a directory, open '{root}/a/b'")
    );
    let error = workspace
        .error("write", json!({"path": "a/b/new.txt/c", "content": "x"}))
        .await;
    assert!(error.contains(", mkdir '"), "{error}");
    workspace.cancel.cancel();
    let error = workspace
        .error("write", json!({"path": "late", "content": "x"}))
        .await;
    assert_eq!(error, "Operation aborted");
    assert!(!workspace.path().join("late").exists());
}

#[tokio::test]
async fn edit_replaces_text_and_shows_the_difference() {
    let code = "def f():\n    return 1\n\n\ndef g():\n    return 2\n";
    let workspace = Workspace::new(&[
        ("code.py", code),
        ("dos.txt", "one\r\ntwo\r\nthree\r\n"),
        ("smart.txt", "say “hi” now   \nend\n"),
    ]);
    for (path, old, new, diff, line, after) in [
        (
            "code.py",
            "return 1",
            "return 42",
            " 1 def f():\n-2     return 1\n+2     return 42\n 3 \n 4 \n 5 def g():\n 6     return 2",
            2,
            "def f():\n    return 42\n\n\ndef g():\n    return 2\n",
        ),
        (
            "dos.txt",
            "two\nthree",
            "TWO\nTHREE",
            " 1 one\n-2 two\n-3 three\n+2 TWO\n+3 THREE",
            2,
            "one\r\nTWO\r\nTHREE\r\n",
        ),
        (
            "smart.txt",
            "say \"hi\" now",
            "say bye",
            "-1 say \"hi\" now\n+1 say bye\n 2 end",
            1,
            "say bye\nend\n",
        ),
    ] {
        let arguments = json!({"path": path, "oldText": old, "newText": new});
        let output = workspace.call("edit", arguments).await.unwrap();
        assert_eq!(
            text(&output),
            format!("Successfully replaced text in {path}.")
        );
        assert_eq!(
            output.details,
            Some(json!({"diff": diff, "firstChangedLine": line}))
        );
        assert_eq!(workspace.text_of(path), after);
    }
}

#[tokio::test]
async fn edit_takes_a_list_too_even_as_text() {
    let edits = json!([{"oldText": "a", "newText": "A"}, {"oldText": "c", "newText": "C"}]);
    for edits in [edits.clone(), Value::String(edits.to_string())] {
        let workspace = Workspace::new(&[("f", "a\nb\nc\n")]);
        let shown = workspace
            .text("edit", json!({"path": "f", "edits": edits}))
            .await;
        assert_eq!(shown, "Successfully replaced 2 block(s) in f.");
        assert_eq!(workspace.text_of("f"), "A\nb\nC\n");
    }
    let workspace = Workspace::new(&[("f", "a\n")]);
    assert_eq!(
        workspace
            .error("edit", json!({"path": "f", "edits": []}))
            .await,
        "Edit tool input is invalid. edits must contain at least one replacement."
    );
    let error = workspace
        .error("edit", json!({"path": "f", "edits": [{"oldText": "a"}]}))
        .await;
    assert!(
        error.contains("  - edits/0: must have required property 'newText'\n"),
        "{error}"
    );
    let error = workspace.error("edit", json!({"path": "f"})).await;
    assert!(
        error.contains("  - oldText: must have required property 'oldText'\n"),
        "{error}"
    );
}

#[tokio::test]
async fn edit_errors_name_the_cause() {
    let workspace = Workspace::new(&[("code.py", "same\nsame\nunique\n"), ("dir/x", "")]);
    for (path, old, new, error) in [
        (
            "code.py",
            "absent",
            "x",
            "Could not find the exact text in code.py. The old text must match exactly including all \
             whitespace and newlines.",
        ),
        (
            "code.py",
            "same",
            "x",
            "Found 2 occurrences of the text in code.py. The text must be unique. Please provide more \
             context to make it unique.",
        ),
        ("nope.py", "a", "b", "File not found: nope.py"),
        (
            "code.py",
            "unique",
            "unique",
            "No changes made to code.py. The replacement produced identical content. This might \
             indicate an issue with special characters or the text not existing as expected.",
        ),
        ("code.py", "", "x", "oldText must not be empty in code.py."),
        (
            "dir",
            "a",
            "b",
            "EISDIR: illegal operation on a directory, read",
        ),
    ] {
        let arguments = json!({"path": path, "oldText": old, "newText": new});
        assert_eq!(workspace.error("edit", arguments).await, error);
    }
    assert_eq!(workspace.text_of("code.py"), "same\nsame\nunique\n");
}

#[tokio::test]
async fn edit_keeps_bytes_that_are_not_text() {
    let workspace = Workspace::new(&[]);
    std::fs::write(workspace.path().join("latin"), b"caf\xe9\nplain\n").unwrap();
    let arguments = json!({"path": "latin", "oldText": "plain", "newText": "new"});
    let output = workspace.call("edit", arguments).await.unwrap();
    assert_eq!(
        output.details.unwrap()["diff"],
        json!(" 1 caf\u{fffd}\n-2 plain\n+2 new")
    );
    assert_eq!(
        std::fs::read(workspace.path().join("latin")).unwrap(),
        b"caf\xe9\nnew\n"
    );
}

#[tokio::test]
async fn edit_of_a_large_file_works_as_of_a_small_one() {
    let lines: String = (0..60_000).map(|n| format!("line {n}\n")).collect();
    let workspace = Workspace::new(&[("large", &lines)]);
    let arguments = json!({"path": "large", "oldText": "line 59998\n", "newText": ""});
    let output = workspace.call("edit", arguments).await.unwrap();
    assert_eq!(output.details.unwrap()["firstChangedLine"], json!(59_999));
    assert_eq!(
        workspace.text_of("large"),
        lines.replace("line 59998\n", "")
    );
}

#[tokio::test]
async fn edits_of_one_file_at_the_same_time_all_arrive() {
    let marks: String = (0..40).map(|n| format!("<{n}>\n")).collect();
    let workspace = std::sync::Arc::new(Workspace::new(&[("f", &marks)]));
    let edits: Vec<_> = (0..40)
        .map(|n| {
            let workspace = workspace.clone();
            tokio::spawn(async move {
                let arguments =
                    json!({"path": "f", "oldText": format!("<{n}>"), "newText": format!("[{n}]")});
                workspace.call("edit", arguments).await.unwrap();
            })
        })
        .collect();
    for edit in edits {
        edit.await.unwrap();
    }
    assert_eq!(
        workspace.text_of("f"),
        marks.replace('<', "[").replace('>', "]")
    );
}

#[tokio::test]
async fn a_read_waits_for_the_changes_of_its_file_that_began_before() {
    let workspace = std::sync::Arc::new(Workspace::new(&[("f", "old\n")]));
    let held = pinion_tools::lock_file(&workspace.path().join("f")).await;
    let other = workspace.clone();
    let read = tokio::spawn(async move { other.call("read", json!({"path": "f"})).await });
    // Time in which a read that did not wait would have ended.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert!(!read.is_finished());
    std::fs::write(workspace.path().join("f"), "new\n").unwrap();
    drop(held);
    let output = read.await.unwrap().unwrap();
    assert_eq!(output.content[0].as_text(), Some("new\n"));
}

#[tokio::test]
async fn structured_results_have_patches_and_texts_as_data() {
    let settings = ToolSettings {
        form: ResultForm::Structured,
        ..ToolSettings::default()
    };
    let workspace = Workspace::new(&[("a.txt", "one\ntwo\n")]);
    let edit = json!({"path": "a.txt", "oldText": "two", "newText": "three"});
    let output = workspace
        .call_with("edit", edit, settings.clone())
        .await
        .unwrap();
    assert_eq!(
        output.content[0].as_text(),
        Some("Successfully replaced 1 block(s) in a.txt.")
    );
    let details = output.details.unwrap();
    assert_eq!(
        details["patch"],
        "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
    );
    let missing = json!({"path": "no.txt", "edits": [{"oldText": "a", "newText": "b"}]});
    let error = workspace.call_with("edit", missing, settings.clone()).await;
    assert_eq!(
        error.unwrap_err().0,
        "Could not edit file: no.txt. Error code: ENOENT."
    );
    let read = json!({"path": "a.txt"});
    let output = workspace
        .call_with("read", read, settings.clone())
        .await
        .unwrap();
    assert_eq!(output.structured_content, Some("one\nthree\n".into()));
    let write = json!({"path": "b.txt", "content": "x"});
    let output = workspace.call_with("write", write, settings).await.unwrap();
    assert_eq!(
        output.content[0].as_text(),
        Some("Successfully wrote to b.txt")
    );
}

#[tokio::test]
async fn a_change_is_previewed_without_being_made_and_recorded_when_it_is() {
    let workspace = Workspace::new(&[("a.txt", "one\n")]);
    let tools = pinion_tools::builtin(&["edit", "write", "read"], ToolSettings::default());
    let context = ToolContext {
        records_change: true,
        ..workspace.context()
    };
    let edit = json!({"path": "a.txt", "oldText": "one", "newText": "two"});
    let write = json!({"path": "new/b.txt", "content": "hello\n"});
    for (tool, arguments, before, after) in [
        (&tools[0], edit, Some("one\n"), "two\n"),
        (&tools[1], write, None, "hello\n"),
    ] {
        let expected = ChangedTexts::Whole {
            before: before.map(str::to_owned),
            after: after.to_owned(),
        };
        let preview = tool.preview(&arguments, workspace.path()).await.unwrap();
        assert_eq!(preview.texts, expected);
        assert_eq!(workspace.text_of("a.txt"), "one\n");
        let output = tool.call(arguments, &context).await.unwrap();
        assert_eq!(*output.change.unwrap(), preview);
        if before.is_some() {
            assert_eq!(workspace.text_of("a.txt"), after);
            std::fs::write(workspace.path().join("a.txt"), "one\n").unwrap();
        }
    }
    let none = [
        (
            &tools[0],
            json!({"path": "a.txt", "oldText": "absent", "newText": "x"}),
        ),
        (
            &tools[0],
            json!({"path": "missing", "oldText": "a", "newText": "x"}),
        ),
        (&tools[1], json!({"path": "/dev/stdin", "content": "x"})),
        (&tools[1], json!({"path": 5})),
        (&tools[2], json!({"path": "a.txt"})),
    ];
    for (tool, arguments) in none {
        let preview = tool.preview(&arguments, workspace.path()).await;
        assert_eq!(preview, None, "{arguments}");
    }
}
