//! The layout of the live table: the columns for a width, and their texts. Rows in, lines out.

use std::time::Duration;

use crate::text::{truncate, width};
use pinion_fleet::{ChildFailure, ChildStatus, FailureKind, Micros};
use pinion_text::duration;

use super::style::{Style, StyledLine};

/// A child as the table shows it.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub name: String,
    pub status: ChildStatus,
    pub model: String,
    pub steps: usize,
    pub tokens: u64,
    pub cost: Micros,
    pub elapsed: Option<Duration>,
    /// The current tool, the failure, or the silence of the child.
    pub doing: String,
}

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Name,
    State,
    Model,
    Step,
    Tokens,
    Cost,
    Time,
    Doing,
}

const ALL: [Column; 8] = [
    Column::Name,
    Column::State,
    Column::Model,
    Column::Step,
    Column::Doing,
    Column::Tokens,
    Column::Cost,
    Column::Time,
];
/// The columns to leave out when there is no room, first one first.
const DISPENSABLE: [Column; 5] = [
    Column::Step,
    Column::Tokens,
    Column::Model,
    Column::Cost,
    Column::Doing,
];

/// The width class of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Narrow,
    Wide,
}

impl Room {
    fn of(width: usize) -> Self {
        match width {
            0..100 => Self::Narrow,
            _ => Self::Wide,
        }
    }

    /// Returns the separator of columns.
    fn gap(self) -> &'static str {
        match self {
            Self::Narrow => " ",
            Self::Wide => "  ",
        }
    }
}

impl Column {
    fn head(self) -> &'static str {
        match self {
            Self::Name => "child",
            Self::State => "state",
            Self::Model => "model",
            Self::Step => "step",
            Self::Doing => "doing",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::Time => "time",
        }
    }

    fn text(self, row: &Shown, room: Room) -> String {
        match self {
            Self::Name => row.name.clone(),
            Self::State => word(row.status).to_owned(),
            Self::Model => match room {
                Room::Wide => row.model.clone(),
                // A narrow table leaves out the provider, which matters less than the model.
                Room::Narrow => {
                    let short = row.model.split_once('/');
                    short.map_or(&*row.model, |(_, model)| model).to_owned()
                }
            },
            Self::Step if row.steps == 0 => String::new(),
            Self::Step => row.steps.to_string(),
            Self::Doing => row.doing.clone(),
            Self::Tokens if row.tokens == 0 => String::new(),
            Self::Tokens => count(row.tokens),
            Self::Cost if row.cost == Micros::ZERO => String::new(),
            Self::Cost => money(row.cost),
            Self::Time => {
                let time = row.elapsed.map(|time| duration::compact(time, ""));
                time.unwrap_or_default()
            }
        }
    }

    fn is_number(self) -> bool {
        matches!(self, Self::Step | Self::Tokens | Self::Cost | Self::Time)
    }

    /// Returns the smallest width in cells; wide enough that columns do not move while numbers grow.
    fn least(self) -> usize {
        match self {
            Self::Name => 12,
            Self::State => 8,
            Self::Model => 10,
            Self::Step => 4,
            Self::Doing => 8,
            Self::Tokens => 6,
            Self::Cost | Self::Time => 7,
        }
    }

    /// Reports whether the column can be narrower than its texts.
    fn shrinks(self) -> bool {
        matches!(self, Self::Name | Self::Model | Self::Doing)
    }
}

/// Returns the columns that fit, each with its width.
fn columns(rows: &[Shown], cells: usize) -> Vec<(Column, usize)> {
    let room = Room::of(cells);
    let natural = |column: Column| {
        let texts = rows.iter().map(|row| width(&column.text(row, room)));
        let widest = texts.max().unwrap_or(0).max(column.head().len());
        widest.clamp(column.least(), 40)
    };
    let mut chosen: Vec<Column> = ALL.to_vec();
    // Every child has finished and no row has a text in this column.
    if rows
        .iter()
        .all(|row| row.status == ChildStatus::Finished && row.doing.is_empty())
    {
        chosen.retain(|kept| *kept != Column::Doing);
    }
    let least = |chosen: &[Column]| {
        let widths = chosen.iter().map(|column| {
            if column.shrinks() {
                column.least()
            } else {
                natural(*column)
            }
        });
        widths.sum::<usize>() + room.gap().len() * chosen.len().saturating_sub(1)
    };
    for column in DISPENSABLE {
        if least(&chosen) <= cells {
            break;
        }
        chosen.retain(|kept| *kept != column);
    }
    // Columns that were cut get the spare cells.
    let mut spare = cells.saturating_sub(least(&chosen));
    let mut widths: Vec<(Column, usize)> = chosen
        .iter()
        .map(|column| {
            if column.shrinks() {
                (*column, column.least())
            } else {
                (*column, natural(*column))
            }
        })
        .collect();
    for wanted in [Column::Model, Column::Name, Column::Doing] {
        for (column, has) in &mut widths {
            if *column == wanted {
                let more = natural(wanted).saturating_sub(*has).min(spare);
                *has += more;
                spare -= more;
            }
        }
    }
    widths
}

/// Returns the head and one line per row.
pub(super) fn lines(rows: &[Shown], cells: usize) -> Vec<StyledLine> {
    let room = Room::of(cells);
    let columns = columns(rows, cells);
    let head = line(&columns, room, |column| column.head().to_owned());
    let mut lines = vec![vec![(head.concat(), Style::Faint)]];
    for row in rows {
        let cells = line(&columns, room, |column| column.text(row, room));
        let styles = columns.iter().map(|(column, _)| match column {
            Column::State => style(row.status),
            Column::Doing if row.status == ChildStatus::Failed => Style::Bad,
            Column::Name | Column::Doing | Column::Cost | Column::Time => Style::Plain,
            Column::Model | Column::Step | Column::Tokens => Style::Faint,
        });
        lines.push(cells.into_iter().zip(styles).collect());
    }
    lines
}

fn line(columns: &[(Column, usize)], room: Room, text: impl Fn(Column) -> String) -> Vec<String> {
    let last = columns.len().saturating_sub(1);
    let cells = columns.iter().enumerate();
    cells
        .map(|(index, (column, cells))| {
            let text = truncate(&text(*column), *cells);
            let free = " ".repeat(cells.saturating_sub(width(&text)));
            match (column.is_number(), index == last) {
                (true, true) => free + &text,
                (true, false) => free + &text + room.gap(),
                (false, true) => text,
                (false, false) => text + &free + room.gap(),
            }
        })
        .collect()
}

fn style(status: ChildStatus) -> Style {
    match status {
        ChildStatus::Waiting => Style::Faint,
        ChildStatus::Running => Style::Plain,
        ChildStatus::Finished => Style::Good,
        ChildStatus::Failed | ChildStatus::Stopped => Style::Bad,
    }
}

fn word(status: ChildStatus) -> &'static str {
    match status {
        ChildStatus::Waiting => "waiting",
        ChildStatus::Running => "running",
        ChildStatus::Finished => "finished",
        ChildStatus::Failed => "failed",
        ChildStatus::Stopped => "stopped",
    }
}

/// Returns one word for why a child did not finish; empty where its status is enough.
pub(super) fn reason(failure: &ChildFailure, status: ChildStatus) -> String {
    match (status, failure.kind) {
        (ChildStatus::Stopped, FailureKind::Aborted) => String::new(),
        (_, kind) => kind.to_string(),
    }
}

/// Formats a count as `17`, `5.9k` or `1.2M`.
pub(super) fn count(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..100_000 => format!("{:.1}k", number as f64 / 1e3),
        100_000..1_000_000 => format!("{}k", number / 1_000),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// Formats dollars: two decimals for zero and from one cent on, four below one cent.
pub(super) fn money(cost: Micros) -> String {
    let dollars = cost.0 as f64 / 1e6;
    match cost.0 {
        0 | 10_000.. => format!("${dollars:.2}"),
        _ => format!("${dollars:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows() -> Vec<Shown> {
        let row = |name: &str, status, model: &str, steps, tokens, cost, seconds, doing: &str| {
            let elapsed = Some(seconds).filter(|s| *s > 0).map(Duration::from_secs);
            Shown {
                name: name.into(),
                status,
                model: model.into(),
                steps,
                tokens,
                cost: Micros(cost),
                elapsed,
                doing: doing.into(),
            }
        };
        vec![
            row(
                "security",
                ChildStatus::Running,
                "anthropic/claude-opus-4-7",
                3,
                5_912,
                123_456,
                219,
                "bash",
            ),
            row(
                "performance-and-memory",
                ChildStatus::Finished,
                "anthropic/claude-sonnet-4-6",
                12,
                1_234_567,
                1_999_999,
                3_725,
                "read",
            ),
            row(
                "bad",
                ChildStatus::Failed,
                "anthropic/claude-sonnet-4-6",
                1,
                0,
                375,
                4,
                "api 529",
            ),
            row("late", ChildStatus::Waiting, "", 0, 0, 0, 0, ""),
        ]
    }

    fn drawn(width: usize) -> String {
        let lines = lines(&rows(), width);
        let text =
            |line: &StyledLine| -> String { line.iter().map(|(text, _)| text.as_str()).collect() };
        let lines: Vec<String> = lines
            .iter()
            .map(|line| text(line).trim_end().to_owned())
            .collect();
        lines.join("\n")
    }

    #[test]
    fn wide_there_is_everything() {
        assert_eq!(
            drawn(120),
            "\
child                   state     model                        step  doing     tokens     cost     time
security                running   anthropic/claude-opus-4-7       3  bash        5.9k    $0.12    3m39s
performance-and-memory  finished  anthropic/claude-sonnet-4-6    12  read        1.2M    $2.00    1h02m
bad                     failed    anthropic/claude-sonnet-4-6     1  api 529           $0.0004       4s
late                    waiting"
        );
    }

    #[test]
    fn on_eighty_columns_names_and_models_are_cut() {
        assert_eq!(
            drawn(80),
            "\
child            state    model             step doing    tokens    cost    time
security         running  claude-opus-4-7      3 bash       5.9k   $0.12   3m39s
performance-and… finished claude-sonnet-4-6   12 read       1.2M   $2.00   1h02m
bad              failed   claude-sonnet-4-6    1 api 529         $0.0004      4s
late             waiting"
        );
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let mut rows = rows();
        rows.truncate(1);
        rows[0].model = "provider/模型-五号".into();
        rows[0].doing = "检索代码库文件 search".into();
        let line: String = lines(&rows, 80)[1]
            .iter()
            .map(|(text, _)| text.as_str())
            .collect();
        assert_eq!(
            line,
            "security     running  模型-五号     3 检索代码库文件 sea…   5.9k   $0.12   3m39s"
        );
        assert_eq!(width(&line), 80);
    }

    #[test]
    fn on_forty_there_is_what_matters() {
        assert_eq!(
            drawn(40),
            "\
child          state    doing       time
security       running  bash       3m39s
performance-a… finished read       1h02m
bad            failed   api 529       4s
late           waiting"
        );
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal(cells in 29usize..200, name in "\\PC{0,50}", doing in "\\PC{0,50}") {
            let mut rows = rows();
            (rows[0].name, rows[1].doing) = (name, doing);
            for line in lines(&rows, cells) {
                let wide: usize = line.iter().map(|(text, _)| width(text)).sum();
                prop_assert!(wide <= cells, "{} of {}", wide, cells);
            }
        }
    }
}
