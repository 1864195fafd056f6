//! The flags of the sandbox, and the table of the command `sandbox`.

use crate::table::{Argument, Command, Count, Flag, Kind, Section};

/// The modes of the sandbox.
pub const MODES: &[&str] = &["off", "read-only", "workspace", "strict"];

/// The flags of everything that can be confined.
pub(super) static SANDBOX_SECTION: Section = Section {
    title: "Sandbox",
    flags: &[
        Flag::valued(
            "--sandbox",
            "MODE",
            "off, read-only, workspace or strict; else PINION_SANDBOX, else the settings",
        )
        .of(Kind::OneOf(MODES)),
        Flag::valued(
            "--sandbox-write",
            "PATH",
            "a further place that may be written: a file, or a directory with all below it",
        )
        .of(Kind::File)
        .repeated(),
        Flag::valued(
            "--sandbox-read",
            "PATH",
            "a further place that strict may read",
        )
        .of(Kind::File)
        .repeated(),
        Flag::valued("--sandbox-hide", "PATH", "a further place that is hidden")
            .of(Kind::File)
            .repeated(),
        Flag::valued(
            "--sandbox-socket",
            "PATH",
            "a UNIX socket that may be connected to",
        )
        .of(Kind::File)
        .repeated(),
        Flag::valued(
            "--sandbox-network",
            "MODE",
            "none or open: the way out of the machine (none)",
        )
        .of(Kind::OneOf(&["none", "open"])),
    ],
};

static REPORT: Section = Section {
    title: "Report",
    flags: &[Flag::valued(
        "--report",
        "FILE",
        "write what was refused to this file, as JSON",
    )
    .of(Kind::File)],
};

pub static SANDBOX: Command = Command {
    usage: &["[flags] -- COMMAND [ARGUMENT…]"],
    arguments: &[Argument {
        name: "COMMAND",
        kind: Kind::File,
        count: Count::Several,
    }],
    flags: &[&SANDBOX_SECTION, &REPORT],
    text: "The command and everything that it starts write to the current directory, its git directory and a temporary\n\
           directory only, read everything but secrets, and reach no network but servers of their own.",
    notes: "Exit codes: that of the command, 128 and the signal that ended it, 127 if it cannot be started, 2 if it cannot be\n\
            confined as you asked: it does not run then.",
    examples: &[
        "pinion sandbox -- make test",
        "pinion sandbox --sandbox read-only --report denied.json -- sh review.sh",
        "pinion sandbox --sandbox-write ~/.cache/pip --sandbox-network open -- pip install -r requirements.txt",
    ],
    ..Command::new("sandbox", "Run a command that the kernel confines")
};
