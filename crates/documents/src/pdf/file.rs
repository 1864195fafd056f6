//! The objects of a PDF file.
//!
//! The file's own cross-reference table is not used. It is the part most often wrong, and the part
//! a hostile file lies with; a file small enough to be attached is scanned from front to back
//! instead, which finds the same objects. A later object replaces an earlier one of its number, as
//! in a file that was saved again.

use std::collections::HashMap;
use std::ops::Range;

use super::budget::{Budget, Exhausted};
use super::filters::{self, MAX_FILTERS, Parameters};
use super::syntax::{Dictionary, Lexer, Object, Token, is_space};

/// The longest chain of references to references.
const MAX_REFERENCE_CHAIN: usize = 8;

/// The steps for looking up an object, besides reading it.
const OBJECT_COST: usize = 32;

/// The largest distance, in bytes, between the stated end of a stream and its end mark.
const ENDSTREAM_WINDOW: usize = 16;

/// The reason why a file cannot be used at all.
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
enum ObjectLocation {
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
    locations: HashMap<u32, ObjectLocation>,
    containers: Vec<Vec<u8>>,
    root: Option<Object>,
    /// Objects that are marked as pages, for files whose page tree is lost.
    pub(super) loose_pages: Vec<u32>,
    pub(super) budget: Budget,
}

impl<'a> File<'a> {
    /// Scans a file.
    pub(super) fn open(bytes: &'a [u8], budget: Budget) -> Result<Self, Unusable> {
        let mut file = Self {
            bytes,
            locations: HashMap::new(),
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
                    self.locations.insert(
                        number,
                        ObjectLocation::File {
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
            self.locations.insert(
                number,
                ObjectLocation::File {
                    at: start,
                    data: data.clone(),
                },
            );
            self.record_object(number, &dictionary, data)?;
        }
        Ok(())
    }

    fn record_object(
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

    /// Returns the data of a stream whose dictionary ends here.
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

    /// Unpacks an object stream and records the positions of its objects.
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
                self.locations
                    .insert(number, ObjectLocation::Packed { container, at });
            }
        }
        self.containers.push(unpacked);
        Ok(())
    }

    /// Returns the document catalogue.
    pub(super) fn root(&self) -> Result<Option<Dictionary>, Exhausted> {
        match &self.root {
            Some(root) => Ok(self.resolve(root)?.dictionary()),
            None => Ok(None),
        }
    }

    /// Returns an object by its number; null if there is none.
    pub(super) fn object(&self, number: u32) -> Result<Object, Exhausted> {
        let (bytes, at) = match self.locations.get(&number) {
            Some(ObjectLocation::File { at, .. }) => (self.bytes, *at),
            Some(ObjectLocation::Packed { container, at }) => {
                (self.containers[*container].as_slice(), *at)
            }
            None => return Ok(Object::Null),
        };
        let mut lexer = Lexer::new(bytes, at);
        let object = lexer.object();
        self.budget.spend(lexer.cost_since(at) + OBJECT_COST)?;
        Ok(object.unwrap_or(Object::Null))
    }

    /// Follows references to a value.
    pub(super) fn resolve(&self, value: &Object) -> Result<Object, Exhausted> {
        let mut value = value.clone();
        for _ in 0..MAX_REFERENCE_CHAIN {
            match value {
                Object::Reference(number) => value = self.object(number)?,
                other => return Ok(other),
            }
        }
        Ok(Object::Null)
    }

    /// Returns the value of a key, with references followed.
    pub(super) fn get(&self, dictionary: &Dictionary, key: &str) -> Result<Object, Exhausted> {
        match dictionary.get(key.as_bytes()) {
            Some(value) => self.resolve(value),
            None => Ok(Object::Null),
        }
    }

    /// Returns the dictionary and the unpacked data of a stream; `None` if the object is not a
    /// stream, or is an image.
    pub(super) fn stream(&self, number: u32) -> Result<Option<(Dictionary, Vec<u8>)>, Exhausted> {
        let Some(ObjectLocation::File {
            data: Some(data), ..
        }) = self.locations.get(&number)
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
        if filters.len() > MAX_FILTERS {
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

/// Returns the object number in the `12 0 obj` that ends here, given without its last word.
fn header_number(before: &[u8]) -> Option<u32> {
    let (rest, _generation) = last_number(before)?;
    if !rest.last().copied().is_some_and(is_space) {
        return None;
    }
    last_number(rest).map(|(_, number)| number)
}

/// Splits the number off the end of the bytes.
fn last_number(bytes: &[u8]) -> Option<(&[u8], u32)> {
    // A header is short; a longer search would let blanks take too many steps.
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
