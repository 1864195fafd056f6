//! Reads the exported names of an embedded module from its text.
//!
//! Embedded modules begin each `export` at the start of a line; no other form is recognised. A test of the crate
//! compares the result with the real exports of each module.

/// The names that a module exports, and the modules of its star exports.
pub(crate) struct Exports {
    pub(crate) names: Vec<Export>,
    pub(crate) stars: Vec<String>,
}

/// An exported name. For a re-export, `from` is the other module and `inner` the name there; otherwise both are empty.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Export {
    pub(crate) name: String,
    pub(crate) from: String,
    pub(crate) inner: String,
}

impl Export {
    fn own(name: String) -> Self {
        Self {
            name,
            from: String::new(),
            inner: String::new(),
        }
    }
}

/// Reads the `export` statements of `source`.
pub(crate) fn scan(source: &str) -> Exports {
    let mut found = Exports {
        names: Vec::new(),
        stars: Vec::new(),
    };
    let mut rest = source;
    loop {
        if let Some(statement) = rest.strip_prefix("export")
            && statement.starts_with([' ', '{', '*'])
        {
            take(statement.trim_start(), &mut found);
        }
        match rest.find('\n') {
            Some(end) => rest = &rest[end + 1..],
            None => break,
        }
    }
    found.names.sort();
    found.names.dedup();
    found
}

fn take(statement: &str, found: &mut Exports) {
    if let Some(star) = statement.strip_prefix('*') {
        match star.trim_start().strip_prefix("as ") {
            Some(name) => found.names.push(Export::own(identifier(name))),
            None => found.stars.extend(quoted(star)),
        }
        return;
    }
    if let Some(list) = statement.strip_prefix('{') {
        let (list, rest) = list.split_once('}').unwrap_or((list, ""));
        let from = rest.trim_start().strip_prefix("from");
        let from = from.and_then(quoted).unwrap_or_default();
        for item in list.split(',') {
            let item = item.split("//").next().unwrap_or_default().trim();
            let (inner, name) = item.split_once(" as ").unwrap_or((item, item));
            let (inner, name) = (inner.trim().to_owned(), name.trim().to_owned());
            if name.is_empty() {
                continue;
            }
            found.names.push(match from.as_str() {
                "" => Export::own(name),
                from => Export {
                    name,
                    from: from.to_owned(),
                    inner,
                },
            });
        }
        return;
    }
    let mut words = statement;
    loop {
        let word = identifier(words);
        if word == "default" {
            found.names.push(Export::own(word));
            return;
        }
        let after = words[word.len()..].trim_start_matches(['*', ' ']);
        match word.as_str() {
            "async" | "function" => words = after,
            "class" => {
                found.names.push(Export::own(identifier(after)));
                return;
            }
            "const" | "let" | "var" => {
                declared(after, found);
                return;
            }
            _ => {
                found.names.push(Export::own(word));
                return;
            }
        }
    }
}

/// Returns the names of `const a = 1` and of `const { a, b: c } = value`.
fn declared(text: &str, found: &mut Exports) {
    let Some(pattern) = text.strip_prefix('{') else {
        found.names.push(Export::own(identifier(text)));
        return;
    };
    for item in pattern.split('}').next().unwrap_or_default().split(',') {
        let item = item.split('=').next().unwrap_or_default();
        let name = item.rsplit(':').next().unwrap_or(item).trim();
        if !name.is_empty() {
            found.names.push(Export::own(name.to_owned()));
        }
    }
}

fn identifier(text: &str) -> String {
    text.chars()
        .take_while(|character| character.is_alphanumeric() || matches!(character, '_' | '$'))
        .collect()
}

fn quoted(text: &str) -> Option<String> {
    let start = text.find(['"', '\''])?;
    let rest = &text[start + 1..];
    let end = rest.find(['"', '\''])?;
    Some(rest[..end].to_owned())
}
