//! Pickers for the model and its level of thinking.

use std::sync::Arc;

use crossterm::event::KeyEvent;
use pinion_message::{Model, ModelCost, ThinkingLevel};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::panel::two_sides;
use super::picker::{Item, Picked, Picker, PickerFrame, Prompt};
use super::search::Matching;
use super::{Choice, Overlay, Step};
use crate::Theme;
use crate::text::{one_line, width};

/// Marks the current model or level.
const CURRENT: &str = "● ";
const NOT_CURRENT: &str = "  ";

/// Lets the user choose a model.
pub(crate) struct ModelPicker {
    picker: Picker<ModelRow>,
}

struct ModelRow {
    model: Arc<Model>,
    is_current: bool,
    /// Columns of the widest name and the widest price, so that all rows align.
    widest: (usize, usize),
}

impl ModelPicker {
    /// Creates a picker in which `current` is marked. It is added if `models` does not contain it.
    pub fn new(mut models: Vec<Arc<Model>>, current: Option<&Arc<Model>>) -> Self {
        let is_current = |model: &Model| {
            current
                .is_some_and(|current| current.provider == model.provider && current.id == model.id)
        };
        if let Some(current) = current
            && !models.iter().any(|model| is_current(model))
        {
            models.insert(0, Arc::clone(current));
        }
        let names = models
            .iter()
            .map(|model| width(&model.provider) + 1 + width(&model.id));
        let prices = models.iter().map(|model| price(&model.cost).len());
        let widest = (
            names.max().unwrap_or_default(),
            prices.max().unwrap_or_default(),
        );
        let selected = models.iter().position(|model| is_current(model));
        let rows = models.into_iter().map(|model| ModelRow {
            is_current: is_current(&model),
            model,
            widest,
        });
        let mut picker = Picker::new(rows.collect(), Matching::Fuzzy);
        picker.select(selected.unwrap_or_default());
        Self { picker }
    }
}

impl Item for ModelRow {
    fn words(&self) -> String {
        let Model {
            provider, id, name, ..
        } = &*self.model;
        format!("{provider}/{id} {name}")
    }

    fn line(&self, columns: u16, theme: &Theme) -> Line<'static> {
        let model = &*self.model;
        let mark = if self.is_current {
            CURRENT
        } else {
            NOT_CURRENT
        };
        let mut left = vec![
            Span::styled(mark, theme.success),
            Span::styled(format!("{}/", one_line(&model.provider)), theme.dim),
            Span::styled(one_line(&model.id), theme.text),
        ];
        if model.name != model.id && !model.name.is_empty() {
            left.push(Span::styled(
                format!("  {}", one_line(&model.name)),
                theme.dim,
            ));
        }
        let thinks = if model.reasoning { "thinks" } else { "" };
        let sees = if model.takes_images() { "images" } else { "" };
        let price = price(&model.cost);
        let right = [
            (format!("{:>5}", tokens(model.context_window)), theme.text),
            (format!("{price:>0$}", self.widest.1), theme.text),
            (format!("{thinks:6}"), theme.accent),
            (format!("{sees:6}"), theme.accent),
        ];
        let most = match usize::from(columns) {
            narrow @ ..60 => narrow * 3 / 5,
            wide => wide / 2,
        };
        two_sides(left, &right, (self.widest.0 + 2).min(most), columns)
    }
}

impl Overlay for ModelPicker {
    fn key(&mut self, key: KeyEvent) -> Step {
        match (self.picker.key(key), self.picker.selected()) {
            (Picked::Chosen, Some(row)) => Step::Chosen(Choice::Model {
                provider: row.model.provider.clone(),
                id: row.model.id.clone(),
            }),
            (Picked::Close, _) => Step::Close,
            _ => Step::Stay,
        }
    }

    fn wheel(&mut self, rows: isize) {
        self.picker.wheel(rows);
    }

    fn paste(&mut self, text: &str) {
        self.picker.paste(text);
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position> {
        let outfit = PickerFrame {
            title: "Model",
            note: "$ per million in/out",
            empty: "no models available: add a key for a provider; `pinion models` shows how",
            hints: &[],
        };
        self.picker.draw(area, buf, theme, &outfit)
    }
}

/// Lets the user choose a level of thinking.
pub(crate) struct ThinkingPicker {
    picker: Picker<LevelRow>,
}

struct LevelRow {
    level: ThinkingLevel,
    is_current: bool,
}

impl ThinkingPicker {
    /// Creates a picker in which `current` is marked.
    pub fn new(levels: &[ThinkingLevel], current: ThinkingLevel) -> Self {
        let rows = levels.iter().map(|&level| LevelRow {
            level,
            is_current: level == current,
        });
        let mut picker = Picker::new(rows.collect(), Matching::Fuzzy).with_prompt(Prompt::Typed);
        let selected = levels.iter().position(|&level| level == current);
        picker.select(selected.unwrap_or_default());
        Self { picker }
    }
}

impl Item for LevelRow {
    fn words(&self) -> String {
        self.level.as_str().to_owned()
    }

    fn line(&self, columns: u16, theme: &Theme) -> Line<'static> {
        let mark = if self.is_current {
            CURRENT
        } else {
            NOT_CURRENT
        };
        let left = vec![
            Span::styled(mark, theme.success),
            Span::styled(format!("{:9}", self.level.as_str()), theme.text),
            Span::styled(meaning(self.level), theme.dim),
        ];
        two_sides(left, &[], 0, columns)
    }
}

impl Overlay for ThinkingPicker {
    fn key(&mut self, key: KeyEvent) -> Step {
        match (self.picker.key(key), self.picker.selected()) {
            (Picked::Chosen, Some(row)) => Step::Chosen(Choice::Thinking(row.level)),
            (Picked::Close, _) => Step::Close,
            _ => Step::Stay,
        }
    }

    fn wheel(&mut self, rows: isize) {
        self.picker.wheel(rows);
    }

    fn paste(&mut self, text: &str) {
        self.picker.paste(text);
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) -> Option<Position> {
        let outfit = PickerFrame {
            title: "Thinking",
            note: "",
            empty: "this model does not support thinking",
            hints: &[],
        };
        self.picker.draw(area, buf, theme, &outfit)
    }
}

fn meaning(level: ThinkingLevel) -> &'static str {
    match level {
        ThinkingLevel::Off => "answers at once",
        ThinkingLevel::Minimal => "hardly at all",
        ThinkingLevel::Low => "a little",
        ThinkingLevel::Medium => "for everyday work",
        ThinkingLevel::High => "for hard questions",
        ThinkingLevel::Xhigh => "for very hard questions; slow and expensive",
        ThinkingLevel::Max => "as much as the model can",
    }
}

/// `200k`, `1.05M`.
pub(super) fn tokens(count: u64) -> String {
    let short = |value: f64, unit: &str| {
        let digits = match value {
            ..10.0 => 2,
            ..100.0 => 1,
            _ => 0,
        };
        let text = format!("{value:.digits$}");
        let text = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            &text
        };
        format!("{text}{unit}")
    };
    match count {
        0..=999 => count.to_string(),
        1_000..=999_499 => short(count as f64 / 1e3, "k"),
        _ => short(count as f64 / 1e6, "M"),
    }
}

/// The price of a million tokens, in and out: `$3/$15`.
fn price(cost: &ModelCost) -> String {
    if cost.input == 0.0 && cost.output == 0.0 {
        return "free".to_owned();
    }
    format!("{}/{}", dollars(cost.input), dollars(cost.output))
}

fn dollars(amount: f64) -> String {
    let text = format!("{amount:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("${text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_prices_are_short() {
        for (count, text) in [
            (0, "0"),
            (512, "512"),
            (4_096, "4.1k"),
            (32_768, "32.8k"),
            (8_000, "8k"),
            (128_000, "128k"),
            (200_000, "200k"),
            (999_999, "1M"),
            (1_048_576, "1.05M"),
            (2_000_000, "2M"),
            (10_000_000, "10M"),
        ] {
            assert_eq!(tokens(count), text);
        }
        let cost = |input, output| ModelCost {
            input,
            output,
            ..ModelCost::default()
        };
        for (cost, text) in [
            (cost(3.0, 15.0), "$3/$15"),
            (cost(0.075, 0.3), "$0.075/$0.3"),
            (cost(0.0, 0.0), "free"),
            (cost(10.0, 0.0), "$10/$0"),
        ] {
            assert_eq!(price(&cost), text);
        }
    }
}
