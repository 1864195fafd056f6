//! The interpreter of a page's drawing instructions, which collects their text.

use std::collections::HashMap;
use std::rc::Rc;

use super::budget::Exhausted;
use super::file::File;
use super::font::Font;
use super::layout::{Layout, Piece, Point};
use super::matrix::{IDENTITY, Matrix, matrix, multiply};
use super::syntax::{Dictionary, Lexer, Object, Token, is_space};

/// The deepest nesting of forms.
const MAX_FORM_DEPTH: usize = 8;
/// The most saved graphics states.
const MAX_STATES: usize = 256;
/// The most operands of one instruction.
const MAX_OPERANDS: usize = 64;
/// The most entries of font tables for one page; some tens of megabytes.
const MAX_ENTRIES: usize = 1 << 20;
/// The most entries of fonts that are cached for the next page.
const MAX_CACHED_ENTRIES: usize = 1 << 18;
/// The steps for an instruction or a glyph.
const STEPS_PER_INSTRUCTION: usize = 8;

#[derive(Debug, Clone)]
struct GraphicsState {
    matrix: Matrix,
    font: Option<Rc<Font>>,
    size: f64,
    character_spacing: f64,
    word_spacing: f64,
    stretch: f64,
    leading: f64,
    rise: f64,
}

/// Draws the pages of one file.
#[derive(Debug)]
pub(super) struct Interpreter<'f, 'a> {
    file: &'f File<'a>,
    fonts: HashMap<u32, Rc<Font>>,
    /// Entries in the tables of all fonts in use.
    entries: usize,
    /// The longest useful text.
    most: usize,
}

impl<'f, 'a> Interpreter<'f, 'a> {
    pub(super) fn new(file: &'f File<'a>, most: usize) -> Self {
        Self {
            file,
            fonts: HashMap::new(),
            entries: 0,
            most,
        }
    }

    /// Returns the text of a page, and whether it was drawn to its end.
    pub(super) fn page(
        &mut self,
        contents: &[u8],
        resources: Dictionary,
    ) -> (Layout, Result<(), Exhausted>) {
        if self.entries > MAX_CACHED_ENTRIES {
            self.fonts.clear();
            self.entries = 0;
        }
        let mut layout = Layout::default();
        let state = GraphicsState {
            matrix: IDENTITY,
            font: None,
            size: 1.0,
            character_spacing: 0.0,
            word_spacing: 0.0,
            stretch: 1.0,
            leading: 0.0,
            rise: 0.0,
        };
        let done = Resources::new(self.file, resources).and_then(|resources| {
            Drawing::new(self, &mut layout, state, 0).run(contents, &resources)
        });
        (layout, done)
    }

    fn font(&mut self, resources: &Resources, name: &[u8]) -> Result<Option<Rc<Font>>, Exhausted> {
        let Some(entry) = resources.fonts.get(name) else {
            return Ok(None);
        };
        if let Some(known) = entry.reference().and_then(|number| self.fonts.get(&number)) {
            return Ok(Some(Rc::clone(known)));
        }
        let Some(dictionary) = self.file.resolve(entry)?.dictionary() else {
            return Ok(None);
        };
        let font = Rc::new(Font::new(self.file, &dictionary)?);
        self.entries += font.weight();
        if self.entries > MAX_ENTRIES {
            return Err(Exhausted);
        }
        if let Some(number) = entry.reference() {
            self.fonts.insert(number, Rc::clone(&font));
        }
        Ok(Some(font))
    }
}

/// The named resources of instructions. They are looked up once instead of at each use, because a
/// page may use a font thousands of times.
#[derive(Debug)]
struct Resources {
    fonts: Dictionary,
    forms: Dictionary,
}

impl Resources {
    fn new(file: &File<'_>, mut resources: Dictionary) -> Result<Self, Exhausted> {
        let mut take = |key: &str| match resources.remove(key.as_bytes()) {
            Some(Object::Dictionary(direct)) => Ok(direct),
            Some(other) => file
                .resolve(&other)
                .map(|found| found.dictionary().unwrap_or_default()),
            None => Ok(Dictionary::new()),
        };
        Ok(Self {
            fonts: take("Font")?,
            forms: take("XObject")?,
        })
    }
}

struct Drawing<'d, 'f, 'a> {
    interpreter: &'d mut Interpreter<'f, 'a>,
    layout: &'d mut Layout,
    state: GraphicsState,
    saved: Vec<GraphicsState>,
    text: Matrix,
    line: Matrix,
    /// Open marked content; true if it supplies its own text, so that the glyphs in it are ignored.
    marked: Vec<bool>,
    depth: usize,
}

impl<'d, 'f, 'a> Drawing<'d, 'f, 'a> {
    fn new(
        interpreter: &'d mut Interpreter<'f, 'a>,
        layout: &'d mut Layout,
        state: GraphicsState,
        depth: usize,
    ) -> Self {
        Self {
            interpreter,
            layout,
            state,
            saved: Vec::new(),
            text: IDENTITY,
            line: IDENTITY,
            marked: Vec::new(),
            depth,
        }
    }

    fn run(&mut self, contents: &[u8], resources: &Resources) -> Result<(), Exhausted> {
        let mut lexer = Lexer::of_instructions(contents, 0);
        let mut operands: Vec<Object> = Vec::new();
        while let Some(token) = lexer.token() {
            self.interpreter.file.budget.spend(STEPS_PER_INSTRUCTION)?;
            match token {
                Token::Keyword(b"BI") => {
                    skip_image(&mut lexer, contents);
                    operands.clear();
                }
                Token::Keyword(b"true" | b"false" | b"null") => operands.push(Object::Null),
                Token::Keyword(operator) => {
                    self.perform(operator, &operands, resources)?;
                    operands.clear();
                    if self.layout.len() > self.interpreter.most {
                        return Ok(());
                    }
                }
                token => {
                    let before = lexer.position();
                    // Each operand has its own count of values.
                    let mut operand = Lexer::of_instructions(contents, before);
                    let object = operand.object_from(token, 0);
                    self.interpreter
                        .file
                        .budget
                        .spend(operand.cost_since(before))?;
                    lexer.seek(operand.position());
                    if operands.len() < MAX_OPERANDS {
                        operands.extend(object);
                    }
                }
            }
        }
        Ok(())
    }

    fn perform(
        &mut self,
        operator: &[u8],
        operands: &[Object],
        resources: &Resources,
    ) -> Result<(), Exhausted> {
        let number = |at: usize| operands.get(at).and_then(Object::number).unwrap_or(0.0);
        let state = &mut self.state;
        match operator {
            b"q" if self.saved.len() < MAX_STATES => self.saved.push(state.clone()),
            b"Q" => self.state = self.saved.pop().unwrap_or_else(|| self.state.clone()),
            b"cm" => {
                if let Some(matrix) = matrix(operands) {
                    state.matrix = multiply(&matrix, &state.matrix);
                }
            }
            b"BT" => self.set_line(IDENTITY),
            b"Tf" => {
                if let Some(name) = operands.first().and_then(Object::name) {
                    self.state.font = self.interpreter.font(resources, name)?;
                    self.state.size = number(1);
                }
            }
            b"Tc" => state.character_spacing = number(0),
            b"Tw" => state.word_spacing = number(0),
            b"Tz" => state.stretch = number(0) / 100.0,
            b"TL" => state.leading = number(0),
            b"Ts" => state.rise = number(0),
            b"Td" => self.move_line(number(0), number(1)),
            b"TD" => {
                state.leading = -number(1);
                self.move_line(number(0), number(1));
            }
            b"Tm" => {
                if let Some(matrix) = matrix(operands) {
                    self.set_line(matrix);
                }
            }
            b"T*" => self.next_line(),
            b"Tj" => self.show(operands.first())?,
            b"'" => {
                self.next_line();
                self.show(operands.first())?;
            }
            b"\"" => {
                state.word_spacing = number(0);
                state.character_spacing = number(1);
                self.next_line();
                self.show(operands.get(2))?;
            }
            b"TJ" => {
                if let Some(Object::Array(pieces)) = operands.first() {
                    for piece in pieces {
                        match piece {
                            Object::Number(back) => {
                                let by = -back / 1000.0 * self.state.size * self.state.stretch;
                                self.text = multiply(&[1.0, 0.0, 0.0, 1.0, by, 0.0], &self.text);
                            }
                            string => self.show(Some(string))?,
                        }
                    }
                }
            }
            b"BMC" | b"BDC" if self.marked.len() < MAX_STATES => {
                let stands_for = match operands.get(1) {
                    Some(Object::Dictionary(properties)) => {
                        properties.get(b"ActualText".as_slice())
                    }
                    _ => None,
                };
                if let Some(Object::String(text)) = stands_for {
                    self.write(&text_string(text), 0.0);
                }
                self.marked.push(stands_for.is_some());
            }
            b"EMC" => drop(self.marked.pop()),
            b"Do" => self.form(operands.first(), resources)?,
            _ => {}
        }
        Ok(())
    }

    fn set_line(&mut self, matrix: Matrix) {
        self.line = matrix;
        self.text = matrix;
    }

    fn move_line(&mut self, x: f64, y: f64) {
        self.set_line(multiply(&[1.0, 0.0, 0.0, 1.0, x, y], &self.line));
    }

    fn next_line(&mut self) {
        self.move_line(0.0, -self.state.leading);
    }

    /// Returns the position of the pen on the page, and the size of one font unit there.
    fn pen(&self) -> (Point, f64) {
        let rise = [1.0, 0.0, 0.0, 1.0, 0.0, self.state.rise];
        let on_page = multiply(&multiply(&rise, &self.text), &self.state.matrix);
        ((on_page[4], on_page[5]), on_page[2].hypot(on_page[3]))
    }

    fn show(&mut self, string: Option<&Object>) -> Result<(), Exhausted> {
        let (Some(Object::String(string)), Some(font)) = (string, self.state.font.clone()) else {
            return Ok(());
        };
        let mut text = String::new();
        let mut advance = 0.0;
        let (state, budget, most) = (
            &self.state,
            &self.interpreter.file.budget,
            self.interpreter.most,
        );
        font.glyphs(string, |glyph| {
            budget.spend(STEPS_PER_INSTRUCTION)?;
            if text.len() <= most {
                text.push_str(glyph.text.unwrap_or_default());
            }
            let word = if glyph.is_space {
                state.word_spacing
            } else {
                0.0
            };
            advance += (glyph.width * state.size + state.character_spacing + word) * state.stretch;
            Ok(())
        })?;
        let named = self.marked.contains(&true);
        self.write(if named { "" } else { &text }, advance);
        Ok(())
    }

    /// Writes text at the pen and moves it.
    fn write(&mut self, text: &str, advance: f64) {
        let (start, unit) = self.pen();
        self.text = multiply(&[1.0, 0.0, 0.0, 1.0, advance, 0.0], &self.text);
        let (end, _) = self.pen();
        if !text.is_empty() && self.layout.len() <= self.interpreter.most {
            let size = self.state.size.abs() * unit;
            self.layout.add(&Piece {
                text,
                start,
                end,
                size,
            });
        }
    }

    fn form(&mut self, name: Option<&Object>, resources: &Resources) -> Result<(), Exhausted> {
        let file = self.interpreter.file;
        let Some(name) = name.and_then(Object::name) else {
            return Ok(());
        };
        let Some(number) = resources.forms.get(name).and_then(Object::reference) else {
            return Ok(());
        };
        if self.depth >= MAX_FORM_DEPTH {
            return Ok(());
        }
        let Some(dictionary) = file.object(number)?.dictionary() else {
            return Ok(());
        };
        if dictionary.get(b"Subtype".as_slice()).and_then(Object::name) != Some(b"Form") {
            return Ok(());
        }
        let Some((form, contents)) = file.stream(number)? else {
            return Ok(());
        };
        let own = file.get(&form, "Resources")?.dictionary();
        let mut state = self.state.clone();
        if let Some(placed) = matrix(&file.get(&form, "Matrix")?.array().unwrap_or_default()) {
            state.matrix = multiply(&placed, &state.matrix);
        }
        let own = own.map(|own| Resources::new(file, own)).transpose()?;
        file.budget.hold(contents.len())?;
        let done = Drawing::new(self.interpreter, self.layout, state, self.depth + 1)
            .run(&contents, own.as_ref().unwrap_or(resources));
        file.budget.release(contents.len());
        done
    }
}

/// Decodes a text string: UTF-16 or UTF-8 if it is marked so, Latin otherwise.
fn text_string(bytes: &[u8]) -> String {
    let text = match encoding_rs::Encoding::for_bom(bytes) {
        Some((encoding, mark)) => encoding.decode_without_bom_handling(&bytes[mark..]).0,
        None => {
            encoding_rs::WINDOWS_1252
                .decode_without_bom_handling(bytes)
                .0
        }
    };
    text.chars()
        .filter(|character| !character.is_control())
        .collect()
}

/// Skips an inline image: after `ID`, up to an `EI` that stands alone.
fn skip_image(lexer: &mut Lexer<'_>, contents: &[u8]) {
    while let Some(token) = lexer.token() {
        if token == Token::Keyword(b"ID") {
            break;
        }
    }
    let data = lexer.position();
    for found in memchr::memmem::find_iter(&contents[data..], b"EI") {
        let at = data + found;
        let before = contents
            .get(at.wrapping_sub(1))
            .is_none_or(|byte| is_space(*byte));
        let after = contents.get(at + 2).is_none_or(|byte| is_space(*byte));
        if before && after {
            lexer.seek(at + 2);
            return;
        }
    }
    lexer.seek(contents.len());
}
