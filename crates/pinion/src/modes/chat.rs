//! The chat on a terminal: one session with all features of the other modes, and a user who can answer questions.

pub(crate) mod capture;
mod host;
mod life;
mod numbered;

use std::io::{self, BufRead};
use std::process::ExitCode;
use std::sync::Arc;

use pinion_jsonl::stdio;
use pinion_pi::{Dialect, Prompts};
use pinion_tui::{
    Background, Chat, ChatEnding, Colours, Options, PlainOptions, Terminal, plain_chat,
};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use self::host::SessionHost;
use self::life::Life;
use super::conversation::opening;
use crate::cli::Flags;
use crate::engine::{Basis, Shared, session_directory};
use crate::failure::Failure;
use crate::program::Program;
use crate::runtime;
use crate::signals::Ending;

/// Runs a chat with the user at the terminal until the user leaves.
pub(crate) fn chat(program: Program, flags: Box<Flags>) -> Result<ExitCode, Failure> {
    let opening = opening(&flags)?;
    let ended = match flags.plain || is_dumb() {
        true => in_lines(program, flags, opening)?,
        false => on_screen(program, flags, opening)?,
    };
    let Some(ended) = ended else {
        return Ok(ExitCode::SUCCESS);
    };
    say_how_to_go_on(program, &ended);
    Ok(ExitCode::from(ended.exit_code))
}

/// Reports whether the terminal can only print lines.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb")
}

/// Runs the chat on the whole screen. Returns `None` if the user picked no session.
fn on_screen(
    program: Program,
    mut flags: Box<Flags>,
    opening: Prompts,
) -> Result<Option<ChatEnding>, Failure> {
    let (feed, reader) = pinion_tui::feed();
    let (output, printed) = capture::claim(feed.clone())?;
    let basis = modern_basis(&flags)?;
    let options = Options {
        cwd: basis.dirs.cwd.clone(),
        home: basis.dirs.home.clone(),
        background: background(&flags, &basis),
        colours: colours(),
        texts: opening.texts,
        images: opening.images,
    };
    let mut chat = Chat::open(Terminal::open(output)?, options)?;
    let runtime = runtime::build()?;
    let mut signals = Ending::listen_to_all(&runtime)?.and_to_quit(&runtime)?;
    let shared = Shared::new(&basis.dirs);
    let host = Arc::new(SessionHost::new(&basis, &flags, feed.clone()));
    let ended = runtime.block_on(async {
        if flags.resume {
            let picked = tokio::select! {
                picked = chat.choose_session(Arc::clone(&host) as _) => picked?,
                code = signals.signalled() => return Ok(Some(ended_with(code))),
            };
            match picked {
                Some(path) => flags.session = Some(path.display().to_string()),
                None => return Ok(None),
            }
        }
        let shown = chat.run(Arc::clone(&host) as _, reader);
        let life = Life {
            program,
            flags: &flags,
            basis,
            shared: &shared,
            host,
            feed,
        };
        let ended = Box::pin(life.lead(shown, Some(printed), &mut signals));
        ended.await.map(Some)
    });
    leave(runtime, &shared);
    ended
}

/// Runs the chat in plain lines. Returns `None` if the user picked no session.
fn in_lines(
    program: Program,
    mut flags: Box<Flags>,
    opening: Prompts,
) -> Result<Option<ChatEnding>, Failure> {
    let mut output = stdio::claim_stdout()?;
    let mut input = typed_lines()?;
    let (feed, reader) = pinion_tui::feed();
    let basis = modern_basis(&flags)?;
    if flags.resume {
        let place = session_directory(&basis.dirs, &flags, &basis.settings);
        let found = place.map_or_else(Vec::new, |place| pinion_session::list(&place));
        match numbered::pick(&found, &mut output, || input.blocking_recv())? {
            Some(session) => flags.session = Some(session.path.display().to_string()),
            None => return Ok(None),
        }
    }
    let options = PlainOptions {
        output: Box::new(output),
        input,
        texts: opening.texts,
        images: opening.images,
    };
    let runtime = runtime::build()?;
    let mut signals = Ending::listen_to_all(&runtime)?.and_to_quit(&runtime)?;
    let shared = Shared::new(&basis.dirs);
    let host = Arc::new(SessionHost::new(&basis, &flags, feed.clone()));
    let ended = runtime.block_on(async {
        let shown = plain_chat(options, Arc::clone(&host) as _, reader);
        let life = Life {
            program,
            flags: &flags,
            basis,
            shared: &shared,
            host,
            feed,
        };
        Box::pin(life.lead(shown, None, &mut signals)).await
    });
    leave(runtime, &shared);
    ended.map(Some)
}

/// Reads the basis with the modern dialect: tool calls run in parallel, and later commands exist.
fn modern_basis(flags: &Flags) -> Result<Basis, Failure> {
    let mut basis = Basis::read(flags)?;
    basis.dialect = Dialect::Modern;
    Ok(basis)
}

/// Lines that are read ahead of the chat. The rest waits in the terminal or pipe.
const TYPED_AHEAD: usize = 16;

/// Returns the lines of standard input until its end. A thread reads them.
pub(crate) fn typed_lines() -> io::Result<mpsc::Receiver<String>> {
    let (lines, typed) = mpsc::channel(TYPED_AHEAD);
    let read = move || {
        for line in readable(io::stdin().lock()) {
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("typed".to_owned())
        .spawn(read)?;
    Ok(typed)
}

/// Returns the lines of an input until its end. Bytes that are not UTF-8 are replaced; the rest of the line is used.
fn readable(input: impl BufRead) -> impl Iterator<Item = String> {
    let lines = input.split(b'\n').map_while(Result::ok);
    lines.map(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        String::from_utf8_lossy(line).into_owned()
    })
}

/// Kills child processes, saves preferences and shuts the runtime down.
fn leave(runtime: Runtime, shared: &Shared) {
    pinion_process::kill_all();
    shared.preferences.flush();
    runtime.shutdown_background();
}

/// Returns the ending of a chat in which no session was started.
fn ended_with(exit_code: u8) -> ChatEnding {
    ChatEnding {
        exit_code,
        session: None,
    }
}

fn say_how_to_go_on(program: Program, ended: &ChatEnding) {
    let Some(session) = &ended.session else {
        return;
    };
    // A session without an answer leaves no file behind.
    if session.file.exists() {
        let program = program.name();
        eprintln!(
            "To go on with this session: {program} --session {}",
            session.id
        );
    }
}

/// Returns the background that the flags, the settings or the environment name; `None` asks the terminal.
fn background(flags: &Flags, basis: &Basis) -> Option<Background> {
    let setting = basis.settings.get("theme").and_then(|theme| theme.as_str());
    background_of(flags.theme.as_deref().or(setting))
}

/// Returns the background that `theme` names, else the one of the environment.
pub(crate) fn background_of(theme: Option<&str>) -> Option<Background> {
    match theme {
        Some("dark") => Some(Background::Dark),
        Some("light") => Some(Background::Light),
        _ => pinion_tui::named_background(),
    }
}

/// Returns the number of colours that the terminal's environment announces. For none see <https://no-color.org>.
pub(crate) fn colours() -> Colours {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let terminal = std::env::var("TERM").unwrap_or_default();
    let known = [
        "256color",
        "direct",
        "kitty",
        "ghostty",
        "alacritty",
        "foot",
        "wezterm",
    ];
    if is_set("NO_COLOR") {
        Colours::None
    } else if is_set("COLORTERM") || known.iter().any(|part| terminal.contains(part)) {
        Colours::Many
    } else {
        Colours::Palette
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_is_no_text_costs_itself_and_nothing_else() {
        let typed: &[u8] = b"first\ncaf\xe9 at four\r\n\nlast";
        let lines: Vec<String> = readable(typed).collect();
        assert_eq!(lines, ["first", "caf\u{fffd} at four", "", "last"]);
    }
}
