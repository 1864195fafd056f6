//! Words that are not prompts: a misspelled command, a command of a comparable tool, a prompt without its quotes. Each
//! would otherwise be sent to a model that can call tools.

use pinion_text::nearest;

use crate::prompt_line::PromptLine;
use crate::tables::{prompts, root};

/// Commands of comparable tools, with the hint to pinion's counterpart.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (
        &["account", "whoami", "key", "keys", "signin", "signup"],
        "To sign in to a provider or store its key, use `pinion login`. Keys also come from the environment, such as ANTHROPIC_API_KEY, or from auth.json; `pinion doctor` shows what is set.",
    ),
    (
        &["configure", "settings", "setup", "init", "onboard", "env"],
        "Settings are kept in settings.json; `pinion doctor` checks them.",
    ),
    (
        &[
            "serve", "server", "start", "daemon", "service", "up", "web", "ui",
        ],
        "To run a hub, use `pinion hub serve`; to serve a client, use `pinion --mode rpc`.",
    ),
    (
        &["stop", "down", "status", "token", "tokens", "ps"],
        "For a hub, see `pinion hub --help`.",
    ),
    (
        &["logs", "log", "clips"],
        "For clips, see `pinion clip --help`.",
    ),
    (
        &["run", "exec", "ask", "prompt", "print", "query"],
        "To run one prompt, use `pinion -p \"PROMPT\"`.",
    ),
    (&["rpc", "json", "acp"], "See --mode in `pinion --help`."),
    (
        &["chat", "tui", "repl"],
        "To chat, run `pinion` on a terminal.",
    ),
    (
        &["resume", "continue", "session", "history", "fork"],
        "Use `pinion --continue`, `pinion --resume` or `pinion sessions list`.",
    ),
    (&["version"], "Use `pinion --version`."),
    (
        &[
            "upgrade",
            "add",
            "get",
            "plugin",
            "plugins",
            "extension",
            "package",
            "packages",
            "rm",
            "delete",
        ],
        "For packages, see `pinion install --help`; for clips, `pinion clip --help`.",
    ),
    (
        &["model", "provider", "providers"],
        "`pinion models` lists the models; --model chooses one.",
    ),
    (
        &["agent", "agents", "task", "tasks", "workflow", "review"],
        "To run several agents, see `pinion fleet --help`.",
    ),
    (
        &["tool", "tools", "skill", "skills"],
        "See --tools and --skill in `pinion --help`.",
    ),
    (
        &[
            "profile",
            "completion",
            "export",
            "import",
            "show",
            "ls",
            "info",
            "new",
            "create",
            "debug",
        ],
        "`pinion --help` lists the commands.",
    ),
];

impl PromptLine {
    /// Refuses words that were most likely not meant as prompts.
    pub fn check_words(&self) -> Result<(), String> {
        let literal = self.literal_from.unwrap_or(self.messages.len());
        let typed = &self.messages[..literal.min(self.messages.len())];
        let program = self.table.name;
        let is_pi = program == root::PI.name;
        // pi looks for commands only in the first argument.
        let looks = !is_pi || self.begins_with_word;
        if let Some(word) = typed.first().filter(|word| looks && is_bare(word))
            && let Some(hint) = hint(is_pi, word)
        {
            let anyway = match self.messages.len() {
                1 => format!("pinion -p -- {word}"),
                _ => format!("pinion -p {:?}", self.messages.join(" ")),
            };
            return Err(format!("{hint} To send it as a prompt: {anyway}"));
        }
        let unquoted = if is_pi {
            typed.len() > 1 && typed.iter().all(|word| is_bare(word))
        } else {
            self.messages.len() > 1 && self.messages.iter().any(|word| is_bare(word))
        };
        if unquoted {
            let count = self.messages.len();
            return Err(format!(
                "{count} arguments would be {count} separate prompts. Quote a prompt that has several words: \
                 {program} -p {:?}",
                self.messages.join(" ")
            ));
        }
        Ok(())
    }
}

/// Returns the words that begin a command. `run` is one only before `--format`.
fn commands() -> impl Iterator<Item = &'static str> {
    let words = root::PINION.words();
    words.filter(|word| *word != prompts::RUN.name)
}

/// Reports whether an argument is one word, as the shell splits a prompt without quotes. Text that is not ASCII may
/// belong to a language without spaces, and a slash begins a command of the agent.
fn is_bare(argument: &str) -> bool {
    argument.is_ascii() && !argument.contains(char::is_whitespace) && !argument.starts_with('/')
}

/// Returns the reason why `word` is not a prompt and the command to use instead; `None` if it may be a prompt.
fn hint(is_pi: bool, word: &str) -> Option<String> {
    let plain = word.to_ascii_lowercase();
    if commands().any(|command| command == plain) {
        return Some(if is_pi {
            format!("{word:?} is a command of pinion: run `pinion {plain} …`.")
        } else {
            format!("{word:?} is a command, and commands come first: `pinion {plain} …`.")
        });
    }
    let known = ELSEWHERE
        .iter()
        .find(|(words, _)| words.contains(&plain.as_str()));
    if let Some((_, instead)) = known {
        return Some(format!("unknown command {word:?}. {instead}"));
    }
    let letters = plain.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    if !letters || plain.len() < 3 {
        return None;
    }
    let others = ELSEWHERE
        .iter()
        .flat_map(|(words, _)| words.iter().copied());
    let near = nearest(&plain, commands())
        .or_else(|| nearest(&plain, others.filter(|other| other.len() > 3)))?;
    Some(format!("unknown command {word:?}. Did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::Lexer;
    use crate::table::Command;

    fn checked(table: &'static Command, line: &[&str]) -> Result<(), String> {
        let lexer = Lexer::new(table, line.iter().map(ToString::to_string));
        PromptLine::read(lexer).unwrap().check_words()
    }

    #[test]
    fn words_that_are_not_prompts_are_refused_with_a_hint() {
        for (line, said) in [
            (&["hbu", "serve"][..], "Did you mean `hub`?"),
            (&["whoami"], "pinion login"),
            (&["Keys"], "ANTHROPIC_API_KEY"),
            (
                &["--offline", "login"],
                "commands come first: `pinion login …`",
            ),
            (&["lgoin"], "Did you mean `login`?"),
            (&["--no-session", "configure"], "settings.json"),
            (&["init"], "settings.json"),
            (&["sesions"], "Did you mean `sessions`?"),
            (
                &["--offline", "hub", "serve"],
                "commands come first: `pinion hub …`",
            ),
            (&["-p", "hbu"], "pinion -p -- hbu"),
            (
                &["-p", "list", "the", "files"],
                "pinion -p \"list the files\"",
            ),
            (&["-p", "fix", "the \"big\" bug"], "2 separate prompts"),
            (&["-p", "--", "what", "now"], "pinion -p \"what now\""),
        ] {
            let error = checked(&root::PINION, line).unwrap_err();
            assert!(error.contains(said), "{line:?}: {error}");
        }
        for line in [
            &["--no-session", "auth", "print-api-key"][..],
            &["lst"],
            &["one", "two"],
        ] {
            checked(&root::PI, line).unwrap_err();
        }
    }

    #[test]
    fn prompts_are_not_refused() {
        for line in [
            &["list the files"][..],
            &["-p", "hello"],
            &["-p", "go"],
            &["-p", "go."],
            &["-p", "--", "login"],
            &["-p", "review this", "fix what you found"],
            &["-p", "/deploy", "then tell me"],
            &["-p", "列出文件", "然后总结"],
            &["@a.txt", "hello"],
        ] {
            assert_eq!(checked(&root::PINION, line), Ok(()), "{line:?}");
        }
        for line in [
            &["-p", "login"][..],
            &["-p", "one", "and then two"],
            &["-p", "--", "a", "b"],
        ] {
            assert_eq!(checked(&root::PI, line), Ok(()), "{line:?}");
        }
    }
}
