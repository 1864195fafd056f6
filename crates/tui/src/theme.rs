//! How things look. Colours are those of the terminal's own palette, so that they fit what the user chose.

use ratatui::style::{Color, Modifier, Style};

/// What the terminal's background is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// Light on dark.
    Dark,
    /// Dark on light.
    Light,
}

/// Whether colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// The sixteen of the terminal.
    Palette,
    /// None: weight, slant and underlining only.
    None,
}

/// The styles of everything there is to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Theme {
    pub text: Style,
    pub dim: Style,
    pub accent: Style,
    pub user: Style,
    pub thinking: Style,
    pub heading: Style,
    pub emphasis: Style,
    pub strong: Style,
    pub code: Style,
    pub link: Style,
    pub quote: Style,
    pub success: Style,
    pub warning: Style,
    pub error: Style,
    pub added: Style,
    pub removed: Style,
    pub selected: Style,
    pub border: Style,
    pub keyword: Style,
    pub string: Style,
    pub number: Style,
    pub comment: Style,
    pub function: Style,
    pub kind: Style,
}

impl Theme {
    /// The styles for a terminal.
    pub fn new(background: Background, colours: Colours) -> Self {
        let plain = Style::new();
        let with = |dark: Color, light: Color| match (colours, background) {
            (Colours::None, _) => plain,
            (Colours::Palette, Background::Dark) => plain.fg(dark),
            (Colours::Palette, Background::Light) => plain.fg(light),
        };
        let faint = match colours {
            Colours::None => plain.add_modifier(Modifier::DIM),
            Colours::Palette => with(Color::DarkGray, Color::DarkGray),
        };
        let accent = with(Color::Cyan, Color::Blue);
        Self {
            text: plain,
            dim: faint,
            accent,
            user: accent.add_modifier(Modifier::BOLD),
            thinking: faint.add_modifier(Modifier::ITALIC),
            heading: accent.add_modifier(Modifier::BOLD),
            emphasis: plain.add_modifier(Modifier::ITALIC),
            strong: plain.add_modifier(Modifier::BOLD),
            code: with(Color::Yellow, Color::Magenta),
            link: with(Color::LightBlue, Color::Blue).add_modifier(Modifier::UNDERLINED),
            quote: faint.add_modifier(Modifier::ITALIC),
            success: with(Color::Green, Color::Green),
            warning: with(Color::Yellow, Color::Magenta).add_modifier(Modifier::BOLD),
            error: with(Color::Red, Color::Red).add_modifier(Modifier::BOLD),
            added: with(Color::Green, Color::Green),
            removed: with(Color::Red, Color::Red),
            selected: plain.add_modifier(Modifier::REVERSED),
            border: faint,
            keyword: with(Color::Magenta, Color::Magenta),
            string: with(Color::Green, Color::Green),
            number: with(Color::LightBlue, Color::Blue),
            comment: faint.add_modifier(Modifier::ITALIC),
            function: with(Color::LightBlue, Color::Blue),
            kind: with(Color::Cyan, Color::Cyan),
        }
    }
}
