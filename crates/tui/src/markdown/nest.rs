//! Nested quotes and items, and the prefixes they put before rows.

use ratatui::text::Span;

use crate::Theme;

/// The open containers, the outermost first.
pub(super) struct Nest<'a> {
    width: usize,
    theme: &'a Theme,
    containers: Vec<Container>,
}

enum Container {
    Quote,
    /// A list and the number of its next item.
    List(Option<u64>),
    /// An item: its mark, until it is shown, and its columns.
    Item {
        mark: Option<String>,
        columns: usize,
    },
}

impl Container {
    fn columns(&self) -> usize {
        match self {
            Self::Quote => 2,
            Self::List(_) => 0,
            Self::Item { columns, .. } => *columns,
        }
    }
}

impl<'a> Nest<'a> {
    pub fn new(width: u16, theme: &'a Theme) -> Self {
        Self {
            width: usize::from(width),
            theme,
            containers: Vec::new(),
        }
    }

    /// Reports whether no container is open.
    pub fn is_empty(&self) -> bool {
        self.containers.is_empty()
    }

    pub fn begin_quote(&mut self) {
        self.containers.push(Container::Quote);
    }

    /// Opens a list, which is numbered if it has a first number.
    pub fn begin_list(&mut self, first: Option<u64>) {
        self.containers.push(Container::List(first));
    }

    pub fn begin_item(&mut self) {
        let mark = match self.containers.last_mut() {
            Some(Container::List(Some(number))) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => "- ".to_owned(),
        };
        self.containers.push(Container::Item {
            columns: mark.len(),
            mark: Some(mark),
        });
    }

    /// Closes the innermost container.
    pub fn end(&mut self) {
        self.containers.pop();
    }

    /// Reports whether the mark of the innermost item is not shown yet.
    pub fn has_mark(&self) -> bool {
        matches!(
            self.containers.last(),
            Some(Container::Item { mark: Some(_), .. })
        )
    }

    /// Returns the prefixes of the next row and of its continuation rows. Marks of items are shown
    /// once.
    pub fn prefixes(&mut self) -> (Vec<Span<'static>>, Vec<Span<'static>>) {
        let shown = self.shown();
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        for container in &mut self.containers[..shown] {
            match container {
                Container::List(_) => {}
                Container::Quote => {
                    first.push(Span::styled("> ", self.theme.dim));
                    rest.push(Span::styled("> ", self.theme.dim));
                }
                Container::Item { mark, columns } => {
                    rest.push(Span::raw(" ".repeat(*columns)));
                    first.push(match mark.take() {
                        Some(mark) => Span::styled(mark, self.theme.accent),
                        None => Span::raw(" ".repeat(*columns)),
                    });
                }
            }
        }
        // Marks without room count as shown.
        for container in &mut self.containers[shown..] {
            if let Container::Item { mark, .. } = container {
                *mark = None;
            }
        }
        (first, rest)
    }

    /// Cells of a row that remain after its prefix.
    pub fn room(&self) -> usize {
        let shown = self.containers[..self.shown()].iter();
        let used: usize = shown.map(Container::columns).sum();
        self.width.saturating_sub(used).max(1)
    }

    /// Number of containers for whose prefixes there is room; two cells always remain, for a wide
    /// character.
    fn shown(&self) -> usize {
        let limit = (self.width * 2 / 3).min(self.width.saturating_sub(2));
        let mut used = 0;
        let fits = |container: &&Container| {
            used += container.columns();
            used <= limit
        };
        self.containers.iter().take_while(fits).count()
    }
}
