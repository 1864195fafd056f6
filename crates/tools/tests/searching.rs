//! grep, find and ls, with the texts clients expect.

mod common;

use common::{Workspace, text};
use serde_json::{Value, json};

fn tree() -> Workspace {
    Workspace::new(&[
        (".gitignore", "ignored.txt\nbuild/\n"),
        (".git/config", "needle in git"),
        (".hidden/h.txt", "needle hidden\n"),
        ("a.txt", "needle one\nhay\nNeedle two\r\n"),
        ("b/Deep.TXT", "hay\nneedle (deep)\nhay\nhay\nneedle last"),
        ("b/c/x.rs", "fn needle() {}\n"),
        ("bin.dat", "needle\0binary needle\n"),
        ("build/out.txt", "needle\n"),
        ("ignored.txt", "needle\n"),
    ])
}

#[tokio::test]
async fn grep_shows_path_line_and_text() {
    let workspace = tree();
    for (arguments, shown) in [
        (
            json!({"pattern": "needle"}),
            ".hidden/h.txt:1: needle hidden\na.txt:1: needle one\nb/Deep.TXT:2: needle (deep)\n\
             b/Deep.TXT:5: needle last\nb/c/x.rs:1: fn needle() {}",
        ),
        (
            json!({"pattern": "NEEDLE TWO|none", "ignoreCase": true}),
            "a.txt:3: Needle two",
        ),
        (
            json!({"pattern": "(deep)", "literal": true}),
            "b/Deep.TXT:2: needle (deep)",
        ),
        (
            json!({"pattern": "needle", "glob": "*.rs"}),
            "b/c/x.rs:1: fn needle() {}",
        ),
        (
            json!({"pattern": "needle", "path": "b", "glob": "!*.rs"}),
            "Deep.TXT:2: needle (deep)\nDeep.TXT:5: needle last",
        ),
        (
            json!({"pattern": "needle", "path": "ignored.txt"}),
            "ignored.txt:1: needle",
        ),
        (
            json!({"pattern": "needle", "path": "b/Deep.TXT", "context": 2}),
            "Deep.TXT-1- hay\nDeep.TXT:2: needle (deep)\nDeep.TXT-3- hay\nDeep.TXT-4- hay\n\
             Deep.TXT-3- hay\nDeep.TXT-4- hay\nDeep.TXT:5: needle last",
        ),
        (json!({"pattern": "nowhere"}), "No matches found"),
    ] {
        let output = workspace.call("grep", arguments.clone()).await.unwrap();
        assert_eq!(text(&output), shown, "{arguments}");
        assert_eq!(output.details, None);
    }
    let root = workspace.path().display();
    let error = workspace
        .error("grep", json!({"pattern": "x", "path": "none"}))
        .await;
    assert_eq!(error, format!("Path not found: {root}/none"));
    let error = workspace
        .error("grep", json!({"pattern": "(", "path": "."}))
        .await;
    assert!(error.contains("unclosed group"), "{error}");
}

#[tokio::test]
async fn grep_reports_what_it_left_out() {
    let long = format!("needle {}\n", "→".repeat(600));
    let workspace = Workspace::new(&[("a.txt", &long.repeat(3)), ("b.txt", "needle\n")]);
    let output = workspace
        .call("grep", json!({"pattern": "needle", "limit": 2}))
        .await
        .unwrap();
    let line = format!("needle {}... [truncated]", "→".repeat(493));
    assert_eq!(
        text(&output),
        format!(
            "a.txt:1: {line}\na.txt:2: {line}\n\n[2 matches limit reached. Use limit=4 for more, or refine \
             pattern. Some lines truncated to 500 chars. Use read tool to see full lines]"
        )
    );
    assert_eq!(
        output.details,
        Some(json!({"matchLimitReached": 2, "linesTruncated": true}))
    );

    let many: String = (0..2000).map(|n| format!("needle {n:040}\n")).collect();
    let workspace = Workspace::new(&[("many.txt", &many)]);
    let output = workspace
        .call("grep", json!({"pattern": "needle", "limit": 5000}))
        .await
        .unwrap();
    assert!(text(&output).ends_with("\n\n[50.0KB limit reached]"));
    let details = output.details.unwrap();
    assert_eq!(
        details["truncation"]["maxLines"],
        json!(9_007_199_254_740_991_u64)
    );
    assert_eq!(details["truncation"]["totalLines"], json!(2000));
    assert_eq!(details.get("matchLimitReached"), None);
}

#[tokio::test]
async fn grep_finds_hits_in_one_order_however_many_files_there_are() {
    let files: Vec<(String, String)> = (0..500)
        .map(|n| (format!("d{:02}/f{n:03}.txt", n % 20), format!("hit {n}\n")))
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (&**name, &**text))
        .collect();
    let workspace = Workspace::new(&files);
    let all = workspace
        .text("grep", json!({"pattern": "hit", "limit": 1000}))
        .await;
    let lines: Vec<&str> = all.lines().collect();
    assert_eq!(lines.len(), 500);
    assert!(lines.is_sorted());
    let some = workspace
        .text("grep", json!({"pattern": "hit", "limit": 70}))
        .await;
    assert_eq!(some.lines().take(70).collect::<Vec<_>>(), lines[..70]);
}

#[tokio::test]
async fn find_lists_names_and_paths() {
    let workspace = tree();
    for (arguments, shown) in [
        (
            json!({"pattern": "*.txt"}),
            ".hidden/h.txt\na.txt\nb/Deep.TXT",
        ),
        (json!({"pattern": "*.TXT"}), "b/Deep.TXT"),
        (json!({"pattern": "b*"}), "b/\nbin.dat"),
        (json!({"pattern": "c", "path": "b"}), "c/"),
        (json!({"pattern": "b/**/*.rs"}), "b/c/x.rs"),
        (json!({"pattern": "c/*.rs"}), "b/c/x.rs"),
        (json!({"pattern": "**/*.rs"}), "b/c/x.rs"),
        (json!({"pattern": "*.{rs,dat}"}), "b/c/x.rs\nbin.dat"),
        (
            json!({"pattern": "config"}),
            "No files found matching pattern",
        ),
    ] {
        let output = workspace.call("find", arguments.clone()).await.unwrap();
        assert_eq!(text(&output), shown, "{arguments}");
        assert_eq!(output.details, None);
    }
    let output = workspace
        .call("find", json!({"pattern": "*", "limit": 3}))
        .await
        .unwrap();
    assert_eq!(
        text(&output),
        ".gitignore\n.hidden/\n.hidden/h.txt\n\n[3 results limit reached. Use limit=6 for more, or \
         refine pattern]"
    );
    assert_eq!(output.details, Some(json!({"resultLimitReached": 3})));
    let root = workspace.path().display();
    let error = workspace
        .error("find", json!({"pattern": "*", "path": "none"}))
        .await;
    assert_eq!(error, format!("Path not found: {root}/none"));
    assert!(
        workspace
            .error("find", json!({"pattern": "{a"}))
            .await
            .contains("{a")
    );
}

#[tokio::test]
async fn a_link_can_be_searched_but_is_not_followed_on_the_way() {
    let workspace = tree();
    std::os::unix::fs::symlink("b", workspace.path().join("link")).unwrap();
    let find = json!({"pattern": "*.rs", "path": "link"});
    assert_eq!(workspace.text("find", find).await, "c/x.rs");
    let grep = json!({"pattern": "fn", "path": "link"});
    assert_eq!(
        workspace.text("grep", grep).await,
        "c/x.rs:1: fn needle() {}"
    );
    assert_eq!(
        workspace.text("find", json!({"pattern": "*.rs"})).await,
        "b/c/x.rs"
    );
    assert_eq!(
        workspace.text("find", json!({"pattern": "link"})).await,
        "link"
    );
}

#[tokio::test]
async fn an_ignore_file_far_above_hides_nothing() {
    let workspace = Workspace::new(&[(".gitignore", "*\n"), ("home/project/main.rs", "needle\n")]);
    let arguments = json!({"pattern": "needle", "path": "home/project"});
    assert_eq!(
        workspace.text("grep", arguments.clone()).await,
        "main.rs:1: needle"
    );
    std::fs::create_dir(workspace.path().join(".git")).unwrap();
    assert_eq!(workspace.text("grep", arguments).await, "No matches found");
}

#[tokio::test]
async fn ls_lists_a_directory() {
    let workspace = tree();
    std::os::unix::fs::symlink("b", workspace.path().join("Link")).unwrap();
    std::os::unix::fs::symlink("nowhere", workspace.path().join("broken")).unwrap();
    std::fs::create_dir(workspace.path().join("empty")).unwrap();
    let all = ".git/\n.gitignore\n.hidden/\na.txt\nb/\nbin.dat\nbuild/\nempty/\nignored.txt\nLink/";
    for (arguments, shown) in [
        (json!({}), all),
        (json!({"path": "."}), all),
        (json!({"path": "Link"}), "c/\nDeep.TXT"),
        (json!({"path": "empty"}), "(empty directory)"),
    ] {
        let output = workspace.call("ls", arguments).await.unwrap();
        assert_eq!((text(&output).as_str(), output.details), (shown, None));
    }
    let output = workspace.call("ls", json!({"limit": "2"})).await.unwrap();
    assert_eq!(
        text(&output),
        ".git/\n.gitignore\n\n[2 entries limit reached. Use limit=4 for more]"
    );
    assert_eq!(output.details, Some(json!({"entryLimitReached": 2})));
    let root = workspace.path().display();
    for (path, error) in [("none", "Path not found"), ("a.txt", "Not a directory")] {
        let shown = workspace.error("ls", json!({"path": path})).await;
        assert_eq!(shown, format!("{error}: {root}/{path}"));
    }
}

#[tokio::test]
async fn a_cancelled_search_does_not_start() {
    let workspace = tree();
    workspace.cancel.cancel();
    let arguments: Value = json!({"pattern": "needle"});
    for tool in ["grep", "find", "ls"] {
        assert_eq!(
            workspace.error(tool, arguments.clone()).await,
            "Operation aborted"
        );
    }
}

#[test]
fn tools_are_made_by_name_and_describe_themselves() {
    let names = pinion_tools::all_names();
    let tools = pinion_tools::builtin(names, pinion_tools::ToolSettings::default());
    let made: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    assert_eq!(made, names);
    assert!(pinion_tools::builtin(&["teleport"], Default::default()).is_empty());
    let parameters = |name: &str| {
        let tool = common::tool_named(name, Default::default());
        let schema = &tool.spec().parameters;
        let names: Vec<String> = schema["properties"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, schema)| format!("{name}:{}", schema["type"].as_str().unwrap()))
            .collect();
        (names.join(" "), schema["required"].to_string())
    };
    for (name, properties, required) in [
        (
            "read",
            "path:string offset:number limit:number",
            r#"["path"]"#,
        ),
        ("bash", "command:string timeout:number", r#"["command"]"#),
        (
            "edit",
            "path:string oldText:string newText:string",
            r#"["path","oldText","newText"]"#,
        ),
        (
            "write",
            "path:string content:string",
            r#"["path","content"]"#,
        ),
        (
            "grep",
            "pattern:string path:string glob:string ignoreCase:boolean literal:boolean context:number \
             limit:number",
            r#"["pattern"]"#,
        ),
        (
            "find",
            "pattern:string path:string limit:number",
            r#"["pattern"]"#,
        ),
        ("ls", "path:string limit:number", "null"),
    ] {
        assert_eq!(
            parameters(name),
            (properties.to_owned(), required.to_owned())
        );
    }
}
