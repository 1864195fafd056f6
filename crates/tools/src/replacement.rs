//! Finds the text that an edit means, and computes the file after it.
//!
//! Text is compared with LF line ends. An exact match is tried first; if there is none, texts that
//! look alike count (see `fuzzy.rs`), and the changed lines are written in folded form. Nothing
//! here reads or writes files.

use std::ops::Range;

use crate::ToolError;
use crate::fuzzy::{LinePairs, fold, occurrences};

const BOM: char = '\u{feff}';

/// One replacement, with LF line ends.
#[derive(Debug)]
pub(crate) struct Edit {
    old: String,
    new: String,
}

impl Edit {
    pub fn new(old: &str, new: &str) -> Self {
        Self {
            old: with_lf(old),
            new: with_lf(new),
        }
    }
}

/// All replacements of one call.
#[derive(Debug)]
pub(crate) struct EditRequest {
    /// The file as the model named it.
    pub path: String,
    edits: Vec<Edit>,
    form: CallForm,
}

/// The form of the call, which decides the wording of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallForm {
    Single,
    List,
}

/// A file's new content, and both sides of the change for display.
#[derive(Debug)]
pub(crate) struct FileChange {
    pub file: String,
    pub before: String,
    pub after: String,
    /// Both sides in the characters of the file, with LF line ends.
    pub original: String,
    pub kept: String,
}

impl EditRequest {
    pub fn single(path: &str, edit: Edit) -> Result<Self, ToolError> {
        Self::checked(path, vec![edit], CallForm::Single)
    }

    pub fn list(path: &str, edits: Vec<Edit>) -> Result<Self, ToolError> {
        Self::checked(path, edits, CallForm::List)
    }

    fn checked(path: &str, edits: Vec<Edit>, form: CallForm) -> Result<Self, ToolError> {
        let request = Self {
            path: path.to_owned(),
            edits,
            form,
        };
        match request.edits.iter().position(|edit| edit.old.is_empty()) {
            Some(_) if request.edits.len() == 1 => {
                Err(ToolError(format!("oldText must not be empty in {path}.")))
            }
            Some(index) => Err(ToolError(format!(
                "edits[{index}].oldText must not be empty in {path}."
            ))),
            None => Ok(request),
        }
    }

    /// The answer to the model after a success.
    pub fn success(&self) -> String {
        let path = &self.path;
        match self.form {
            CallForm::Single => format!("Successfully replaced text in {path}."),
            CallForm::List => {
                format!(
                    "Successfully replaced {} block(s) in {path}.",
                    self.edits.len()
                )
            }
        }
    }

    fn not_found(&self, index: usize) -> ToolError {
        let path = &self.path;
        ToolError(if self.edits.len() == 1 {
            format!(
                "Could not find the exact text in {path}. The old text must match exactly including \
                 all whitespace and newlines."
            )
        } else {
            format!(
                "Could not find edits[{index}] in {path}. The oldText must match exactly including \
                 all whitespace and newlines."
            )
        })
    }

    fn not_unique(&self, index: usize, count: usize) -> ToolError {
        let path = &self.path;
        ToolError(if self.edits.len() == 1 {
            format!(
                "Found {count} occurrences of the text in {path}. The text must be unique. \
                 Please provide more context to make it unique."
            )
        } else {
            format!(
                "Found {count} occurrences of edits[{index}] in {path}. Each oldText must be unique. \
                 Please provide more context to make it unique."
            )
        })
    }

    fn unchanged(&self) -> ToolError {
        let path = &self.path;
        ToolError(if self.edits.len() == 1 {
            format!(
                "No changes made to {path}. The replacement produced identical content. This might \
                 indicate an issue with special characters or the text not existing as expected."
            )
        } else {
            format!("No changes made to {path}. The replacements produced identical content.")
        })
    }
}

/// The file `raw` after all edits of `request`, each found in the original text.
pub(crate) fn apply(raw: &str, request: &EditRequest) -> Result<FileChange, ToolError> {
    let (bom, text) = match raw.strip_prefix(BOM) {
        Some(rest) => (true, rest),
        None => (false, raw),
    };
    let crlf = text.find('\n').is_some_and(|at| text[..at].ends_with('\r'));
    let original = with_lf(text);
    let folded = fold(&original);
    let exact = request
        .edits
        .iter()
        .all(|edit| original.contains(&edit.old));
    let base = if exact { &original } else { &folded };

    let mut matches = Vec::with_capacity(request.edits.len());
    for (index, edit) in request.edits.iter().enumerate() {
        matches.push(Match {
            range: locate(request, index, edit, base, &folded, exact)?,
            index,
        });
    }
    matches.sort_by_key(|found| found.range.start);
    for pair in matches.windows(2) {
        if pair[0].range.end > pair[1].range.start {
            let (first, second) = (pair[0].index, pair[1].index);
            return Err(ToolError(format!(
                "edits[{first}] and edits[{second}] overlap in {}. Merge them into one edit or \
                 target disjoint regions.",
                request.path
            )));
        }
    }

    let after = splice(base, &matches, &request.edits, |range| {
        base[range].to_owned()
    });
    if after == *base {
        return Err(request.unchanged());
    }
    let kept = if exact {
        after.clone()
    } else {
        let lines = LinePairs::new(&folded, &original);
        splice(base, &matches, &request.edits, |range| lines.unfold(range))
    };
    let mut file = String::with_capacity(raw.len() + kept.len());
    if bom {
        file.push(BOM);
    }
    if crlf {
        file.push_str(&kept.replace('\n', "\r\n"));
    } else {
        file.push_str(&kept);
    }
    Ok(FileChange {
        file,
        before: if exact { original.clone() } else { folded },
        after,
        original,
        kept,
    })
}

struct Match {
    range: Range<usize>,
    index: usize,
}

fn locate(
    request: &EditRequest,
    index: usize,
    edit: &Edit,
    base: &str,
    folded: &str,
    exact: bool,
) -> Result<Range<usize>, ToolError> {
    let folded_old = fold(&edit.old);
    let needle = if exact { &edit.old } else { &folded_old };
    // Text of nothing but blanks folds to an empty text, which would match everywhere.
    if needle.is_empty() {
        return Err(request.not_found(index));
    }
    let start = base
        .find(needle.as_str())
        .ok_or_else(|| request.not_found(index))?;
    let count = if folded_old.is_empty() {
        occurrences(base, needle)
    } else {
        occurrences(folded, &folded_old)
    };
    if count > 1 {
        return Err(request.not_unique(index, count));
    }
    Ok(start..start + needle.len())
}

/// `base` with the matches replaced; `keep` renders the text between them.
fn splice(
    base: &str,
    matches: &[Match],
    edits: &[Edit],
    keep: impl Fn(Range<usize>) -> String,
) -> String {
    let mut out = String::with_capacity(base.len());
    let mut end = 0;
    for found in matches {
        out.push_str(&keep(end..found.range.start));
        out.push_str(&edits[found.index].new);
        end = found.range.end;
    }
    out.push_str(&keep(end..base.len()));
    out
}

fn with_lf(text: &str) -> String {
    if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn single(raw: &str, old: &str, new: &str) -> Result<String, String> {
        let request = EditRequest::single("f", Edit::new(old, new)).map_err(|error| error.0)?;
        apply(raw, &request)
            .map(|change| change.file)
            .map_err(|error| error.0)
    }

    fn list(raw: &str, edits: &[(&str, &str)]) -> Result<String, String> {
        let edits = edits.iter().map(|(old, new)| Edit::new(old, new)).collect();
        let request = EditRequest::list("f", edits).map_err(|error| error.0)?;
        apply(raw, &request)
            .map(|change| change.file)
            .map_err(|error| error.0)
    }

    #[test]
    fn line_ends_and_byte_order_mark_stay() {
        let edited = single(
            "\u{feff}one\r\ntwo\r\nthree\r\n",
            "two\nthree",
            "TWO\nTHREE\n4",
        )
        .unwrap();
        assert_eq!(edited, "\u{feff}one\r\nTWO\r\nTHREE\r\n4\r\n");
        assert_eq!(single("a\nb\r\nc", "b", "B").unwrap(), "a\nB\nc");
    }

    #[test]
    fn a_look_alike_changes_its_own_lines_and_no_others() {
        let raw = "keep “this”   \nsay “hi” now   \nend – here\t\n";
        assert_eq!(
            single(raw, "say \"hi\" now", "say bye").unwrap(),
            "keep “this”   \nsay bye\nend – here\t\n"
        );
        assert_eq!(
            single(raw, "\"hi\" now\nend -", "X").unwrap(),
            "keep “this”   \nsay X here\n"
        );
        assert_eq!(
            list(raw, &[("\"this\"", "T"), ("- here", "H")]).unwrap(),
            "keep T\nsay “hi” now   \nend H\n"
        );
    }

    #[test]
    fn uniqueness_counts_look_alikes_too() {
        assert_eq!(
            single("a 'x'\na ’x’\n", "a 'x'", "b").unwrap_err(),
            "Found 2 occurrences of the text in f. The text must be unique. Please provide more \
             context to make it unique."
        );
    }

    #[test]
    fn blanks_alone_can_be_replaced() {
        assert_eq!(single("a    b", "    ", " ").unwrap(), "a b");
        assert!(
            single("a    b  c", "  ", " ")
                .unwrap_err()
                .starts_with("Found 3 occurrences")
        );
    }

    proptest! {
        #[test]
        fn an_exact_edit_changes_its_text_and_nothing_else(
            before in "[a-z “”\n]{0,40}",
            old in "[A-Z]{1,9}",
            new in "[a-z\n]{0,9}",
            after in "[a-z’  \n]{0,40}",
        ) {
            let edited = single(&format!("{before}{old}{after}"), &old, &new).unwrap();
            prop_assert_eq!(edited, format!("{before}{new}{after}"));
        }

        #[test]
        fn a_look_alike_edit_keeps_every_other_line(
            lines in proptest::collection::vec("[a-z“’ ]{0,8}", 1..12),
            at in 0usize..12,
        ) {
            let mut lines: Vec<String> = lines;
            let at = at % lines.len();
            lines[at] = "OLD – TEXT ".into();
            let edited = single(&lines.join("\n"), "OLD - TEXT", "new").unwrap();
            lines[at] = "new".into();
            prop_assert_eq!(edited, lines.join("\n"));
        }
    }

    #[test]
    fn a_list_is_matched_against_the_original() {
        assert_eq!(
            list("a\nb\nc\n", &[("c", "a"), ("a", "c")]).unwrap(),
            "c\nb\na\n"
        );
        for (edits, error) in [
            (
                &[("a", "x"), ("zz", "y")][..],
                "Could not find edits[1] in f. The oldText must",
            ),
            (
                &[("a", "x"), ("\n", "y")],
                "Found 3 occurrences of edits[1] in f. Each oldText",
            ),
            (
                &[("b\nc", "x"), ("a\nb", "y")],
                "edits[1] and edits[0] overlap in f. Merge them",
            ),
            (
                &[("a", "a"), ("b", "b")],
                "No changes made to f. The replacements produced",
            ),
            (
                &[("a", "a"), ("", "b")],
                "edits[1].oldText must not be empty in f.",
            ),
            (&[("", "b")], "oldText must not be empty in f."),
        ] {
            let found = list("a\nb\nc\n", edits).unwrap_err();
            assert!(found.starts_with(error), "{found}");
        }
    }
}
