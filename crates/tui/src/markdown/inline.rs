//! The text of a block before it is broken into rows: styles, links, images.

use pulldown_cmark::LinkType;
use ratatui::style::Style;
use ratatui::text::Span;

use crate::Theme;
use crate::text;

/// Collects styled text.
pub(super) struct Inline<'a> {
    theme: &'a Theme,
    spans: Vec<Span<'static>>,
    /// The open styles, each merged with those around it.
    styles: Vec<Style>,
    links: Vec<Link>,
    /// The description of the open image, and the text after it. Images inside the description
    /// become text.
    image: Option<(String, String)>,
    images: usize,
}

enum Link {
    To {
        address: String,
        shown: String,
    },
    /// A link by a name that is defined elsewhere, maybe later: shown as it is written. Contains
    /// the text after it.
    Named(String),
}

impl<'a> Inline<'a> {
    pub fn new(theme: &'a Theme) -> Self {
        Self {
            theme,
            spans: Vec::new(),
            styles: Vec::new(),
            links: Vec::new(),
            image: None,
            images: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Takes the collected text.
    pub fn take(&mut self) -> Vec<Span<'static>> {
        std::mem::take(&mut self.spans)
    }

    /// Adds text in the open style.
    pub fn text(&mut self, text: &str) {
        self.plain(text, self.style());
    }

    pub fn code(&mut self, code: &str) {
        let style = self.style().patch(self.theme.code);
        // In a theme without a style for code, backticks mark it.
        if self.theme.code == Style::new() {
            self.plain(&format!("`{code}`"), style)
        } else {
            self.plain(code, style)
        }
    }

    /// Adds text in this style and ignores the open one.
    pub fn plain(&mut self, text: &str, style: Style) {
        // The source is sanitised, but entities may produce control characters.
        let text = text::sanitise(text).replace('\n', " ");
        if text.is_empty() {
            return;
        }
        if let Some((description, _)) = &mut self.image {
            description.push_str(&text);
            return;
        }
        for link in &mut self.links {
            if let Link::To { shown, .. } = link {
                shown.push_str(&text);
            }
        }
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(&text),
            _ => self.spans.push(Span::styled(text, style)),
        }
    }

    pub fn begin(&mut self, style: Style) {
        self.styles.push(self.style().patch(style));
    }

    pub fn end(&mut self) {
        self.styles.pop();
    }

    pub fn begin_link(&mut self, kind: LinkType, address: &str, name: &str) {
        if let Some(behind) = behind_name(kind, name) {
            self.text("[");
            self.begin(self.theme.text);
            self.links.push(Link::Named(behind));
            return;
        }
        self.begin(self.theme.link);
        self.links.push(Link::To {
            address: text::one_line(address),
            shown: String::new(),
        });
    }

    pub fn end_link(&mut self) {
        self.end();
        match self.links.pop() {
            None => {}
            Some(Link::Named(behind)) => self.text(&behind),
            Some(Link::To { address, shown }) => {
                let bare = address.strip_prefix("mailto:").unwrap_or(&address);
                if !address.is_empty() && shown != address && shown != bare {
                    let gap = if shown.is_empty() { "" } else { " " };
                    self.plain(&format!("{gap}({address})"), self.theme.dim);
                }
            }
        }
    }

    pub fn begin_image(&mut self, kind: LinkType, address: &str, name: &str) {
        self.images += 1;
        let address = text::one_line(address);
        let behind = match behind_name(kind, name) {
            Some(behind) => behind.trim_start_matches(']').to_owned(),
            None if address.is_empty() || address.starts_with("data:") => String::new(),
            None => format!(" ({address})"),
        };
        self.image.get_or_insert((String::new(), behind));
    }

    pub fn end_image(&mut self) {
        self.images = self.images.saturating_sub(1);
        if self.images > 0 {
            return;
        }
        let Some((description, behind)) = self.image.take() else {
            return;
        };
        let label = if description.is_empty() {
            "[image]".to_owned()
        } else {
            format!("[image: {description}]")
        };
        self.plain(&label, self.style().patch(self.theme.link));
        self.plain(&behind, self.theme.dim);
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or(self.theme.text)
    }
}

/// Returns the text to write after a text that is linked by name.
fn behind_name(kind: LinkType, name: &str) -> Option<String> {
    match kind {
        LinkType::Reference => Some(format!("][{name}]")),
        LinkType::Collapsed => Some("][]".to_owned()),
        LinkType::Shortcut => Some("]".to_owned()),
        _ => None,
    }
}
