//! The text format of Prometheus, version 0.0.4.

use std::fmt::Write;

/// The content type of the page.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A page that grows: metrics, each followed by its samples. A metric without samples is left out.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
    name: &'static str,
    /// The head of the metric, until its first sample.
    head: String,
}

impl Page {
    /// Begins a metric. `help` is one line.
    pub fn family(&mut self, name: &'static str, help: &str, kind: Kind) {
        self.name = name;
        let kind = kind.name();
        self.head = format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// Adds a sample of the metric.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        self.line("", labels, None, value);
    }

    /// Adds the buckets, the sum and the count of a histogram. `counts` has one element more than `bounds`.
    pub(crate) fn histogram(
        &mut self,
        labels: &[(&str, &str)],
        bounds: &[f64],
        counts: &[u64],
        sum: f64,
    ) {
        let mut total = 0;
        for (at, count) in counts.iter().enumerate() {
            total += count;
            let bound = bounds.get(at).map_or("+Inf".to_owned(), f64::to_string);
            self.line("_bucket", labels, Some(&bound), total as f64);
        }
        self.line("_sum", labels, None, sum);
        self.line("_count", labels, None, total as f64);
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], bound: Option<&str>, value: f64) {
        self.text.push_str(&std::mem::take(&mut self.head));
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        let bound = bound.map(|bound| ("le", bound));
        let mut before = '{';
        for (name, value) in labels.iter().copied().chain(bound) {
            self.text.push(before);
            let _ = write!(self.text, "{name}=\"{}\"", escaped(value));
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    /// Returns the page.
    pub fn into_text(self) -> String {
        self.text
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_empty_metrics_left_out() {
        let mut page = Page::default();
        page.family("empty_total", "Nothing.", Kind::Counter);
        page.family("a", "One.", Kind::Gauge);
        page.sample(&[], 1.0);
        page.sample(&[("x", "a\"b\\c\nd"), ("y", "")], 0.25);
        assert_eq!(
            page.into_text(),
            "# HELP a One.\n# TYPE a gauge\na 1\na{x=\"a\\\"b\\\\c\\nd\",y=\"\"} 0.25\n"
        );
    }
}
