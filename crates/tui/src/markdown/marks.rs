//! The marks at the start of a line: fences, items, HTML.

/// Columns by which a line is indented.
pub(super) fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The fence around a piece of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence {
    mark: u8,
    length: usize,
    /// Columns of indentation that are removed from the code.
    pub indent: usize,
}

impl Fence {
    /// Returns the fence that this line opens.
    pub fn opened_by(line: &str) -> Option<Self> {
        let indent = indent(line);
        let text = &line[indent..];
        let mark = *text.as_bytes().first()?;
        if indent > 3 || !matches!(mark, b'`' | b'~') {
            return None;
        }
        let length = run(text, mark);
        let is_inline = mark == b'`' && text[length..].contains('`');
        (length >= 3 && !is_inline).then_some(Self {
            mark,
            length,
            indent,
        })
    }

    /// The language that the opening line names.
    pub fn language<'a>(&self, opening: &'a str) -> &'a str {
        let info = opening.get(self.indent + self.length..).unwrap_or_default();
        language(info)
    }

    /// Reports whether this line closes the fence.
    pub fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim();
        indent(line) <= 3 && text.len() >= self.length && run(text, self.mark) == text.len()
    }

    /// Reports whether this beginning of a line may become the closing line.
    pub fn may_be_closed_by(&self, line: &str) -> bool {
        let text = line.trim();
        indent(line) <= 3 && !text.is_empty() && run(text, self.mark) == text.len()
    }
}

/// The language that an info string names: its first word, without attributes.
pub(super) fn language(info: &str) -> &str {
    let word = info.split_whitespace().next().unwrap_or_default();
    let word = word.trim_start_matches(['{', '.']);
    word.split([',', '{', '}']).next().unwrap_or_default()
}

/// The mark of a list item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marker {
    /// The character of the mark. Items with different ones belong to different lists.
    pub kind: u8,
    pub number: Option<u64>,
    /// Column at which the item's text begins.
    pub text_column: usize,
}

impl Marker {
    /// Returns the mark at the start of this line.
    pub fn of(line: &str) -> Option<Self> {
        if is_rule(line) {
            return None;
        }
        let indent = indent(line);
        let text = &line[indent..];
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let kind = *text.as_bytes().get(digits)?;
        match (digits, kind) {
            (0, b'-' | b'+' | b'*') | (1..=9, b'.' | b')') => {}
            _ => return None,
        }
        let behind = &text[digits + 1..];
        let spaces = run(behind, b' ');
        if spaces == 0 && !behind.is_empty() {
            return None;
        }
        let is_text_indented = spaces > 4 || spaces == behind.len();
        Some(Self {
            kind,
            number: text[..digits].parse().ok(),
            text_column: indent + digits + 1 + if is_text_indented { 1 } else { spaces },
        })
    }
}

fn is_rule(line: &str) -> bool {
    let mut marks = line.bytes().filter(|&byte| byte != b' ');
    let Some(mark @ (b'-' | b'*' | b'_')) = marks.next() else {
        return false;
    };
    let mut count = 1;
    for other in marks {
        if other != mark {
            return false;
        }
        count += 1;
    }
    count >= 3
}

/// Returns the end of the HTML block that this line starts, if the block may contain blank lines.
pub(super) fn html_end(line: &str) -> Option<&'static str> {
    let text = line.trim_start();
    let starts = |tag: &str| {
        text.get(..tag.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(tag))
    };
    let end = [
        ("<!--", "-->"),
        ("<?", "?>"),
        ("<![CDATA[", "]]>"),
        ("<pre", "</pre>"),
        ("<script", "</script>"),
        ("<style", "</style>"),
        ("<textarea", "</textarea>"),
    ]
    .into_iter()
    .find(|(tag, _)| starts(tag))?
    .1;
    (!text.contains(end)).then_some(end)
}

/// Number of times a text begins with a byte.
fn run(text: &str, mark: u8) -> usize {
    text.bytes().take_while(|&byte| byte == mark).count()
}
