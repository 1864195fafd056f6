//! The table of examples in `docs/extensions.md`. With `PINION_WRITE_TABLE` in the environment the test writes it,
//! otherwise it must agree with the results.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use pinion_testkit::vectors::{Outcome, Suite};
use serde_json::Value;

const BEGIN: &str = "<!-- examples: begin -->";
const END: &str = "<!-- examples: end -->";

/// Percentage of the examples without a terminal and a network that must work.
const ENOUGH: usize = 90;

/// Checks or writes the table, and checks the percentage.
pub fn is_as_documented(suite: &Suite, outcomes: &[Outcome]) {
    let known = suite.json("examples.json");
    let bundled = bundled();
    let listed: BTreeSet<String> = known.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        listed, bundled,
        "examples.json lists what the package holds"
    );
    let recorded: BTreeSet<String> = outcomes.iter().map(|o| o.case.clone()).collect();
    assert_eq!(recorded, bundled, "every example has a recording");

    let mut rows = vec![
        "| example | here | what it does |".to_owned(),
        "|---|---|---|".to_owned(),
    ];
    let (mut can, mut does) = (0, 0);
    for outcome in outcomes {
        let entry = &known[&outcome.case];
        let works = outcome.agrees() || outcome.parts() == suite.excused("examples", &outcome.case);
        let verdict = verdict(entry, works);
        if entry["needs"].is_null() {
            can += 1;
            does += usize::from(verdict == "works");
        }
        let about = entry["about"].as_str().unwrap();
        rows.push(format!("| {} | {verdict} | {about} |", outcome.case));
    }
    println!("{does} of {can} examples that need neither a terminal nor a network work");

    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/extensions.md");
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("where the table begins");
    let (_, after) = rest.split_once(END).expect("where the table ends");
    let wanted = format!("{before}{BEGIN}\n{}\n{END}{after}", rows.join("\n"));
    if std::env::var_os("PINION_WRITE_TABLE").is_some() {
        fs::write(&page, wanted).unwrap();
    } else {
        assert!(
            text == wanted,
            "docs/extensions.md is not what was found; PINION_WRITE_TABLE=1 writes it"
        );
    }
    assert!(does * 100 >= can * ENOUGH, "only {does} of {can} work");
}

fn verdict(entry: &Value, works: bool) -> String {
    match (entry["needs"].as_str(), works) {
        (_, false) => format!(
            "differs: {}",
            entry["trouble"].as_str().unwrap_or("see the test")
        ),
        (None, true) => "works".to_owned(),
        (Some(need), true) => format!("loads; needs {need}"),
    }
}

/// Returns the examples in the package: files, and directories with an entry.
fn bundled() -> BTreeSet<String> {
    let directory = super::package().join("examples/extensions");
    let entries = fs::read_dir(directory).unwrap().flatten();
    let name = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        match name.strip_suffix(".ts") {
            Some(name) => Some(name.to_owned()),
            None => entry.path().is_dir().then_some(name),
        }
    };
    entries.filter_map(name).collect()
}
