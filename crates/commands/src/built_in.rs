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
    /// The type of its value.
    pub kind: FieldType,
    /// The permitted values.
    pub choices: &'static [&'static str],
    /// The default, as it would be written on a command line.
    pub default: Option<&'static str>,
    /// The section of the help page.
    pub group: Group,
    /// The line on the help page.
    pub help: &'static str,
    /// The option uses standard input, so that no field may read it.
    pub claims_stdin: bool,
}

/// The sections of a help page. The names are those of the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Group {
    /// Execution and output of the command.
    Helpers,
    /// Options that only pinion has.
    Pinion,
    /// The model and its answers.
    AiChat,
    /// Connections.
    AiClient,
    /// Servers with OpenAI's protocols.
    OpenAi,
    /// Anthropic's servers.
    Claude,
    /// Google's servers.
    Gemini,
    /// Settings that override those of `ai-chat`.
    Inference,
    /// Embeddings; accepted and ignored by chats.
    Embeddings,
    /// Reranking of results; accepted and ignored by chats.
    Rerank,
    /// The choice of a profile.
    Profile,
    /// Information about a command instead of running it.
    Command,
    /// Creation of command files; in repositories only.
    Create,
    /// Logging and help.
    Root,
}

impl Group {
    /// Returns the name on help pages.
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

    /// Reports whether `--help` shows the section; `--long-help` shows all.
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

    /// Returns the environment variable that sets the option.
    pub fn variable(&self) -> String {
        variable(self.name)
    }
}
