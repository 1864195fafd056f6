//! A screen of a terminal as a picture: reads the escape sequences for colours and styles, and writes SVG.

use std::fmt::Write;

const CELL_WIDTH: f64 = 8.4;
const CELL_HEIGHT: f64 = 18.0;
const MARGIN: f64 = 14.0;
const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d7dae0";

/// The sixteen colours that a sequence names by number.
const PALETTE: [&str; 16] = [
    "#3b4048", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d7dae0",
    "#6b7280", "#ef8790", "#b5d99c", "#f0d399", "#8cc5f5", "#d79ae8", "#7fcfd9", "#ffffff",
];

/// The style of a cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Style {
    foreground: Option<String>,
    background: Option<String>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    reverse: bool,
}

/// Cells of one line with the same style.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    column: usize,
    text: String,
    style: Style,
}

/// Draws a screen that tmux captured with its escape sequences.
pub fn svg(capture: &str, columns: usize, rows: usize, title: &str) -> String {
    let width = columns as f64 * CELL_WIDTH + 2.0 * MARGIN;
    let height = rows as f64 * CELL_HEIGHT + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" width=\"{width:.1}\" \
         height=\"{height:.1}\" role=\"img\">\n<title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n\
         <g font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"14\" \
         fill=\"{FOREGROUND}\" xml:space=\"preserve\">\n",
        escaped(title)
    );
    let mut style = Style::default();
    for (row, line) in capture.lines().take(rows).enumerate() {
        for run in runs(line, &mut style) {
            draw(&mut svg, row, &run);
        }
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

fn draw(svg: &mut String, row: usize, run: &Run) {
    let Run {
        column,
        text,
        style,
    } = run;
    let (mut foreground, mut background) =
        (style.foreground.as_deref(), style.background.as_deref());
    if style.reverse {
        (foreground, background) = (
            Some(background.unwrap_or(BACKGROUND)),
            Some(foreground.unwrap_or(FOREGROUND)),
        );
    }
    let count = text.chars().count();
    let (x, width) = (
        MARGIN + *column as f64 * CELL_WIDTH,
        count as f64 * CELL_WIDTH,
    );
    let top = MARGIN + row as f64 * CELL_HEIGHT;
    if let Some(colour) = background {
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{CELL_HEIGHT}\" fill=\"{colour}\"/>"
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let mut attributes = String::new();
    for (given, attribute) in [
        (style.bold, " font-weight=\"bold\""),
        (style.dim, " opacity=\"0.65\""),
        (style.italic, " font-style=\"italic\""),
        (style.underline, " text-decoration=\"underline\""),
    ] {
        if given {
            attributes.push_str(attribute);
        }
    }
    if let Some(colour) = foreground {
        let _ = write!(attributes, " fill=\"{colour}\"");
    }
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\"{attributes}>{}</text>",
        top + CELL_HEIGHT - 4.5,
        escaped(text)
    );
}

/// Splits a line into runs of the same style; `style` continues on the next line.
fn runs(line: &str, style: &mut Style) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut column = 0;
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        if let Some(sequence) = rest.strip_prefix("\u{1b}[") {
            let end = sequence.find(|letter: char| letter.is_ascii_alphabetic());
            let end = end.unwrap_or(sequence.len().saturating_sub(1));
            if sequence[end..].starts_with('m') {
                apply(style, &sequence[..end]);
            }
            rest = &sequence[(end + 1).min(sequence.len())..];
            continue;
        }
        match runs.last_mut() {
            Some(run) if run.style == *style => run.text.push(letter),
            _ => runs.push(Run {
                column,
                text: letter.to_string(),
                style: style.clone(),
            }),
        }
        column += 1;
        rest = &rest[letter.len_utf8()..];
    }
    // Spaces at the end of a line would only make the picture larger.
    if let Some(last) = runs.last_mut()
        && last.style.background.is_none()
        && !last.style.reverse
    {
        last.text.truncate(last.text.trim_end().len());
    }
    runs.retain(|run| !run.text.is_empty());
    runs
}

fn apply(style: &mut Style, parameters: &str) {
    let numbers: Vec<u32> = parameters
        .split([';', ':'])
        .map(|number| number.parse().unwrap_or(0))
        .collect();
    let mut numbers = numbers.into_iter();
    while let Some(number) = numbers.next() {
        match number {
            0 => *style = Style::default(),
            1 => style.bold = true,
            2 => style.dim = true,
            3 => style.italic = true,
            4 => style.underline = true,
            7 => style.reverse = true,
            22 => (style.bold, style.dim) = (false, false),
            23 => style.italic = false,
            24 => style.underline = false,
            27 => style.reverse = false,
            30..=37 => style.foreground = indexed(number - 30),
            38 => style.foreground = colour(&mut numbers),
            39 => style.foreground = None,
            40..=47 => style.background = indexed(number - 40),
            48 => style.background = colour(&mut numbers),
            49 => style.background = None,
            90..=97 => style.foreground = indexed(number - 82),
            100..=107 => style.background = indexed(number - 92),
            _ => {}
        }
    }
}

/// Reads the rest of a sequence for a colour: `5;N`, or `2;R;G;B`.
fn colour(numbers: &mut impl Iterator<Item = u32>) -> Option<String> {
    match numbers.next()? {
        5 => indexed(numbers.next()?),
        2 => {
            let (red, green, blue) = (numbers.next()?, numbers.next()?, numbers.next()?);
            Some(format!("#{red:02x}{green:02x}{blue:02x}"))
        }
        _ => None,
    }
}

/// Returns a colour of the 256 that terminals number.
fn indexed(number: u32) -> Option<String> {
    match number {
        0..=15 => PALETTE
            .get(number as usize)
            .map(|colour| (*colour).to_owned()),
        16..=231 => {
            let level = |step: u32| if step == 0 { 0 } else { 55 + 40 * step };
            let cube = number - 16;
            let (red, green, blue) = (level(cube / 36), level(cube / 6 % 6), level(cube % 6));
            Some(format!("#{red:02x}{green:02x}{blue:02x}"))
        }
        232..=255 => {
            let grey = 8 + 10 * (number - 232);
            Some(format!("#{grey:02x}{grey:02x}{grey:02x}"))
        }
        _ => None,
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_become_styles() {
        let mut style = Style::default();
        let found = runs(
            "a\u{1b}[1;38;5;196mb\u{1b}[0m c\u{1b}[48;2;1;2;3m d ",
            &mut style,
        );
        let texts: Vec<(usize, &str)> = found
            .iter()
            .map(|run| (run.column, run.text.as_str()))
            .collect();
        assert_eq!(texts, [(0, "a"), (1, "b"), (2, " c"), (4, " d ")]);
        assert!(found[1].style.bold);
        assert_eq!(found[1].style.foreground.as_deref(), Some("#ff0000"));
        assert_eq!(found[2].style, Style::default());
        assert_eq!(found[3].style.background.as_deref(), Some("#010203"));
        assert_eq!(
            style.background.as_deref(),
            Some("#010203"),
            "it continues on the next line"
        );
    }

    #[test]
    fn a_picture_contains_the_text_and_no_markup_of_it() {
        let picture = svg("<b> & \u{1b}[31mred\u{1b}[0m", 20, 2, "A \"title\"");
        assert!(picture.contains("&lt;b&gt; &amp;"));
        assert!(picture.contains("fill=\"#e06c75\">red</text>"));
        assert!(picture.contains("<title>A &quot;title&quot;</title>"));
        assert_eq!(
            picture,
            svg("<b> & \u{1b}[31mred\u{1b}[0m", 20, 2, "A \"title\"")
        );
    }

    #[test]
    fn a_sequence_that_is_cut_off_is_left_out() {
        for text in ["\u{1b}[", "\u{1b}[1", "a\u{1b}[38;5m"] {
            let _ = runs(text, &mut Style::default());
        }
    }
}
