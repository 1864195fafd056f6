//! The tables of the commands for packages: `install`, `remove`, `update` and `list`.

use super::JSON;
use crate::table::{Argument, Command, Flag, Kind, Section};

const LOCAL: Flag = Flag::bare(
    "--local",
    "for this project (.pi/settings.json) instead of for you",
)
.or(&["-l"]);
const OFFLINE: Flag = Flag::bare("--offline", "fetch nothing; the same as PI_OFFLINE=1");

static PLACE: Section = Section {
    title: "Flags",
    flags: &[LOCAL, OFFLINE],
};

const SOURCES: &str = "A SOURCE is one of\n  \
    npm:NAME[@VERSION]        npm fetches it from the registry it is configured for\n  \
    git:HOST/PATH[@REF], https://…, ssh://…\n                            \
    git fetches it; REF is a branch, a tag or a commit\n  \
    DIRECTORY or FILE.ts      used in place\n  \
    FILE.tgz                  unpacked; needs neither npm nor git\n\n\
    Packages bring extensions, skills and prompt templates; the settings name them under \"packages\". No script of a\n\
    package runs while it is installed. Its extensions run in every later session, with your permissions: install\n\
    only packages you trust.";

pub static INSTALL: Command = Command {
    arguments: &[Argument::one("SOURCE", Kind::File)],
    flags: &[&PLACE],
    notes: SOURCES,
    examples: &[
        "pinion install npm:@someone/pi-tools@1.2.0",
        "pinion install git:git.example.org/someone/tools@v2 --local",
        "pinion install ./my-extensions",
        "pinion install ./someone-pi-tools-1.2.0.tgz",
    ],
    ..Command::new("install", "Fetch a package and use it from now on")
};

pub static REMOVE: Command = Command {
    aliases: &["uninstall"],
    arguments: &[Argument::one("SOURCE", Kind::Text)],
    flags: &[&PLACE],
    notes: SOURCES,
    examples: &["pinion remove npm:@someone/pi-tools"],
    ..Command::new(
        "remove",
        "Stop using a package, and delete it if it was fetched",
    )
};

pub static UPDATE: Command = Command {
    arguments: &[Argument::optional("SOURCE", Kind::Text)],
    flags: &[&Section {
        title: "Flags",
        flags: &[OFFLINE],
    }],
    notes: SOURCES,
    examples: &["pinion update", "pinion update npm:@someone/pi-tools"],
    ..Command::new(
        "update",
        "Fetch packages again that are not pinned or are missing",
    )
};

pub static LIST: Command = Command {
    flags: &[&Section {
        title: "Flags",
        flags: &[OFFLINE, JSON],
    }],
    examples: &["pinion list", "pinion list --json"],
    ..Command::new("list", "List the packages")
};
