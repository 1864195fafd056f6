//! A command together with the words that lead to it.

use crate::table::{Command, Flag};
use crate::tables;

/// A command and the words that name it, the program's name first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub command: &'static Command,
    words: String,
}

impl Place {
    /// Returns the place of a whole command line.
    pub fn root(command: &'static Command) -> Self {
        Self {
            command,
            words: command.name.to_owned(),
        }
    }

    /// Returns the place of `command` after `words`, the words without its own name.
    pub fn below(words: &str, command: &'static Command) -> Self {
        Self {
            command,
            words: format!("{words} {}", command.name),
        }
    }

    /// Returns the place that the words lead to, as far as they name commands.
    pub fn find<'w>(root: &'static Command, words: impl IntoIterator<Item = &'w str>) -> Self {
        let mut place = Self::root(root);
        for word in words {
            match place.command.command(word) {
                Some(command) => place = Self::below(&place.words, command),
                None => break,
            }
        }
        place
    }

    /// Returns all words, such as `pinion hub serve`.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// Returns the words without the name of the program.
    pub fn name(&self) -> &str {
        self.words.split_once(' ').map_or("", |(_, name)| name)
    }

    /// Returns the flags that the command accepts because every command of the program does. There are none for a group
    /// whose command must be named, for a command that parses its arguments itself, and for one whose table has one
    /// of them: it has all, or a flag of the same name with another meaning.
    pub fn common_flags(&self) -> &'static [Flag] {
        let command = self.command;
        let is_group = !command.commands.is_empty() && command.otherwise.is_none();
        let is_unparsed = command.flags.is_empty() && command.raw_after.is_some();
        let program = self.words.split(' ').next().unwrap_or_default();
        let flags = tables::common(program);
        let has_own = flags.iter().any(|flag| command.flag(flag.name).is_some());
        if is_group || is_unparsed || has_own {
            return &[];
        }
        flags
    }

    /// Returns all flags of the command, in the order of the help.
    pub fn all_flags(&self) -> impl Iterator<Item = &'static Flag> + use<> {
        self.command.all_flags().chain(self.common_flags())
    }

    /// Returns the places of the commands of the group.
    pub fn children(&self) -> impl Iterator<Item = Self> + '_ {
        let commands = self.command.commands.iter();
        commands.map(|command| Self::below(&self.words, command))
    }

    /// Returns this place and all below it, each before those below it.
    pub fn all(&self) -> Vec<Self> {
        let below = self.children().flat_map(|child| child.all());
        std::iter::once(self.clone()).chain(below).collect()
    }

    /// Returns the usage lines.
    pub fn usage(&self) -> Vec<String> {
        let Self { command, words } = self;
        if !command.usage.is_empty() {
            let line = |rest: &&str| format!("{words} {rest}").trim_end().to_owned();
            return command.usage.iter().map(line).collect();
        }
        let mut line = words.clone();
        if !command.commands.is_empty() {
            let word = match command.otherwise {
                Some(_) => " [COMMAND]",
                None => " COMMAND",
            };
            line.push_str(word);
        }
        for argument in command.arguments {
            line.push(' ');
            line.push_str(&argument.shown());
        }
        if !command.flags.is_empty() {
            line.push_str(" [flags]");
        }
        vec![line]
    }
}
