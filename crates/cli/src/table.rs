//! The types of the tables: commands, flags and arguments.

/// The values that a flag or an argument accepts. Completions depend on it; the command itself checks the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    File,
    Directory,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// The id of a stored session.
    Session,
    /// The name of a model.
    Model,
    /// The alias of a clip of the hub.
    Clip,
    /// The id of a fleet run.
    FleetRun,
}

impl Kind {
    /// Returns the word for values that only the program can list, as in `pinion __complete KIND`.
    pub fn listed_as(self) -> Option<&'static str> {
        match self {
            Self::Session => Some("session"),
            Self::Model => Some("model"),
            Self::Clip => Some("clip"),
            Self::FleetRun => Some("run"),
            Self::Text | Self::File | Self::Directory | Self::OneOf(_) => None,
        }
    }
}

/// The value after a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    None,
    Required(&'static str, Kind),
    /// The next argument, unless it begins with `-` or `@`.
    Optional(&'static str, Kind),
    /// Only a value that `=` joins to the flag.
    Joined(&'static str, Kind),
}

/// A flag of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flag {
    /// The long form, with its dashes.
    pub name: &'static str,
    /// Short forms and synonyms, with their dashes.
    pub others: &'static [&'static str],
    pub value: Value,
    /// The flag may be given several times, and every value counts.
    pub repeats: bool,
    pub help: &'static str,
}

impl Flag {
    /// Creates a flag without a value.
    pub const fn bare(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            others: &[],
            value: Value::None,
            repeats: false,
            help,
        }
    }

    /// Creates a flag with a value, which the help shows as `value`.
    pub const fn valued(name: &'static str, value: &'static str, help: &'static str) -> Self {
        Self {
            value: Value::Required(value, Kind::Text),
            ..Self::bare(name, help)
        }
    }

    /// Adds short forms such as `-f`, and synonyms.
    pub const fn or(mut self, others: &'static [&'static str]) -> Self {
        self.others = others;
        self
    }

    /// Sets the kind of the value.
    pub const fn of(mut self, kind: Kind) -> Self {
        self.value = match self.value {
            Value::None => Value::None,
            Value::Required(name, _) => Value::Required(name, kind),
            Value::Optional(name, _) => Value::Optional(name, kind),
            Value::Joined(name, _) => Value::Joined(name, kind),
        };
        self
    }

    /// Makes the value optional.
    pub const fn optional(mut self) -> Self {
        if let Value::Required(name, kind) = self.value {
            self.value = Value::Optional(name, kind);
        }
        self
    }

    /// Makes the value optional, and accepts it only after `=`.
    pub const fn joined(mut self) -> Self {
        if let Value::Required(name, kind) = self.value {
            self.value = Value::Joined(name, kind);
        }
        self
    }

    /// Lets the flag be given several times.
    pub const fn repeated(mut self) -> Self {
        self.repeats = true;
        self
    }

    /// Returns every spelling, the long form first.
    pub fn spellings(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.others.iter().copied())
    }

    /// Returns the kind of the value that may follow the flag as the next argument.
    pub fn kind(&self) -> Option<Kind> {
        match self.value {
            Value::Required(_, kind) | Value::Optional(_, kind) => Some(kind),
            Value::None | Value::Joined(..) => None,
        }
    }

    /// Returns the flag as help shows it: `-n, --tail COUNT`.
    pub fn shown(&self) -> String {
        let short = |other: &&&str| !other.starts_with("--");
        let shorts = self.others.iter().filter(short);
        let longs = self.others.iter().filter(|other| !short(other));
        let spellings: Vec<&str> = shorts.chain([&self.name]).chain(longs).copied().collect();
        let spellings = spellings.join(", ");
        match self.value {
            Value::None => spellings,
            Value::Required(value, _) => format!("{spellings} {value}"),
            Value::Optional(value, _) => format!("{spellings} [{value}]"),
            Value::Joined(value, _) => format!("{spellings}[={value}]"),
        }
    }
}

/// Flags that are shown together and may be shared by commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// The heading in the help.
    pub title: &'static str,
    pub flags: &'static [Flag],
}

/// The number of words that an argument stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    One,
    Optional,
    /// None, one or several.
    Any,
    /// One or several.
    Several,
}

/// A word after a command that is not a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    /// The name in usage lines and errors, such as `PLAN.yaml`.
    pub name: &'static str,
    pub kind: Kind,
    pub count: Count,
}

impl Argument {
    /// Creates an argument that must be given.
    pub const fn one(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            count: Count::One,
        }
    }

    /// Creates an argument that may be left out.
    pub const fn optional(name: &'static str, kind: Kind) -> Self {
        Self {
            count: Count::Optional,
            ..Self::one(name, kind)
        }
    }

    /// Creates an argument for any number of words.
    pub const fn any(name: &'static str, kind: Kind) -> Self {
        Self {
            count: Count::Any,
            ..Self::one(name, kind)
        }
    }

    /// Returns the argument as a usage line shows it.
    pub fn shown(&self) -> String {
        match self.count {
            Count::One => self.name.to_owned(),
            Count::Optional => format!("[{}]", self.name),
            Count::Any => format!("[{}…]", self.name),
            Count::Several => format!("{}…", self.name),
        }
    }
}

/// A command, or a group of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// The last word of the command; the name of the program for the whole command line.
    pub name: &'static str,
    /// Other words for the same command.
    pub aliases: &'static [&'static str],
    /// One line about the command, without a full stop.
    pub about: &'static str,
    /// The usage lines after the words of the command. Without any, one is made from arguments and flags.
    pub usage: &'static [&'static str],
    pub arguments: &'static [Argument],
    pub flags: &'static [&'static Section],
    /// Flags of which at most one may be given.
    pub conflicts: &'static [&'static [&'static str]],
    /// Flags that have no effect without another one: the flag, then the one it needs.
    pub requirements: &'static [(&'static str, &'static str)],
    /// The number of words after which all arguments are passed on unparsed.
    pub raw_after: Option<usize>,
    /// Paragraphs of the help before the flags.
    pub text: &'static str,
    /// Paragraphs of the help after the flags.
    pub notes: &'static str,
    /// Whole command lines.
    pub examples: &'static [&'static str],
    /// The commands of a group.
    pub commands: &'static [&'static Command],
    /// The command of the group that runs if none is named.
    pub otherwise: Option<&'static Command>,
}

impl Command {
    /// Creates a command without flags and arguments.
    pub const fn new(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            aliases: &[],
            about,
            usage: &[],
            arguments: &[],
            flags: &[],
            conflicts: &[],
            requirements: &[],
            raw_after: None,
            text: "",
            notes: "",
            examples: &[],
            commands: &[],
            otherwise: None,
        }
    }

    /// Returns all flags, in the order of the help.
    pub fn all_flags(&self) -> impl Iterator<Item = &'static Flag> + use<> {
        self.flags.iter().flat_map(|section| section.flags)
    }

    /// Finds a flag by any of its spellings.
    pub fn flag(&self, written: &str) -> Option<&'static Flag> {
        self.all_flags()
            .find(|flag| flag.spellings().any(|spelling| spelling == written))
    }

    /// Finds a command of the group by its word.
    pub fn command(&self, word: &str) -> Option<&'static Command> {
        let mut commands = self.commands.iter().copied();
        commands.find(|command| command.name == word || command.aliases.contains(&word))
    }

    /// Returns every word that names a command of the group.
    pub fn words(&self) -> impl Iterator<Item = &'static str> + use<> {
        let words = |command: &&'static Command| {
            std::iter::once(command.name).chain(command.aliases.iter().copied())
        };
        self.commands.iter().flat_map(words)
    }
}
