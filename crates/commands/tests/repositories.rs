//! Directories of commands.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use common::{commands, world};
use pinion_commands::templates::printed;
use pinion_commands::{BUILT_INS, Command, CommandLine, EntryKind, Repository, Source};

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    directory
}

#[test]
fn the_example_commands_are_a_repository() {
    let repository = Repository::load(&[commands()], BUILT_INS);
    assert_eq!(repository.failures(), []);
    let listed: Vec<String> = repository
        .list()
        .iter()
        .map(|entry| {
            format!(
                "{}: {} ({:?})",
                entry.path.join(" "),
                entry.short,
                entry.kind
            )
        })
        .collect();
    assert_eq!(
        listed,
        [
            "ask: Just ask (Command)",
            "code go: Ask about Go code (Command)",
            "code go-tests: Ask for Go tests (Alias)",
            "code review: Review a change (Command)",
            "explain: Explain a piece of code (Command)",
            "stdin: Summarize what comes in on standard input (Command)",
            "write chat: A conversation with earlier turns (Command)",
            "write numbers: Every kind of field at once (Command)",
            "write report: Write a report from records (Command)",
        ]
    );
    assert_eq!(
        repository.below(&[]),
        ["ask", "code", "explain", "stdin", "write"]
    );
    assert_eq!(
        repository.below(&words("code")),
        ["go", "go-tests", "review"]
    );
    for entry in repository.list() {
        if entry.kind == EntryKind::Command {
            let found = repository.find(&entry.path).unwrap().unwrap();
            found.command.check_templates().unwrap();
            assert_eq!(found.command.warnings, []);
            assert!(
                entry
                    .source
                    .unwrap()
                    .ends_with(format!("{}.yaml", found.path.join("/")))
            );
        }
    }
}

#[test]
fn an_alias_gives_values_that_the_user_may_change() {
    let repository = Repository::load(&[commands()], BUILT_INS);
    let run = |line: &str| {
        let found = repository.find(&words(line)).unwrap().unwrap();
        assert_eq!(found.path, ["code", "go"]);
        let mut world = world(&commands());
        let parsed = found
            .command
            .parse(&found.line, BUILT_INS, &mut world)
            .unwrap();
        let rendered = found.command.render(&parsed, &world).unwrap();
        (parsed, rendered.prompt.unwrap())
    };
    let (parsed, prompt) = run("code go-tests");
    assert_eq!(
        prompt,
        "write unit tests\nBe concise. Use bullet points.\n\nWrite tests as well.\n"
    );
    assert_eq!(parsed.sources["context"], Source::Alias);
    let (parsed, prompt) = run("code go-tests for this --concise=false --context other");
    assert_eq!(
        prompt,
        "for this\n Use bullet points.\nRefer to the context.\n\n"
    );
    assert_eq!(printed(&parsed.values["context"]), "[other]");
    assert_eq!(parsed.sources["query"], Source::Argument);
}

#[test]
fn later_directories_replace_earlier_ones_and_failures_are_listed() {
    let first = directory(&[
        ("a.yaml", "name: a\nshort: first\nprompt: x\n"),
        ("code/go.yml", "name: go\nprompt: x\n"),
        ("code/deep/x.yaml", "name: other-name\nprompt: x\n"),
        (".hidden/x.yaml", "name: hidden\nprompt: x\n"),
        (".x.yaml", "name: hidden\nprompt: x\n"),
        ("README.md", "not a command"),
        (
            "doc/page.md",
            "---\nTitle: About\nSlug: about\nCommands: [code go]\n---\n\n# About\n",
        ),
        ("doc/first.md", "---\nSlug: first\nOrder: -1\n---\nText\n"),
        ("doc/bad.md", "# no head\n"),
        ("doc/not.yaml", "name: not\nprompt: x\n"),
        ("broken.yaml", "name: [\n"),
        ("nameless.yaml", "prompt: x\n"),
        (
            "clash.yaml",
            "name: clash\nflags: [{name: rpc}]\nprompt: x\n",
        ),
        ("both.yaml", "name: both\nprompt: x\nmessages: [y]\n"),
    ]);
    let second = directory(&[("a.yaml", "name: a\nshort: second\nprompt: x\n")]);
    let missing = second.path().join("none");
    let repository = Repository::load(&[first.path(), &missing, second.path()], BUILT_INS);
    let listed: Vec<String> = repository
        .list()
        .iter()
        .map(|entry| entry.path.join(" "))
        .collect();
    assert_eq!(listed, ["a", "code deep other-name", "code go"]);
    assert_eq!(repository.list()[0].short, "second");
    let failed: Vec<(String, &str)> = repository
        .failures()
        .iter()
        .map(|failure| {
            (
                failure
                    .path
                    .file_name()
                    .unwrap()
                    .to_string_lossy()
                    .into_owned(),
                failure.reason.code(),
            )
        })
        .collect();
    assert_eq!(
        failed,
        [
            ("bad.md".to_owned(), "command_malformed"),
            ("both.yaml".to_owned(), "command_prompt_and_messages"),
            ("broken.yaml".to_owned(), "command_malformed"),
            ("clash.yaml".to_owned(), "command_option_clash"),
            ("nameless.yaml".to_owned(), "command_unreadable"),
        ]
    );
    let slugs: Vec<&str> = repository
        .help_pages()
        .iter()
        .map(|page| page.slug.as_str())
        .collect();
    assert_eq!(slugs, ["first", "about"]);
    assert_eq!(repository.help_page("about").unwrap().body, "# About\n");
    assert_eq!(
        repository.related_pages(&words("code go"))[0].title,
        "About"
    );
    assert_eq!(
        repository.related_pages(&words("a")),
        Vec::<&pinion_commands::HelpPage>::new()
    );
}

#[test]
fn aliases_of_every_form() {
    let repository = directory(&[
        (
            "code/go.yaml",
            "name: go\nflags: [{name: depth, type: int}]\nprompt: '{{ .depth }}'\n",
        ),
        (
            "code/beside.yaml",
            "name: beside\naliasFor: go\nflags: {depth: 3}\n",
        ),
        (
            "from-root.yaml",
            "name: from-root\naliasFor: code/go\nflags: {depth: \"4\"}\n",
        ),
        ("list.yaml", "name: list\naliasFor: [code, go]\n"),
        ("words.yaml", "name: words\naliasFor: code go\n"),
        (
            "twice.yaml",
            "name: twice\naliasFor: [from-root]\nflags: {}\n",
        ),
        ("dead.yaml", "name: dead\naliasFor: nothing here\n"),
        ("circle.yaml", "name: circle\naliasFor: circle\n"),
        (
            "wrong.yaml",
            "name: wrong\naliasFor: code go\nflags: {dept: 3}\n",
        ),
    ]);
    let repository = Repository::load(&[repository.path()], BUILT_INS);
    assert_eq!(repository.failures(), []);
    let depth = |line: &str| {
        let found = repository.find(&words(line)).unwrap().unwrap();
        let mut world = world(&commands());
        let parsed = found
            .command
            .parse(&found.line, BUILT_INS, &mut world)
            .map_err(|e| e.to_string())?;
        Ok::<_, String>(parsed.values.get("depth").map(printed).unwrap_or_default())
    };
    assert_eq!(depth("code beside").unwrap(), "3");
    assert_eq!(depth("code beside --depth 9").unwrap(), "9");
    assert_eq!(depth("from-root").unwrap(), "4");
    assert_eq!(depth("twice").unwrap(), "4");
    assert_eq!(depth("list").unwrap(), "");
    assert_eq!(depth("words").unwrap(), "");
    assert_eq!(
        depth("wrong").unwrap_err(),
        "unknown option --dept; did you mean --depth?; --help lists all options"
    );
    let error = repository.find(&words("dead")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "alias dead refers to `nothing here`, which does not exist"
    );
    assert_eq!(
        repository.find(&words("circle")).unwrap_err().code(),
        "alias_without_command"
    );
    assert!(repository.find(&words("unknown")).unwrap().is_none());
    assert!(repository.find(&words("--code go")).unwrap().is_none());
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_back_is_walked_once() {
    let directory = directory(&[("a/x.yaml", "name: x\nprompt: x\n")]);
    std::os::unix::fs::symlink(directory.path(), directory.path().join("a/loop")).unwrap();
    let repository = Repository::load(&[directory.path()], BUILT_INS);
    let listed: Vec<String> = repository
        .list()
        .iter()
        .map(|entry| entry.path.join(" "))
        .collect();
    assert_eq!(listed, ["a x"]);
}

#[test]
fn new_files_from_a_command_line() {
    let repository = Repository::load(&[commands()], BUILT_INS);
    let found = repository.find(&words("write numbers")).unwrap().unwrap();
    let mut world = world(&commands());
    let line = CommandLine::new([
        "rivers",
        "--count",
        "8",
        "--primes=7,11",
        "--api-token",
        "hidden",
    ]);
    let parsed = found.command.parse(&line, BUILT_INS, &mut world).unwrap();

    let alias = found.command.alias_file("rivers", &found.path, &parsed);
    let command = found.command.command_file("rivers", &parsed).unwrap();
    assert!(!alias.contains("hidden") && !command.contains("hidden"));

    let made = directory(&[
        ("rivers.yaml", &alias),
        ("write/numbers.yaml", &found.command.origin.text),
        (
            "again.yaml",
            &command.replace("name: rivers", "name: again"),
        ),
    ]);
    let repository = Repository::load(&[made.path()], BUILT_INS);
    assert_eq!(repository.failures(), []);
    for line in ["rivers", "again"] {
        let found = repository.find(&words(line)).unwrap().unwrap();
        let parsed = found
            .command
            .parse(&found.line, BUILT_INS, &mut world)
            .unwrap();
        assert_eq!(printed(&parsed.values["topic"]), "rivers", "{line}");
        assert_eq!(printed(&parsed.values["primes"]), "[7 11]", "{line}");
        assert_eq!(printed(&parsed.values["count"]), "8", "{line}");
    }
}

#[test]
fn hostile_files_are_refused() {
    let deep = format!(
        "name: x\nmetadata: {}{}\n",
        "[".repeat(50_000),
        "]".repeat(50_000)
    );
    let bomb = "name: x\nmetadata:\n  a: &a [1,1,1,1,1,1,1,1,1]\n  b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n  c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n  d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n  e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n  f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n  g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n";
    for text in [deep.as_str(), bomb, "", "- a\n", "\u{feff}\u{0}"] {
        let result = common::read(text);
        if text.len() > 20 {
            assert_eq!(result.unwrap_err().code(), "command_malformed");
        }
    }
    let odd = directory(&[("good.yaml", "name: good\nshort: G\nprompt: hi\n")]);
    nix::unistd::mkfifo(&odd.path().join("x.yaml"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let repository = Repository::load(&[odd.path().to_owned()], BUILT_INS);
    let [failure] = repository.failures() else {
        panic!("{:?}", repository.failures())
    };
    let reason = failure.reason.to_string();
    assert!(
        reason.ends_with("it is a FIFO, not a regular file"),
        "{reason}"
    );

    let large = tempfile::tempdir().unwrap();
    std::fs::write(
        large.path().join("x.yaml"),
        format!("name: x\nlong: {}\n", "a".repeat(5 << 20)),
    )
    .unwrap();
    let error = Command::load(large.path(), "x.yaml".as_ref(), BUILT_INS).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read x.yaml: it is larger than 4 MiB"
    );
}
