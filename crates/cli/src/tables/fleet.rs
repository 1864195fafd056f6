//! The tables of `pinion fleet`.

use super::JSON;
use crate::table::{Argument, Command, Flag, Kind, Section};

pub static FLEET: Command = Command {
    text: "A fleet runs the children of a plan side by side, tries again, moves to other models, limits time and money, and\n\
           always ends with a report. Children are pinion, or any agent that prints lines of JSON.",
    commands: &[&RUN, &CHECK, &RESUME, &SHOW, &LIST, &CLEAN],
    notes: EXIT_CODES,
    examples: &[
        "git diff main | pinion fleet run review.yaml > review.md",
        "pinion fleet resume last",
        "pinion fleet show last --json | jq .totalCostMicros",
    ],
    ..Command::new("fleet", "Run many child agents and write one report")
};

const EXIT_CODES: &str = "A RUN is an id from `pinion fleet list`, a directory, or `last`.\n\
    Exit codes: 0 all finished, 1 a child failed or the judge refused, 2 the plan is wrong, 5 the money is spent,\n\
    124 the time is up, 130 interrupted.";

const OUTPUT: Flag = Flag::valued(
    "--output",
    "FORMAT",
    "report: the report as Markdown at the end, shortened on a terminal (the default); jsonl: every event as a line of \
     JSON when it happens; none: nothing",
)
.of(Kind::OneOf(&["report", "jsonl", "none"]));
const QUIET: Flag = Flag::bare("--quiet", "print nothing on stderr during the run").or(&["-q"]);

pub static RUN: Command = Command {
    arguments: &[Argument::one("PLAN.yaml", Kind::File)],
    flags: &[&Section {
        title: "Flags",
        flags: &[
            OUTPUT,
            Flag::valued(
                "--run-dir",
                "DIR",
                "store the run here instead of in the agent directory's fleet/",
            )
            .of(Kind::Directory),
            QUIET,
        ],
    }],
    notes: EXIT_CODES,
    text: "Text on stdin is {{ input }} in the prompts of the plan.",
    examples: &[
        "git diff main | pinion fleet run review.yaml > review.md",
        "git diff main | pinion fleet run review.yaml --output jsonl | jq -r 'select(.type==\"child_ended\") | .child'",
    ],
    ..Command::new("run", "Run a plan")
};

pub static CHECK: Command = Command {
    arguments: &[Argument::one("PLAN.yaml", Kind::File)],
    examples: &["pinion fleet check review.yaml"],
    ..Command::new("check", "Report the mistakes of a plan, and run nothing")
};

pub static RESUME: Command = Command {
    arguments: &[Argument::one("RUN", Kind::FleetRun)],
    flags: &[&Section {
        title: "Flags",
        flags: &[OUTPUT, QUIET],
    }],
    notes: EXIT_CODES,
    examples: &["pinion fleet resume last"],
    ..Command::new("resume", "Run the children of a run that did not finish")
};

static ONLY_JSON: Section = Section {
    title: "Flags",
    flags: &[JSON],
};

pub static SHOW: Command = Command {
    arguments: &[Argument::optional("RUN", Kind::FleetRun)],
    flags: &[&ONLY_JSON],
    examples: &[
        "pinion fleet show",
        "pinion fleet show last --json | jq .totalCostMicros",
    ],
    ..Command::new(
        "show",
        "Print the report of a run, of the newest without RUN",
    )
};

pub static LIST: Command = Command {
    flags: &[&ONLY_JSON],
    examples: &["pinion fleet list"],
    ..Command::new("list", "List the stored runs")
};

pub static CLEAN: Command = Command {
    arguments: &[Argument::any("RUN", Kind::FleetRun)],
    flags: &[&Section {
        title: "Flags",
        flags: &[
            Flag::valued(
                "--older-than",
                "TIME",
                "the age from which runs are deleted: 30d, 12h or 10m; 30d without the flag",
            ),
            Flag::bare("--all", "delete all runs"),
        ],
    }],
    examples: &[
        "pinion fleet clean --older-than 7d",
        "pinion fleet clean --all",
    ],
    ..Command::new("clean", "Delete the named runs, or old ones")
};
