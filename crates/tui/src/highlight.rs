//! Colours for code.
//!
//! A thread does all the work: it loads the syntaxes, compiles their expressions and parses the
//! lines. It starts with the first code. Lines it has not reached yet are plain. Colours never
//! change the text of a line, so nothing on the screen moves when they arrive.

mod classes;
mod worker;

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use pinion_sync::lock;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::Theme;
use worker::{Job, Jobs, Ticket};

/// Pieces of code that [`Highlighter::lines`] caches.
const MAX_CACHED: usize = 32;
/// Bytes of one piece of code that are coloured; the rest stays plain.
const MAX_CODE: usize = 256 * 1024;

/// Colours code in the background.
#[derive(Clone)]
pub(crate) struct Highlighter {
    inner: Option<Arc<Inner>>,
}

struct Inner {
    signal: Arc<Signal>,
    /// `None` if the thread could not be started.
    jobs: OnceLock<Option<Jobs>>,
    cached: Mutex<VecDeque<Code>>,
}

/// Announces the progress of the thread.
struct Signal {
    generation: AtomicU64,
    on_ready: Box<dyn Fn() + Send + Sync>,
}

impl Signal {
    fn raise(&self) {
        self.generation.fetch_add(1, Ordering::Release);
        (self.on_ready)();
    }
}

impl fmt::Debug for Highlighter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Highlighter")
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}

impl Highlighter {
    /// Starts a highlighter. It calls `on_ready` on another thread whenever there are new colours.
    pub fn start(on_ready: impl Fn() + Send + Sync + 'static) -> Self {
        let signal = Signal {
            generation: AtomicU64::new(1),
            on_ready: Box::new(on_ready),
        };
        Self {
            inner: Some(Arc::new(Inner {
                signal: Arc::new(signal),
                jobs: OnceLock::new(),
                cached: Mutex::default(),
            })),
        }
    }

    /// A highlighter that leaves all code plain.
    pub fn off() -> Self {
        Self { inner: None }
    }

    /// Increases whenever there are new colours.
    pub fn generation(&self) -> u64 {
        self.inner
            .as_ref()
            .map_or(0, |inner| inner.signal.generation.load(Ordering::Acquire))
    }

    /// Returns the lines of a piece of code, with the colours known so far. `language` may be a
    /// name, an extension or a path.
    pub fn lines(&self, language: &str, code: &str, theme: &Theme) -> Vec<Line<'static>> {
        let Some(inner) = &self.inner else {
            return Code::new(self, language, Keep::Nothing).lines(code, theme);
        };
        let mut cached = lock(&inner.cached);
        let known = cached
            .iter()
            .position(|cached| cached.begins(language, code))
            .and_then(|at| cached.remove(at));
        let mut known = known.unwrap_or_else(|| Code::new(self, language, Keep::Text));
        known.update(code);
        let lines = known.lines(code, theme);
        cached.push_front(known);
        cached.truncate(MAX_CACHED);
        lines
    }

    fn jobs(&self) -> Option<Jobs> {
        let inner = self.inner.as_ref()?;
        let start = || worker::start(Arc::clone(&inner.signal));
        inner.jobs.get_or_init(start).clone()
    }
}

/// Decides whether a piece of code stores its text, by which a longer version of it is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Text,
    Nothing,
}

/// A piece of code that may still grow, with the colours known so far.
pub(crate) struct Code {
    language: String,
    keep: Keep,
    /// Whole lines sent to the thread so far, if they are stored.
    text: String,
    sent: usize,
    /// Number of those lines whose colours were requested.
    requested: usize,
    /// The line after them, sent although it may be incomplete.
    partial: String,
    work: Option<(Arc<Ticket>, Jobs)>,
}

impl fmt::Debug for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Code")
            .field("language", &self.language)
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

impl Code {
    /// Creates an empty piece of code.
    pub fn new(highlighter: &Highlighter, language: &str, keep: Keep) -> Self {
        let known = classes::syntax_name(language);
        let jobs = known.and_then(|name| Some((name, highlighter.jobs()?)));
        Self {
            language: language.to_owned(),
            keep,
            text: String::new(),
            sent: 0,
            requested: 0,
            partial: String::new(),
            work: jobs.map(|(name, jobs)| (Arc::new(Ticket::new(name)), jobs)),
        }
    }

    /// Reports whether `code` continues the text sent so far, so that [`Code::update`] suffices.
    pub fn begins(&self, language: &str, code: &str) -> bool {
        self.keep == Keep::Text && self.language == language && code.starts_with(&self.text)
    }

    /// Sends the new part of a code that [continues](Code::begins) the text sent so far.
    pub fn update(&mut self, code: &str) {
        let new = code.get(self.text.len()..).unwrap_or_default();
        let whole = new.rfind('\n').map_or(0, |at| at + 1);
        self.push(&new[..whole]);
        self.push_partial(&new[whole..]);
    }

    /// Sends whole lines, each with its line end.
    pub fn push(&mut self, lines: &str) {
        if lines.is_empty() {
            return;
        }
        self.partial.clear();
        if self.keep == Keep::Text {
            self.text.push_str(lines);
        }
        let room = MAX_CODE.saturating_sub(self.sent).min(lines.len());
        let fitting = lines.as_bytes()[..room]
            .iter()
            .rposition(|&byte| byte == b'\n');
        let fitting = fitting.map_or("", |end| &lines[..=end]);
        // After one omitted line the state of the parser is unknown, so all later lines stay plain.
        self.sent = if fitting.len() == lines.len() {
            self.sent + lines.len()
        } else {
            MAX_CODE
        };
        if let Some((ticket, jobs)) = &self.work
            && !fitting.is_empty()
        {
            if jobs.send(Job::lines(ticket, fitting)) {
                self.requested += fitting.lines().count();
            } else {
                // The rest stays plain.
                self.sent = MAX_CODE;
            }
        }
    }

    /// Sends the beginning of a line, which is sent again when it has grown.
    pub fn push_partial(&mut self, line: &str) {
        if line.is_empty() || line == self.partial || self.sent + line.len() > MAX_CODE {
            return;
        }
        line.clone_into(&mut self.partial);
        if let Some((ticket, jobs)) = &self.work {
            // Where it is refused, the line stays plain until it is whole.
            jobs.send(Job::partial(ticket, line));
        }
    }

    /// Number of whole lines that have colours.
    pub fn ready(&self) -> usize {
        let work = self.work.as_ref();
        work.map_or(0, |(ticket, _)| ticket.found().lines.len())
    }

    /// Reports whether all colours have arrived.
    pub fn is_settled(&self) -> bool {
        let Some((ticket, _)) = &self.work else {
            return true;
        };
        let found = ticket.found();
        found.is_given_up || found.lines.len() >= self.requested
    }

    /// Returns one line, with its colours if they are known.
    pub fn line(&self, index: usize, text: &str, theme: &Theme) -> Line<'static> {
        let plain = if self.language.is_empty() {
            theme.code
        } else {
            theme.text
        };
        let mut spans = Vec::new();
        let Some((ticket, _)) = &self.work else {
            push_span(&mut spans, text, plain);
            return Line::from(spans);
        };
        let found = ticket.found();
        let pieces = match found.lines.get(index) {
            Some(pieces) => pieces.as_slice(),
            None if text.starts_with(&found.partial.0) => found.partial.1.as_slice(),
            None => &[],
        };
        let mut rest = text;
        for &(length, class) in pieces {
            let Some((piece, after)) = rest.split_at_checked(length as usize) else {
                break;
            };
            push_span(&mut spans, piece, class.style(theme));
            rest = after;
        }
        push_span(&mut spans, rest, plain);
        Line::from(spans)
    }

    fn lines(&self, code: &str, theme: &Theme) -> Vec<Line<'static>> {
        let lines = code.lines().enumerate();
        lines
            .map(|(index, text)| self.line(index, text, theme))
            .collect()
    }
}

fn push_span(spans: &mut Vec<Span<'static>>, text: &str, style: Style) {
    match spans.last_mut() {
        _ if text.is_empty() => {}
        Some(last) if last.style == style => last.content.to_mut().push_str(text),
        _ => spans.push(Span::styled(text.to_owned(), style)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Background, Colours};
    use std::sync::mpsc::{Receiver, sync_channel};
    use std::time::Duration;

    fn theme() -> Theme {
        Theme::new(Background::Dark, Colours::Palette)
    }

    fn started() -> (Highlighter, Receiver<()>) {
        let (sender, ready) = sync_channel(1);
        let highlighter = Highlighter::start(move || {
            // One that waits is enough.
            let _ = sender.try_send(());
        });
        (highlighter, ready)
    }

    /// Asks again whenever there are new colours, until the last line has some.
    fn coloured(language: &str, code: &str) -> Vec<Line<'static>> {
        let (highlighter, ready) = started();
        let plain = highlighter.lines(language, code, &theme());
        loop {
            let lines = highlighter.lines(language, code, &theme());
            if lines.last() != plain.last() {
                return lines;
            }
            ready.recv_timeout(Duration::from_secs(60)).unwrap();
        }
    }

    fn style_of(lines: &[Line<'_>], text: &str) -> Style {
        let spans = lines.iter().flat_map(|line| &line.spans);
        let found = spans.clone().find(|span| span.content.contains(text));
        found.unwrap_or_else(|| panic!("{text} in {lines:?}")).style
    }

    #[test]
    fn rust_is_coloured() {
        let code = "// why\nfn answer() -> u32 { 42 }\nlet s = \"text\";";
        let lines = coloured("rust", code);
        let theme = theme();
        assert_eq!(style_of(&lines, "why"), theme.comment);
        assert_eq!(style_of(&lines, "fn"), theme.keyword);
        assert_eq!(style_of(&lines, "answer"), theme.function);
        assert_eq!(style_of(&lines, "42"), theme.number);
        assert_eq!(style_of(&lines, "text"), theme.string);
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(text.join("\n"), code);
    }

    #[test]
    fn names_extensions_and_paths_find_a_syntax() {
        let theme = theme();
        for (language, code, word, style) in [
            ("py", "def f(): return 1", "def", theme.keyword),
            ("src/main.go", "func main() {}", "func", theme.keyword),
            ("sh", "echo \"x\"", "\"x\"", theme.string),
            ("console", "echo \"x\"", "\"x\"", theme.string),
            ("TypeScript", "const a = 1", "const", theme.keyword),
            ("jsonc", "{\"key\": \"value\"}", "value", theme.string),
            ("json", "{\"key\": \"value\"}", "key", theme.kind),
            ("diff", "-old\n+new", "new", theme.added),
            ("Dockerfile", "FROM alpine", "FROM", theme.keyword),
        ] {
            assert_eq!(
                style_of(&coloured(language, code), word),
                style,
                "{language}"
            );
        }
    }

    #[test]
    fn a_growing_code_is_read_once() {
        let (highlighter, _ready) = started();
        let inner = highlighter.inner.clone().unwrap();
        for code in [
            "let a",
            "let a = 1;\n",
            "let a = 1;\nlet b",
            "let a = 1;\nlet b = 2;\n",
        ] {
            highlighter.lines("rust", code, &theme());
        }
        assert_eq!(lock(&inner.cached).len(), 1);
        highlighter.lines("rust", "something else\n", &theme());
        assert_eq!(lock(&inner.cached).len(), 2);
    }

    #[test]
    fn without_colours_code_is_plain() {
        let lines = Highlighter::off().lines("rust", "fn main() {}\n", &theme());
        assert_eq!(
            lines,
            [Line::from(Span::styled("fn main() {}", theme().text))]
        );
        let lines = Highlighter::off().lines("", "diagram", &theme());
        assert_eq!(lines, [Line::from(Span::styled("diagram", theme().code))]);
        assert_eq!(Highlighter::off().generation(), 0);
    }
}
