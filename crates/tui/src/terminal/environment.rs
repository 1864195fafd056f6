//! Properties of the terminal that its environment names.

use std::io::IsTerminal;

use super::background::named_background;
use crate::{Background, Colours};

/// Parts of the names of terminals with more than sixteen colours.
const MANY_COLOURS: [&str; 7] = [
    "256color",
    "direct",
    "kitty",
    "ghostty",
    "alacritty",
    "foot",
    "wezterm",
];

/// Reports whether the terminal can only print lines, so that it has no place for a screen.
pub fn only_prints_lines() -> bool {
    std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb")
}

/// Reports whether text on this stream may have colours: it is a terminal that shows them, and `NO_COLOR` is not set.
pub fn has_colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && !only_prints_lines() && Colours::from_environment() != Colours::None
}

/// Returns the background that `theme` names, else the one of the environment.
pub fn background_of(theme: Option<&str>) -> Option<Background> {
    match theme {
        Some("dark") => Some(Background::Dark),
        Some("light") => Some(Background::Light),
        _ => named_background(),
    }
}

impl Colours {
    /// Returns the colours that the environment announces. For none see <https://no-color.org>.
    pub fn from_environment() -> Self {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let terminal = std::env::var("TERM").unwrap_or_default();
        if is_set("NO_COLOR") {
            Self::None
        } else if is_set("COLORTERM") || MANY_COLOURS.iter().any(|part| terminal.contains(part)) {
            Self::Many
        } else {
            Self::Palette
        }
    }
}
