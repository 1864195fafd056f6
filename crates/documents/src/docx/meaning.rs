//! What the styles, numberings and relationships of a Word document mean for its text.

use std::collections::HashMap;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// The last level of a list: Word has nine.
pub(super) const DEEPEST_LEVEL: usize = 8;

/// A place in a numbered or bulleted list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Place {
    /// The list.
    pub(super) list: String,
    /// The level in it, from 0.
    pub(super) level: usize,
}

/// How the items of one level are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// With a bullet.
    Bullet,
    /// With numbers from here.
    Number(u32),
}

#[derive(Debug, Default)]
struct Style {
    heading: Option<usize>,
    place: Option<Place>,
}

/// What is known about a document beside its text.
#[derive(Debug, Default)]
pub(super) struct Meaning {
    styles: HashMap<String, Style>,
    /// From a list to the definition it follows.
    lists: HashMap<String, String>,
    levels: HashMap<Place, Mark>,
    links: HashMap<String, String>,
}

impl Meaning {
    pub(super) fn new(styles: &str, numbering: &str, links: &str) -> Self {
        let mut meaning = Self::default();
        meaning.read_styles(styles);
        meaning.read_numbering(numbering);
        meaning.links = relationships(links)
            .filter(|relationship| relationship.kind.ends_with("/hyperlink"))
            .map(|relationship| (relationship.id, relationship.target))
            .collect();
        meaning
    }

    /// The level of the heading a style makes, from 1.
    pub(super) fn heading(&self, style: &str) -> Option<usize> {
        self.styles.get(style)?.heading
    }

    /// The list a style puts a paragraph into.
    pub(super) fn place(&self, style: &str) -> Option<&Place> {
        self.styles.get(style)?.place.as_ref()
    }

    /// How items at a place are marked. List 0 is Word's way of saying none.
    pub(super) fn mark(&self, place: &Place) -> Option<Mark> {
        if place.list == "0" {
            return None;
        }
        let list = self.lists.get(&place.list).cloned().unwrap_or_default();
        Some(
            *self
                .levels
                .get(&Place {
                    list,
                    level: place.level,
                })
                .unwrap_or(&Mark::Bullet),
        )
    }

    /// Where a link leads.
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
                    self.style(&current).place.get_or_insert_default().list = list;
                }
                "ilvl" => {
                    let level = number(&element).unwrap_or(0).min(DEEPEST_LEVEL);
                    self.style(&current).place.get_or_insert_default().level = level;
                }
                _ => {}
            }
        }
    }

    fn style(&mut self, id: &str) -> &mut Style {
        self.styles.entry(id.to_owned()).or_default()
    }

    fn read_numbering(&mut self, xml: &str) {
        let mut place = Place::default();
        let mut start = 1;
        let mut list = String::new();
        for element in elements(xml) {
            match element.local_name().as_ref() {
                "abstractNum" => {
                    place.list = attribute(&element, "abstractNumId").unwrap_or_default();
                }
                "lvl" => {
                    start = 1;
                    place.level = attribute(&element, "ilvl")
                        .and_then(|at| at.parse().ok())
                        .unwrap_or(0)
                        .min(DEEPEST_LEVEL);
                }
                "start" => start = number(&element).unwrap_or(1),
                "numFmt" => {
                    let format = attribute(&element, "val").unwrap_or_default();
                    let mark = match format.as_str() {
                        "bullet" | "none" => Mark::Bullet,
                        _ => Mark::Number(start),
                    };
                    self.levels.insert(place.clone(), mark);
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

/// One line of a part's list of relationships.
pub(super) struct Relationship {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) target: String,
}

/// The relationships a part lists.
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

/// The heading level an outline level means; level 9 is body text.
pub(super) fn outline_heading(element: &BytesStart<'_>) -> Option<usize> {
    number::<usize>(element)
        .filter(|level| *level < 9)
        .map(|level| level + 1)
}

/// The number in the element's `val`.
pub(super) fn number<T: std::str::FromStr>(element: &BytesStart<'_>) -> Option<T> {
    attribute(element, "val")?.parse().ok()
}

/// An attribute by its name without prefix.
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

/// Every element of a part that can be read before its end or its first fault.
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
