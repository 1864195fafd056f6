//! Text of PDF files, page by page, in the order in which it is drawn.
//!
//! All work is charged to one [`Budget`]; constants limit recursion.

mod budget;
mod cmap;
mod content;
mod file;
mod filters;
mod font;
mod glyphs;
mod layout;
mod matrix;
mod syntax;

use std::collections::HashSet;

use crate::output::Output;
use crate::{Document, DocumentError, DocumentKind, Limits};
use budget::{Budget, Exhausted};
use content::Interpreter;
use file::{File, Unusable};
use syntax::{Dictionary, Object};

/// Writes the text of a PDF; returns its number of pages.
pub(crate) fn write(
    document: &Document<'_>,
    limits: &Limits,
    output: &mut Output,
) -> Result<usize, DocumentError> {
    let name = || document.name.to_owned();
    let too_complex = |_: Exhausted| DocumentError::TooComplex {
        name: name(),
        limit: limits.unpacked,
    };
    let file =
        File::open(document.bytes, Budget::new(limits.unpacked)).map_err(
            |unusable| match unusable {
                Unusable::Encrypted => DocumentError::Encrypted { name: name() },
                Unusable::Exhausted => too_complex(Exhausted),
            },
        )?;
    let pages = pages(&file).map_err(too_complex)?;
    if pages.is_empty() {
        return Err(DocumentError::broken(document, "it has no pages"));
    }
    let mut interpreter = Interpreter::new(&file, limits.text);
    for (at, page) in pages.iter().take(limits.pages).enumerate() {
        let done = write_page(
            &file,
            &mut interpreter,
            page,
            (pages.len() > 1).then_some(at + 1),
            output,
        );
        if done.is_err() {
            if output.is_empty() {
                return Err(too_complex(Exhausted));
            }
            output.cut();
        }
        if output.is_full() {
            break;
        }
    }
    if output.is_empty() {
        return Err(DocumentError::NoText {
            name: name(),
            kind: DocumentKind::Pdf,
        });
    }
    if pages.len() > limits.pages {
        output.cut();
    }
    Ok(pages.len())
}

fn write_page(
    file: &File<'_>,
    interpreter: &mut Interpreter<'_, '_>,
    page: &Page,
    number: Option<usize>,
    output: &mut Output,
) -> Result<(), Exhausted> {
    let node = file.object(page.node)?.dictionary().unwrap_or_default();
    let contents = contents(file, node.get(b"Contents".as_slice()))?;
    let resources = match page.resources {
        Some(holder) => {
            let holder = file.object(holder)?.dictionary().unwrap_or_default();
            file.get(&holder, "Resources")?
                .dictionary()
                .unwrap_or_default()
        }
        None => Dictionary::new(),
    };
    file.budget.hold(contents.len())?;
    let (layout, done) = interpreter.page(&contents, resources);
    file.budget.release(contents.len());
    let text = layout.text();
    if !text.is_empty() {
        if !output.is_empty() {
            output.push("\n");
        }
        if let Some(number) = number {
            output.push(&format!("[Page {number}]\n"));
        }
        output.push(text);
        output.push("\n");
    }
    done
}

/// Returns the instructions of a page, its parts joined.
fn contents(file: &File<'_>, contents: Option<&Object>) -> Result<Vec<u8>, Exhausted> {
    let parts = match contents {
        Some(Object::Reference(number)) => match file.object(*number)? {
            Object::Array(parts) => parts,
            _ => vec![Object::Reference(*number)],
        },
        Some(Object::Array(parts)) => parts.clone(),
        _ => Vec::new(),
    };
    let mut joined = Vec::new();
    for number in parts.iter().filter_map(Object::reference) {
        if let Some((_, part)) = file.stream(number)? {
            joined.extend_from_slice(&part);
            joined.push(b'\n');
            if joined.len() > file.budget.stream {
                return Err(Exhausted);
            }
        }
    }
    Ok(joined)
}

/// A page by object number; its parts are read when it is drawn.
#[derive(Debug, Clone, Copy)]
struct Page {
    node: u32,
    /// The node with its resources: the page, or one of its parents.
    resources: Option<u32>,
}

/// Returns the pages in order.
fn pages(file: &File<'_>) -> Result<Vec<Page>, Exhausted> {
    let mut pages = Vec::new();
    // Every node is visited once, so that a node that is its own descendant ends the walk.
    let mut seen = HashSet::new();
    let root = file.root()?.unwrap_or_default();
    let tree = root.get(b"Pages".as_slice()).and_then(Object::reference);
    let mut open: Vec<(u32, Option<u32>)> = tree.into_iter().map(|tree| (tree, None)).collect();
    while let Some((number, inherited)) = open.pop() {
        let Some(node) = file.object(number)?.dictionary() else {
            continue;
        };
        let own = node.contains_key(b"Resources".as_slice()).then_some(number);
        let resources = own.or(inherited);
        match file.get(&node, "Kids")? {
            Object::Array(kids) => {
                let from = open.len();
                let kids = kids.iter().filter_map(Object::reference);
                open.extend(
                    kids.filter(|kid| seen.insert(*kid))
                        .map(|kid| (kid, resources)),
                );
                open[from..].reverse();
            }
            _ => pages.push(Page {
                node: number,
                resources,
            }),
        }
    }
    if pages.is_empty() {
        let loose = file.loose_pages.iter();
        pages.extend(loose.map(|&node| Page {
            node,
            resources: Some(node),
        }));
    }
    Ok(pages)
}
