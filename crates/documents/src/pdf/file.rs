//! Where the objects of a file are.
//!
//! The file's own table of contents is not used. It is the part most often wrong, and the part a
//! hostile file lies with; a file small enough to be attached is read through from front to back
//! instead, which finds the same objects. A later object replaces an earlier one of its number, as in
//! a file that was saved again.

use std::collections::HashMap;
use std::ops::Range;

use super::budget::{Budget, Exhausted};
use super::filters::{self, LONGEST_CHAIN, Parameters};
use super::syntax::{Dictionary, Lexer, Object, Token, is_space};

/// Longest chain of references to references that is followed.
const LONGEST_REFERENCE: usize = 8;

/// What looking an object up costs beside reading it, in steps.
const OBJECT_COST: usize = 32;

/// How soon after its stated length the end of a stream has to be.
const ENDSTREAM_WINDOW: usize = 16;

/// Why a file cannot be used at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unusable {
    Encrypted,
    Exhausted,
}

impl From<Exhausted> for Unusable {
    fn from(_: Exhausted) -> Self {
        Self::Exhausted
    }
}

#[derive(Debug, Clone)]
enum Place {
    /// In the file itself, with the data that follows it if it is a stream.
    File {
        at: usize,
        data: Option<Range<usize>>,
    },
    /// In an unpacked object stream.
    Packed { container: usize, at: usize },
}

/// A file whose objects can be looked up.
#[derive(Debug)]
pub(super) struct File<'a> {
    bytes: &'a [u8],
    places: HashMap<u32, Place>,
    containers: Vec<Vec<u8>>,
    root: Option<Object>,
    /// Objects that call themselves pages, for files whose page tree is lost.
    pub(super) loose_pages: Vec<u32>,
    pub(super) budget: Budget,
}

impl<'a> File<'a> {
    /// Reads through a file.
    pub(super) fn open(bytes: &'a [u8], budget: Budget) -> Result<Self, Unusable> {
        let mut file = Self {
            bytes,
            places: HashMap::new(),
            containers: Vec::new(),
            root: None,
            loose_pages: Vec::new(),
            budget,
        };
        for at in memchr::memmem::find_iter(bytes, b"trailer") {
            let mut lexer = Lexer::new(bytes, at + b"trailer".len());
            let trailer = lexer.object();
            file.budget.spend(lexer.cost_since(at))?;
            if let Some(trailer) = trailer.and_then(Object::dictionary) {
                file.take_trailer(&trailer)?;
            }
        }
        file.scan()?;
        Ok(file)
    }

    fn take_trailer(&mut self, trailer: &Dictionary) -> Result<(), Unusable> {
        if trailer
            .get(b"Encrypt".as_slice())
            .is_some_and(|found| *found != Object::Null)
        {
            return Err(Unusable::Encrypted);
        }
        if let Some(root) = trailer.get(b"Root".as_slice()) {
            self.root = Some(root.clone());
        }
        Ok(())
    }

    fn scan(&mut self) -> Result<(), Unusable> {
        let finder = memchr::memmem::Finder::new(b"obj");
        let mut from = 0;
        while let Some(found) = finder.find(&self.bytes[from..]) {
            let header = from + found;
            let start = header + b"obj".len();
            from = start;
            let Some(number) = header_number(&self.bytes[..header]) else {
                continue;
            };
            let mut lexer = Lexer::new(self.bytes, start);
            let object = lexer.object();
            self.budget.spend(lexer.cost_since(start))?;
            let dictionary = match object {
                Some(Object::Dictionary(dictionary)) => dictionary,
                Some(_) => {
                    self.places.insert(
                        number,
                        Place::File {
                            at: start,
                            data: None,
                        },
                    );
                    from = lexer.position();
                    continue;
                }
                None => continue,
            };
            from = lexer.position();
            let data = self.data_after(from, &dictionary)?;
            from = data.as_ref().map_or(from, |data| data.end);
            self.places.insert(
                number,
                Place::File {
                    at: start,
                    data: data.clone(),
                },
            );
            self.take_notice(number, &dictionary, data)?;
        }
        Ok(())
    }

    fn take_notice(
        &mut self,
        number: u32,
        dictionary: &Dictionary,
        data: Option<Range<usize>>,
    ) -> Result<(), Unusable> {
        match (
            dictionary.get(b"Type".as_slice()).and_then(Object::name),
            data,
        ) {
            (Some(b"ObjStm"), Some(data)) => self.unpack(dictionary, data)?,
            (Some(b"XRef"), _) => self.take_trailer(dictionary)?,
            (Some(b"Catalog"), _) if self.root.is_none() => {
                self.root = Some(Object::Reference(number));
            }
            (Some(b"Page"), _) => self.loose_pages.push(number),
            _ => {}
        }
        Ok(())
    }

    /// The data of a stream whose dictionary ends here.
    fn data_after(
        &self,
        end: usize,
        dictionary: &Dictionary,
    ) -> Result<Option<Range<usize>>, Exhausted> {
        let mut lexer = Lexer::new(self.bytes, end);
        if lexer.token() != Some(Token::Keyword(b"stream")) {
            return Ok(None);
        }
        let mut start = lexer.position();
        if self.bytes[start..].starts_with(b"\r\n") {
            start += 2;
        } else if matches!(self.bytes.get(start), Some(b'\n' | b'\r')) {
            start += 1;
        }
        let stated = dictionary.get(b"Length".as_slice()).and_then(Object::index);
        if let Some(end) = stated.and_then(|length| start.checked_add(length))
            && let Some(after) = self.bytes.get(end..)
            && after[..after.len().min(ENDSTREAM_WINDOW)]
                .trim_ascii_start()
                .starts_with(b"endstream")
        {
            return Ok(Some(start..end));
        }
        let rest = &self.bytes[start..];
        let length = memchr::memmem::find(rest, b"endstream").unwrap_or(rest.len());
        self.budget.spend(length)?;
        Ok(Some(start..start + length))
    }

    /// Unpacks a stream of objects and notes where each of them is.
    fn unpack(&mut self, dictionary: &Dictionary, data: Range<usize>) -> Result<(), Exhausted> {
        let count = dictionary
            .get(b"N".as_slice())
            .and_then(Object::index)
            .unwrap_or(0);
        let first = dictionary
            .get(b"First".as_slice())
            .and_then(Object::index)
            .unwrap_or(0);
        let Some(unpacked) = self.unpacked(dictionary, &self.bytes[data])? else {
            return Ok(());
        };
        self.budget.hold(unpacked.len())?;
        let container = self.containers.len();
        let mut lexer = Lexer::new(&unpacked, 0);
        for _ in 0..count {
            let (Some(Token::Number(number)), Some(Token::Number(offset))) =
                (lexer.token(), lexer.token())
            else {
                break;
            };
            if let (Some(number), Some(offset)) = (
                Object::Number(number).index(),
                Object::Number(offset).index(),
            ) && let Ok(number) = u32::try_from(number)
            {
                let at = first.saturating_add(offset);
                self.places.insert(number, Place::Packed { container, at });
            }
        }
        self.containers.push(unpacked);
        Ok(())
    }

    /// The catalogue of the document.
    pub(super) fn root(&self) -> Result<Option<Dictionary>, Exhausted> {
        match &self.root {
            Some(root) => Ok(self.resolve(root)?.dictionary()),
            None => Ok(None),
        }
    }

    /// An object by its number; null if there is none.
    pub(super) fn object(&self, number: u32) -> Result<Object, Exhausted> {
        let (bytes, at) = match self.places.get(&number) {
            Some(Place::File { at, .. }) => (self.bytes, *at),
            Some(Place::Packed { container, at }) => (self.containers[*container].as_slice(), *at),
            None => return Ok(Object::Null),
        };
        let mut lexer = Lexer::new(bytes, at);
        let object = lexer.object();
        self.budget.spend(lexer.cost_since(at) + OBJECT_COST)?;
        Ok(object.unwrap_or(Object::Null))
    }

    /// What a value stands for, references followed.
    pub(super) fn resolve(&self, value: &Object) -> Result<Object, Exhausted> {
        let mut value = value.clone();
        for _ in 0..LONGEST_REFERENCE {
            match value {
                Object::Reference(number) => value = self.object(number)?,
                other => return Ok(other),
            }
        }
        Ok(Object::Null)
    }

    /// What a key of a dictionary stands for.
    pub(super) fn get(&self, dictionary: &Dictionary, key: &str) -> Result<Object, Exhausted> {
        match dictionary.get(key.as_bytes()) {
            Some(value) => self.resolve(value),
            None => Ok(Object::Null),
        }
    }

    /// The dictionary and the unpacked data of a stream; nothing if it is none, or an image.
    pub(super) fn stream(&self, number: u32) -> Result<Option<(Dictionary, Vec<u8>)>, Exhausted> {
        let Some(Place::File {
            data: Some(data), ..
        }) = self.places.get(&number)
        else {
            return Ok(None);
        };
        let Some(dictionary) = self.object(number)?.dictionary() else {
            return Ok(None);
        };
        let unpacked = self.unpacked(&dictionary, &self.bytes[data.clone()])?;
        Ok(unpacked.map(|unpacked| (dictionary, unpacked)))
    }

    fn unpacked(&self, dictionary: &Dictionary, data: &[u8]) -> Result<Option<Vec<u8>>, Exhausted> {
        let list = |value: Object| match value {
            Object::Array(array) => array,
            Object::Null => Vec::new(),
            single => vec![single],
        };
        let filters = list(self.get(dictionary, "Filter")?);
        let settings = list(self.get(dictionary, "DecodeParms")?);
        if filters.len() > LONGEST_CHAIN {
            return Ok(None);
        }
        let mut unpacked: Option<Vec<u8>> = None;
        for (at, filter) in filters.iter().enumerate() {
            let filter = self.resolve(filter)?;
            let Some(name) = filter.name() else {
                return Ok(None);
            };
            let parameters = self.parameters(settings.get(at))?;
            let input = unpacked.as_deref().unwrap_or(data);
            match filters::undo(name, &parameters, input, &self.budget)? {
                Some(output) => unpacked = Some(output),
                None => return Ok(None),
            }
        }
        match unpacked {
            Some(unpacked) => Ok(Some(unpacked)),
            None => {
                self.budget.spend(data.len())?;
                Ok(Some(data.to_vec()))
            }
        }
    }

    fn parameters(&self, settings: Option<&Object>) -> Result<Parameters, Exhausted> {
        let settings = match settings {
            Some(settings) => self.resolve(settings)?.dictionary().unwrap_or_default(),
            None => Dictionary::new(),
        };
        let number = |key: &str, default: usize| {
            self.get(&settings, key)
                .map(|value| value.index().unwrap_or(default))
        };
        Ok(Parameters {
            predictor: number("Predictor", 1)?,
            columns: number("Columns", 1)?,
            colors: number("Colors", 1)?,
            bits: number("BitsPerComponent", 8)?,
            early_change: number("EarlyChange", 1)? != 0,
        })
    }
}

/// The number of the object whose `12 0 obj` ends here, without its last word.
fn header_number(before: &[u8]) -> Option<u32> {
    let (rest, _generation) = last_number(before)?;
    if !rest.last().copied().is_some_and(is_space) {
        return None;
    }
    last_number(rest).map(|(_, number)| number)
}

/// The number at the end of the bytes, and what is before it.
fn last_number(bytes: &[u8]) -> Option<(&[u8], u32)> {
    // A header is short; looking back further would let blanks cost more than they are worth.
    let window = &bytes[bytes.len().saturating_sub(32)..];
    let blanks = window
        .iter()
        .rev()
        .take_while(|byte| is_space(**byte))
        .count();
    let word = &window[..window.len() - blanks];
    let digits = word
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let number = std::str::from_utf8(&word[word.len() - digits..])
        .ok()?
        .parse()
        .ok()?;
    Some((&bytes[..bytes.len() - blanks - digits], number))
}
