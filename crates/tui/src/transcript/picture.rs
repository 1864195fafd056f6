//! Draws pictures with kitty's graphics protocol and its Unicode placeholders.
//!
//! A picture is sent once. Its cells contain a placeholder character whose colour identifies the
//! picture and whose combining marks identify the part of it. For everything else they are text, so
//! pictures scroll and are cut like text.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinion_message::Block;
use ratatui::style::{Color, Style};
use ratatui::text::Line;

/// The display of pictures.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Images {
    /// As a line with type and size.
    #[default]
    Named,
    /// Drawn with kitty's protocol.
    Drawn,
}

/// The character that shows a part of a picture.
const PLACEHOLDER: char = '\u{10EEEE}';
/// Bytes of base64 per escape sequence.
const CHUNK: usize = 4096;
/// Bytes of base64 above which a picture is not drawn.
const MAX_DATA: usize = 8 * 1024 * 1024;
const MAX_ROWS: u16 = 16;
/// The combining marks of rows and columns, in the protocol's order; their number limits the
/// columns.
const MARKS: [char; 48] = [
    '\u{305}', '\u{30D}', '\u{30E}', '\u{310}', '\u{312}', '\u{33D}', '\u{33E}', '\u{33F}',
    '\u{346}', '\u{34A}', '\u{34B}', '\u{34C}', '\u{350}', '\u{351}', '\u{352}', '\u{357}',
    '\u{35B}', '\u{363}', '\u{364}', '\u{365}', '\u{366}', '\u{367}', '\u{368}', '\u{369}',
    '\u{36A}', '\u{36B}', '\u{36C}', '\u{36D}', '\u{36E}', '\u{36F}', '\u{483}', '\u{484}',
    '\u{485}', '\u{486}', '\u{487}', '\u{592}', '\u{593}', '\u{594}', '\u{595}', '\u{597}',
    '\u{598}', '\u{599}', '\u{59C}', '\u{59D}', '\u{59E}', '\u{59F}', '\u{5A0}', '\u{5A1}',
];

/// A picture that can be drawn, and its size in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Picture {
    id: u32,
    columns: u16,
    rows: u16,
}

impl Picture {
    /// The picture in a block, scaled to fit; `None` if the block is not an image or the terminal
    /// cannot draw it.
    pub fn of(block: &Block, width: u16) -> Option<Self> {
        let Block::Image { data, mime_type } = block else {
            return None;
        };
        if mime_type != "image/png" || data.len() > MAX_DATA || width == 0 {
            return None;
        }
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
        if !data.bytes().all(is_base64) {
            return None;
        }
        let (pixels_wide, pixels_high) = png_size(data)?;
        let (columns, rows) = fit(pixels_wide, pixels_high, width);
        let mut hasher = DefaultHasher::new();
        data.hash(&mut hasher);
        Some(Self {
            // The id is the colour of the cells, so it has 24 bits; zero is not an id.
            id: (hasher.finish() & 0xFF_FFFF).max(1) as u32,
            columns,
            rows,
        })
    }

    /// The cells that show the picture.
    pub fn lines(&self) -> impl Iterator<Item = Line<'static>> + use<> {
        let [_, red, green, blue] = self.id.to_be_bytes();
        let style = Style::new().fg(Color::Rgb(red, green, blue));
        let columns = usize::from(self.columns);
        let rows = MARKS.iter().take(usize::from(self.rows));
        rows.map(move |row| {
            let mut cells = String::new();
            for column in &MARKS[..columns] {
                cells.extend([PLACEHOLDER, *row, *column]);
            }
            Line::styled(cells, style)
        })
    }
}

/// The pictures that the terminal has, and the sequences still to be sent.
#[derive(Debug, Default)]
pub(super) struct Gallery {
    /// Sizes in cells, by id.
    sent: HashMap<u32, (u16, u16)>,
    outgoing: String,
}

impl Gallery {
    /// Makes the terminal show the picture in this block.
    pub fn show(&mut self, picture: Picture, block: &Block) {
        let (Picture { id, columns, rows }, Block::Image { data, .. }) = (picture, block) else {
            return;
        };
        let before = self.sent.insert(id, (columns, rows));
        if before == Some((columns, rows)) {
            return;
        }
        if before.is_none() {
            let mut rest = data.as_str();
            let mut head = format!("a=t,f=100,i={id},q=2,");
            while !rest.is_empty() {
                let (chunk, after) = rest.split_at(CHUNK.min(rest.len()));
                let more = u8::from(!after.is_empty());
                let _ = write!(self.outgoing, "\x1b_G{head}m={more};{chunk}\x1b\\");
                head = "q=2,".to_owned();
                rest = after;
            }
        }
        let _ = write!(
            self.outgoing,
            "\x1b_Ga=p,U=1,i={id},c={columns},r={rows},q=2\x1b\\"
        );
    }

    /// Takes the sequences to send to the terminal.
    pub fn take(&mut self) -> Option<String> {
        (!self.outgoing.is_empty()).then(|| std::mem::take(&mut self.outgoing))
    }
}

/// Reads width and height of a PNG, in pixels, from its first bytes.
fn png_size(data: &str) -> Option<(u32, u32)> {
    // 24 bytes, which base64 encodes as 32 characters.
    let bytes = STANDARD.decode(data.get(..32)?).ok()?;
    if !bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return None;
    }
    let number = |at: usize| -> Option<u32> {
        let bytes = bytes.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    let (width, height) = (number(16)?, number(20)?);
    (width > 0 && height > 0).then_some((width, height))
}

/// Cells that a picture takes; a cell is about twice as high as it is wide.
fn fit(pixels_wide: u32, pixels_high: u32, width: u16) -> (u16, u16) {
    /// Pixels assumed per column, so that small pictures stay small.
    const CELL: f64 = 8.0;
    let most_columns = f64::from(width.min(MARKS.len() as u16));
    let ratio = f64::from(pixels_high) / f64::from(pixels_wide) / 2.0;
    let columns = (f64::from(pixels_wide) / CELL).min(most_columns);
    let columns = columns.min(f64::from(MAX_ROWS) / ratio);
    let cells = |number: f64, most: u16| (number.round() as u16).clamp(1, most);
    (
        cells(columns, width.min(MARKS.len() as u16)),
        cells(columns * ratio, MAX_ROWS),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Block {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend([0; 6000]);
        Block::Image {
            data: STANDARD.encode(bytes),
            mime_type: "image/png".into(),
        }
    }

    #[test]
    fn pictures_fit_and_keep_their_shape() {
        assert_eq!(fit(800, 600, 80), (43, 16));
        assert_eq!(fit(800, 600, 20), (20, 8));
        assert_eq!(fit(8, 8, 80), (1, 1));
        assert_eq!(fit(10_000, 10, 80), (48, 1));
        assert_eq!(fit(10, 10_000, 80), (1, 16));
        assert_eq!(fit(u32::MAX, u32::MAX, 1), (1, 1));
    }

    #[test]
    fn a_picture_is_sent_once_and_placed_again_in_another_size() {
        let block = png(160, 160);
        let mut gallery = Gallery::default();
        let picture = Picture::of(&block, 80).unwrap();
        gallery.show(picture, &block);
        gallery.show(picture, &block);
        let sent = gallery.take().unwrap();
        let sequences: Vec<&str> = sent.split_terminator("\x1b\\").collect();
        assert_eq!(sequences.len(), 3, "two pieces and a place");
        assert!(sequences[0].starts_with("\x1b_Ga=t,f=100,i="));
        assert!(sequences[0].contains("m=1;"));
        assert!(sequences[1].starts_with("\x1b_Gq=2,m=0;"));
        assert!(sequences[2].ends_with("c=20,r=10,q=2"), "{}", sequences[2]);
        assert_eq!(gallery.take(), None);
        gallery.show(Picture::of(&block, 10).unwrap(), &block);
        let again = gallery.take().unwrap();
        assert!(
            again.contains("c=10,r=5") && !again.contains("a=t"),
            "{again}"
        );
    }

    #[test]
    fn every_cell_names_its_part() {
        let block = png(32, 32);
        let picture = Picture::of(&block, 80).unwrap();
        let lines: Vec<String> = picture.lines().map(|line| line.to_string()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1].chars().count(), 4 * 3);
        assert!(lines[1].ends_with("\u{10EEEE}\u{30D}\u{310}"));
    }

    #[test]
    fn only_png_images_are_drawn() {
        let image = |mime_type: &str, data: String| Block::Image {
            data,
            mime_type: mime_type.into(),
        };
        let Block::Image { data, .. } = png(9, 9) else {
            unreachable!()
        };
        assert!(Picture::of(&image("image/png", data.clone()), 80).is_some());
        assert!(Picture::of(&image("image/jpeg", data.clone()), 80).is_none());
        assert!(Picture::of(&image("image/png", format!("{data}\x1b\\")), 80).is_none());
        assert!(Picture::of(&image("image/png", "AAAA".into()), 80).is_none());
        assert!(Picture::of(&image("image/png", "é".repeat(40)), 80).is_none());
        assert!(Picture::of(&png(0, 9), 80).is_none());
    }
}
