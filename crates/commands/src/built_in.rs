//! Options that every command has.

use crate::field::{FieldType, variable};
pub use crate::options::BUILT_INS;

/// An option of the program itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BuiltIn {
    /// The name, without dashes.
    pub name: &'static str,
    /// The letter after a single dash.
    pub short: Option<char>,
    /// What may be given.
    pub kind: FieldType,
    /// What may be chosen from.
    pub choices: &'static [&'static str],
    /// What it is when nobody gives it, as it would be written.
    pub default: Option<&'static str>,
    /// The part of a help page it stands in.
    pub group: Group,
    /// What it is for.
    pub help: &'static str,
    /// Whether it needs standard input for itself, so that no field may read it.
    pub claims_stdin: bool,
}

/// The parts of a help page. The names are those of the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Group {
    /// How the command runs and what it prints.
    Helpers,
    /// What only this program has.
    Pinion,
    /// The model and its answers.
    AiChat,
    /// Connections.
    AiClient,
    /// Servers that speak OpenAI's protocols.
    OpenAi,
    /// Anthropic's.
    Claude,
    /// Google's.
    Gemini,
    /// Settings that go before those of `ai-chat`.
    Inference,
    /// Vectors for texts; accepted, of no use to chats.
    Embeddings,
    /// Sorting of results; accepted, of no use to chats.
    Rerank,
    /// Which profile is used.
    Profile,
    /// Looking at a command instead of running it.
    Command,
    /// Writing new command files; in repositories only.
    Create,
    /// Logging and help.
    Root,
}

impl Group {
    /// The name on help pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Helpers => "geppetto-helpers",
            Self::Pinion => "pinion",
            Self::AiChat => "ai-chat",
            Self::AiClient => "ai-client",
            Self::OpenAi => "openai-chat",
            Self::Claude => "claude-chat",
            Self::Gemini => "gemini-chat",
            Self::Inference => "ai-inference",
            Self::Embeddings => "embeddings",
            Self::Rerank => "rerank",
            Self::Profile => "profile-settings",
            Self::Command => "command-settings",
            Self::Create => "create-command-settings",
            Self::Root => "global",
        }
    }

    /// Whether `--help` shows it; `--long-help` shows all.
    pub fn is_common(self) -> bool {
        matches!(self, Self::Helpers | Self::Pinion)
    }
}

impl BuiltIn {
    pub(crate) const fn new(
        group: Group,
        name: &'static str,
        kind: FieldType,
        default: Option<&'static str>,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            short: None,
            kind,
            choices: &[],
            default,
            group,
            help,
            claims_stdin: false,
        }
    }

    pub(crate) const fn of(mut self, choices: &'static [&'static str]) -> Self {
        self.choices = choices;
        self
    }

    pub(crate) const fn short(mut self, letter: char) -> Self {
        self.short = Some(letter);
        self
    }

    pub(crate) const fn claiming_stdin(mut self) -> Self {
        self.claims_stdin = true;
        self
    }

    /// The variable of the environment that gives the option.
    pub fn variable(&self) -> String {
        variable(self.name)
    }
}
