//! What was said before, to be said again.

/// Texts that are kept.
const KEPT: usize = 500;

/// Earlier texts, the oldest first, and where in them one is.
#[derive(Debug, Default)]
pub(super) struct History {
    texts: Vec<String>,
    /// Which text is shown instead of the draft.
    shown: Option<usize>,
    /// What stood in the editor before, with its markers.
    draft: String,
}

impl History {
    pub(super) fn texts(&self) -> &[String] {
        &self.texts
    }

    pub(super) fn set(&mut self, texts: Vec<String>) {
        *self = Self::default();
        for text in texts {
            self.remember(text);
        }
    }

    /// Adds a text unless it is empty or the one before again.
    pub(super) fn remember(&mut self, text: String) {
        self.leave();
        if text.trim().is_empty() || self.texts.last() == Some(&text) {
            return;
        }
        self.texts.push(text);
        if self.texts.len() > KEPT {
            self.texts.remove(0);
        }
    }

    /// The text before the one shown; `draft` is what stands in the editor now.
    pub(super) fn older(&mut self, draft: &str) -> Option<&str> {
        let next = match self.shown {
            Some(shown) => shown.checked_sub(1)?,
            None => {
                let last = self.texts.len().checked_sub(1)?;
                draft.clone_into(&mut self.draft);
                last
            }
        };
        self.shown = Some(next);
        self.texts.get(next).map(String::as_str)
    }

    /// What comes after the text shown.
    pub(super) fn newer(&mut self) -> Option<Newer<'_>> {
        let shown = self.shown?;
        if shown + 1 < self.texts.len() {
            self.shown = Some(shown + 1);
            return self.texts.get(shown + 1).map(|text| Newer::Text(text));
        }
        self.shown = None;
        Some(Newer::Draft(std::mem::take(&mut self.draft)))
    }

    /// What is shown is being changed: it is the draft now.
    pub(super) fn leave(&mut self) {
        self.shown = None;
        self.draft.clear();
    }
}

/// A step towards the present.
#[derive(Debug)]
pub(super) enum Newer<'a> {
    Text(&'a str),
    Draft(String),
}
