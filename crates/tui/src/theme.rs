//! Styles of everything on the screen.
//!
//! Colours come from the terminal's own palette, so that they fit the user's choice. Where the
//! palette is too pale for a light background, darker tones of the larger palette are used, or
//! none. Less important text is dimmed instead of coloured, because the grey of many palettes
//! cannot be read.

use ratatui::style::{Color, Modifier, Style};

/// The background of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// Light text on a dark background.
    Dark,
    /// Dark text on a light background.
    Light,
}

/// The colours that the terminal supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// The sixteen colours of the terminal's palette.
    Palette,
    /// The sixteen of the palette and the 240 after them.
    Many,
    /// No colours: weight, slant and underlining only.
    None,
}

/// Tones of the larger palette that can be read on white.
const DARK_GREEN: u8 = 22;
const DARK_CYAN: u8 = 24;

/// The styles of everything on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Adapts a style to text drawn over a rule, which is dimmed.
pub(crate) fn on_rule(style: Style) -> Style {
    if style.add_modifier.contains(Modifier::DIM) {
        style
    } else {
        style.remove_modifier(Modifier::DIM)
    }
}

impl Theme {
    /// Creates the styles for a terminal.
    pub fn new(background: Background, colours: Colours) -> Self {
        let plain = Style::new();
        let with = |dark: Color, light: Color| match (colours, background) {
            (Colours::None, _) => plain,
            (_, Background::Dark) => plain.fg(dark),
            (_, Background::Light) => plain.fg(light),
        };
        // The palette's tones are pale on white; `instead` is used where no darker tone is
        // available.
        let darker = |dark: Color, light: u8, instead: Style| match (colours, background) {
            (Colours::None, _) => plain,
            (_, Background::Dark) => plain.fg(dark),
            (Colours::Many, Background::Light) => plain.fg(Color::Indexed(light)),
            (Colours::Palette, Background::Light) => instead,
        };
        let bold = plain.add_modifier(Modifier::BOLD);
        let good = darker(Color::Green, DARK_GREEN, bold);
        let faint = plain.add_modifier(Modifier::DIM);
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
            success: good,
            warning: with(Color::Yellow, Color::Magenta).add_modifier(Modifier::BOLD),
            error: with(Color::Red, Color::Red).add_modifier(Modifier::BOLD),
            added: good,
            removed: with(Color::Red, Color::Red),
            selected: plain.add_modifier(Modifier::REVERSED),
            border: faint,
            keyword: with(Color::Magenta, Color::Magenta),
            string: darker(Color::Green, DARK_GREEN, plain),
            number: with(Color::LightBlue, Color::Blue),
            comment: faint.add_modifier(Modifier::ITALIC),
            function: with(Color::LightBlue, Color::Blue),
            kind: darker(Color::Cyan, DARK_CYAN, plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn styles(theme: &Theme) -> [Style; 24] {
        [
            theme.text,
            theme.dim,
            theme.accent,
            theme.user,
            theme.thinking,
            theme.heading,
            theme.emphasis,
            theme.strong,
            theme.code,
            theme.link,
            theme.quote,
            theme.success,
            theme.warning,
            theme.error,
            theme.added,
            theme.removed,
            theme.selected,
            theme.border,
            theme.keyword,
            theme.string,
            theme.number,
            theme.comment,
            theme.function,
            theme.kind,
        ]
    }

    /// Contrast ratio between white and a tone of the larger palette; from 4.5 it can be read.
    fn contrast_with_white(tone: u8) -> f64 {
        let share = |step: u8| {
            let value = [0.0, 95.0, 135.0, 175.0, 215.0, 255.0][usize::from(step)] / 255.0;
            if value <= 0.04045 {
                value / 12.92
            } else {
                f64::powf((value + 0.055) / 1.055, 2.4)
            }
        };
        let cube = tone - 16;
        let (red, green, blue) = (cube / 36, cube / 6 % 6, cube % 6);
        let luminance = 0.2126 * share(red) + 0.7152 * share(green) + 0.0722 * share(blue);
        1.05 / (luminance + 0.05)
    }

    #[test]
    fn nothing_is_too_pale_to_be_read() {
        for colours in [Colours::Palette, Colours::Many, Colours::None] {
            for background in [Background::Dark, Background::Light] {
                for style in styles(&Theme::new(background, colours)) {
                    let colour = style.fg.unwrap_or(Color::Reset);
                    assert_ne!(colour, Color::DarkGray, "{background:?} {colours:?}");
                    let pale = [Color::Green, Color::Cyan, Color::Yellow];
                    assert!(
                        background == Background::Dark || !pale.contains(&colour),
                        "{colour:?} on white"
                    );
                    if let Color::Indexed(tone) = colour {
                        assert!(contrast_with_white(tone) >= 4.5, "{tone}");
                    }
                }
            }
        }
    }
}
