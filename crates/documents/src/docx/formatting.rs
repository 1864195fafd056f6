//! The styles, numberings and relationships of a Word document, as far as its text needs them.

use std::collections::HashMap;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// The last level of a list: Word has nine.
pub(super) const MAX_LEVEL: usize = 8;

/// A position in a numbered or bulleted list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct ListPosition {
    /// The id of the list.
    pub(super) list: String,
    /// The level in it, from 0.
    pub(super) level: usize,
}

/// The marks of the items of one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Bullet,
    /// Numbers, starting here.
    Number(u32),
}

#[derive(Debug, Default)]
struct Style {
    heading: Option<usize>,
    position: Option<ListPosition>,
}

/// Facts about a document besides its text.
#[derive(Debug, Default)]
pub(super) struct Formatting {
    styles: HashMap<String, Style>,
    /// From a list to its definition.
    lists: HashMap<String, String>,
    levels: HashMap<ListPosition, Mark>,
    links: HashMap<String, String>,
}

impl Formatting {
    pub(super) fn new(styles: &str, numbering: &str, links: &str) -> Self {
        let mut formatting = Self::default();
        formatting.read_styles(styles);
        formatting.read_numbering(numbering);
        formatting.links = relationships(links)
            .filter(|relationship| relationship.kind.ends_with("/hyperlink"))
            .map(|relationship| (relationship.id, relationship.target))
            .collect();
        formatting
    }

    /// Returns the heading level of a style, from 1.
    pub(super) fn heading(&self, style: &str) -> Option<usize> {
        self.styles.get(style)?.heading
    }

    /// Returns the list position of a style.
    pub(super) fn position(&self, style: &str) -> Option<&ListPosition> {
        self.styles.get(style)?.position.as_ref()
    }

    /// Returns the mark of items at a position. List 0 is Word's notation for none.
    pub(super) fn mark(&self, position: &ListPosition) -> Option<Mark> {
        if position.list == "0" {
            return None;
        }
        let list = self.lists.get(&position.list).cloned().unwrap_or_default();
        Some(
            *self
                .levels
                .get(&ListPosition {
                    list,
                    level: position.level,
                })
                .unwrap_or(&Mark::Bullet),
        )
    }

    /// Returns the target of a link.
    pub(super) fn link(&self, id: &str) -> Option<&str> {
        self.links.get(id).map(String::as_str)
    }

    fn read_styles(&mut self, xml: &str) {
        let mut current = String::new();
        for element in elements(xml) {
            match element.local_name().as_ref() {
                "style" => current = attribute(&element, "styleId").unwrap_or_default(),
                "name" => {
                    let name = attribute(&element, "val")
                        .unwrap_or_default()
                        .to_ascii_lowercase();
                    let heading = match name.strip_prefix("heading ") {
                        Some(level) => level.parse().ok().filter(|level| (1..=9).contains(level)),
                        None => (name == "title").then_some(1),
                    };
                    if heading.is_some() {
                        self.style(&current).heading = heading;
                    }
                }
                "outlineLvl" => {
                    let heading = outline_heading(&element);
                    if heading.is_some() {
                        self.style(&current).heading = heading;
                    }
                }
                "numId" => {
                    let list = attribute(&element, "val").unwrap_or_default();
                    self.style(&current).position.get_or_insert_default().list = list;
                }
                "ilvl" => {
                    let level = number(&element).unwrap_or(0).min(MAX_LEVEL);
                    self.style(&current).position.get_or_insert_default().level = level;
                }
                _ => {}
            }
        }
    }

    fn style(&mut self, id: &str) -> &mut Style {
        self.styles.entry(id.to_owned()).or_default()
    }

    fn read_numbering(&mut self, xml: &str) {
        let mut position = ListPosition::default();
        let mut start = 1;
        let mut list = String::new();
        for element in elements(xml) {
            match element.local_name().as_ref() {
                "abstractNum" => {
                    position.list = attribute(&element, "abstractNumId").unwrap_or_default();
                }
                "lvl" => {
                    start = 1;
                    position.level = attribute(&element, "ilvl")
                        .and_then(|at| at.parse().ok())
                        .unwrap_or(0)
                        .min(MAX_LEVEL);
                }
                "start" => start = number(&element).unwrap_or(1),
                "numFmt" => {
                    let format = attribute(&element, "val").unwrap_or_default();
                    let mark = match format.as_str() {
                        "bullet" | "none" => Mark::Bullet,
                        _ => Mark::Number(start),
                    };
                    self.levels.insert(position.clone(), mark);
                }
                "num" => list = attribute(&element, "numId").unwrap_or_default(),
                "abstractNumId" => {
                    let definition = attribute(&element, "val").unwrap_or_default();
                    self.lists.insert(list.clone(), definition);
                }
                _ => {}
            }
        }
    }
}

/// One entry of a part's list of relationships.
pub(super) struct Relationship {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) target: String,
}

/// Returns the relationships in a part.
pub(super) fn relationships(xml: &str) -> impl Iterator<Item = Relationship> {
    elements(xml)
        .filter(|element| element.local_name().as_ref() == "Relationship")
        .filter_map(|element| {
            Some(Relationship {
                id: attribute(&element, "Id")?,
                kind: attribute(&element, "Type")?,
                target: attribute(&element, "Target")?,
            })
        })
}

/// Returns the heading level of an outline level; level 9 is body text.
pub(super) fn outline_heading(element: &BytesStart<'_>) -> Option<usize> {
    number::<usize>(element)
        .filter(|level| *level < 9)
        .map(|level| level + 1)
}

/// Parses the number in the element's `val`.
pub(super) fn number<T: std::str::FromStr>(element: &BytesStart<'_>) -> Option<T> {
    attribute(element, "val")?.parse().ok()
}

/// Returns an attribute by its name without prefix.
pub(super) fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = element.attributes();
    let mut read = attributes.with_checks(false).flatten();
    let value = read.find(|attribute| attribute.key.local_name().as_ref() == name)?;
    Some(
        value
            .normalized_value(quick_xml::XmlVersion::Implicit1_0)
            .ok()?
            .into_owned(),
    )
}

/// Returns every element of a part before its end or its first error.
fn elements(xml: &str) -> impl Iterator<Item = BytesStart<'_>> {
    let mut reader = Reader::from_str(xml);
    std::iter::from_fn(move || {
        loop {
            match reader.read_event() {
                Ok(Event::Start(element) | Event::Empty(element)) => return Some(element),
                Ok(Event::Eof) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    })
}
