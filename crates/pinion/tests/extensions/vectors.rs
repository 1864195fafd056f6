//! Recordings of the reference with the project's own extensions, see `tests/extensions/README.md`.

use pinion_testkit::Program;
use pinion_testkit::vectors::{Places, Suite};

fn agrees(directory: &str, case: &str) {
    let suite = Suite::open();
    let program = Program::new(env!("CARGO_BIN_EXE_pinion"));
    let excused = suite.excused(directory, case);
    let outcome = suite.play(directory, case, &program, &Places::new(None), &excused);
    assert_eq!(outcome.parts(), excused, "\n{outcome}");
}

macro_rules! recordings {
    ($($test:ident: $directory:literal $case:literal,)*) => {
        $(
            #[test]
            fn $test() {
                agrees($directory, $case);
            }
        )*

        #[test]
        fn every_recording_has_a_test() {
            for directory in ["probes", "own"] {
                let mut played = vec![$(($directory, $case)),*];
                played.retain(|(of, _)| *of == directory);
                played.sort_unstable();
                let recorded = Suite::open().recordings(directory);
                let recorded: Vec<(&str, &str)> =
                    recorded.iter().map(|r| (directory, r.case.as_str())).collect();
                assert_eq!(played, recorded);
            }
        }
    };
}

recordings! {
    actions: "probes" "probe-actions",
    errors: "probes" "probe-errors",
    events: "probes" "probe-events",
    a_flag_needs_its_value: "probes" "probe-flag-needs-value",
    flags: "probes" "probe-flags",
    an_action_while_loading: "probes" "probe-load-early-action",
    a_file_that_is_not_there: "probes" "probe-load-missing-file",
    an_import_that_is_not_there: "probes" "probe-load-missing-module",
    no_default_export: "probes" "probe-load-nodefault",
    a_factory_that_throws: "probes" "probe-load-throws",
    two_tools_of_one_name: "probes" "probe-tool-conflict",
    tools: "probes" "probe-tools",
    dialogs_and_decorations: "probes" "probe-ui",
    an_unknown_flag: "probes" "probe-unknown-flag",
    our_permission_gate: "own" "permission-gate",
    our_word_count_tool: "own" "word-count-tool",
    our_context_filter: "own" "context-filter",
}
