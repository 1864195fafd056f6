use proptest::prelude::*;

use super::*;
use crate::table::{Argument, Command, Flag, Kind, Section};

static FLAGS: Section = Section {
    title: "Flags",
    flags: &[
        Flag::valued("--port", "PORT", "the port"),
        Flag::bare("--follow", "follow").or(&["-f"]),
        Flag::valued("--skip", "LIST", "skip")
            .or(&["-xt"])
            .repeated(),
        Flag::valued("--list", "SEARCH", "list").optional(),
        Flag::valued("--mode", "MODE", "mode").joined(),
    ],
};

static SERVE: Command = Command {
    arguments: &[Argument::one("PLAN.yaml", Kind::File)],
    flags: &[&FLAGS],
    conflicts: &[&["--port", "--follow"]],
    requirements: &[("--skip", "--port")],
    ..Command::new("serve", "Serve")
};

static RAW: Command = Command {
    flags: &[&FLAGS],
    raw_after: Some(1),
    ..Command::new("invoke", "Call")
};

fn read_as(command: &'static Command, arguments: &[&str]) -> Result<Option<Line>, Error> {
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    Line::read(Place::below("pinion hub", command), &arguments)
}

fn read(arguments: &[&str]) -> Result<Option<Line>, Error> {
    read_as(&SERVE, arguments)
}

#[test]
fn flags_and_words_may_be_mixed() {
    let line = read(&[
        "a",
        "--port",
        "1",
        "-xt",
        "x",
        "--port=2",
        "--skip=-y",
        "--",
        "--z",
        "--",
    ]);
    let line = line.unwrap().unwrap();
    assert_eq!(line.words, ["a", "--z", "--"]);
    assert_eq!(line.value("--port"), Some("2"));
    assert_eq!(line.values("--port").collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(line.values("--skip").collect::<Vec<_>>(), ["x", "-y"]);
    assert_eq!(line.name(), "hub serve");
}

#[test]
fn optional_values_exist_only_where_the_table_has_them() {
    let line = read(&["--list", "x", "-"]).unwrap().unwrap();
    assert_eq!(
        (line.value("--list"), line.words.as_slice()),
        (Some("x"), &["-".to_owned()][..])
    );
    let line = read(&["--list", "-f"]).unwrap().unwrap();
    assert_eq!(
        (line.value("--list"), line.has("--follow")),
        (Some(""), true)
    );
    let line = read(&["--mode", "x"]).unwrap().unwrap();
    assert_eq!((line.value("--mode"), line.words.len()), (Some(""), 1));
    assert_eq!(
        read(&["--mode=x"]).unwrap().unwrap().value("--mode"),
        Some("x")
    );
}

#[test]
fn mistakes_name_the_flag_the_nearest_one_and_the_help() {
    for (arguments, said) in [
        (
            &["--prot", "1"][..],
            "unknown option --prot. Did you mean --port? See `pinion hub serve --help`.",
        ),
        (&["--bogus"], "unknown option --bogus. See"),
        (&["-q"], "unknown option -q. See"),
        (&["--port"], "--port needs a value after it."),
        (&["--follow=1"], "--follow takes no value, but got \"1\"."),
        (
            &["--port", "1", "-f"],
            "--port and --follow exclude each other.",
        ),
        (&["--skip", "x"], "--skip needs --port."),
    ] {
        let said_of = read(arguments).unwrap_err().to_string();
        assert!(said_of.starts_with(said), "{arguments:?}: {said_of}");
    }
    assert!(read(&["x", "-h"]).unwrap().is_none());
    let line = read(&[]).unwrap().unwrap();
    assert_eq!(
        line.exactly::<1>().unwrap_err().problem.to_string(),
        "PLAN.yaml is missing: pinion hub serve PLAN.yaml [flags]."
    );
    let line = read(&["a", "b"]).unwrap().unwrap();
    let error = line.exactly::<1>().unwrap_err().to_string();
    assert!(error.starts_with("\"b\" is one word too many."), "{error}");
}

#[test]
fn the_rest_is_passed_on_unparsed() {
    let line = read_as(&RAW, &["-f", "todo", "add", "--title", "--", "-h"]);
    let line = line.unwrap().unwrap();
    assert_eq!(line.words, ["todo"]);
    assert_eq!(line.raw, ["add", "--title", "--", "-h"]);
}

/// Returns an argument that is a flag of the table, a value, a word or noise.
fn argument() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("--port".to_owned()),
        Just("-f".to_owned()),
        Just("-xt".to_owned()),
        Just("--list".to_owned()),
        Just("--".to_owned()),
        Just("-".to_owned()),
        "[a-z@]{0,3}",
        "-{0,3}[a-z]{0,4}=?[a-z=-]{0,3}",
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn any_arguments_are_parsed_or_refused(arguments in proptest::collection::vec(argument(), 0..8)) {
        if let Ok(Some(line)) = Line::read(Place::root(&SERVE), &arguments) {
            for word in &line.words {
                prop_assert!(arguments.contains(word), "{word:?} of {arguments:?}");
            }
            let given = line.flags.len() + line.words.len();
            prop_assert!(given <= arguments.len());
            let literal = arguments.iter().position(|it| it == "--");
            let known = |word: &&String| word.starts_with('-') && word.len() > 1;
            if literal.is_none() {
                prop_assert_eq!(line.words.iter().find(known), None);
            }
        }
    }

    #[test]
    fn a_value_is_the_same_in_both_forms(value in any::<String>()) {
        let apart = read(&["--port", &value]).unwrap().unwrap();
        let joined = read(&[&format!("--port={value}")]).unwrap().unwrap();
        prop_assert_eq!(apart.value("--port"), Some(value.as_str()));
        prop_assert_eq!(joined.value("--port"), Some(value.as_str()));
    }

    #[test]
    fn everything_after_two_dashes_is_a_word(words in proptest::collection::vec(any::<String>(), 0..6)) {
        let mut arguments = vec!["--".to_owned()];
        arguments.extend(words.iter().cloned());
        let line = Line::read(Place::root(&SERVE), &arguments).unwrap().unwrap();
        prop_assert_eq!(line.words, words);
    }
}
