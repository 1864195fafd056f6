//! Prints the text of a document: `cargo run -p pinion-documents --example text -- FILE`.
#![allow(clippy::print_stdout)]

use std::io;

use pinion_documents::{Document, Limits, extract};

fn main() -> io::Result<()> {
    let name = std::env::args().nth(1).unwrap_or_default();
    let bytes = std::fs::read(&name)?;
    let document = Document {
        name: &name,
        mime: None,
        bytes: &bytes,
    };
    let read = extract(&document, &Limits::default()).map_err(io::Error::other)?;
    print!("{}", read.text);
    Ok(())
}
