//! Comma and tab separated values.

/// Returns the records of a table. Quotes may contain separators, line ends and doubled quotes.
pub(crate) fn records(text: &str, separator: char) -> Vec<Vec<String>> {
    let mut records = Vec::new();
    let mut record = Vec::new();
    let mut cell = String::new();
    let mut quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                cell.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if cell.is_empty() => quoted = true,
            '\r' if !quoted && characters.peek() == Some(&'\n') => {}
            '\n' if !quoted => {
                record.push(std::mem::take(&mut cell));
                finish(&mut records, &mut record);
            }
            other if other == separator && !quoted => record.push(std::mem::take(&mut cell)),
            other => cell.push(other),
        }
    }
    if !cell.is_empty() || !record.is_empty() {
        record.push(cell);
        finish(&mut records, &mut record);
    }
    records
}

/// Adds a record, unless its line is empty.
fn finish(records: &mut Vec<Vec<String>>, record: &mut Vec<String>) {
    let record = std::mem::take(record);
    if record.len() > 1 || record.first().is_some_and(|cell| !cell.is_empty()) {
        records.push(record);
    }
}

/// Splits a written list: `a,"b,c",d`.
pub(crate) fn items(text: &str) -> Vec<String> {
    records(text, ',').into_iter().next().unwrap_or_default()
}
