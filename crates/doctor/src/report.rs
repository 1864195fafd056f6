//! The report: one check per line, problems with what to do about them.

use std::fmt::Write;

use serde::Serialize;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Finding {
    /// Nothing is wrong.
    Fine,
    /// Something does not work.
    Problem,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The subject, one word.
    pub topic: &'static str,
    pub finding: Finding,
    /// A sentence or a short fact; for a problem, what is wrong and what to do next.
    pub text: String,
}

/// The checks in the order in which they were made.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    checks: Vec<Check>,
}

impl Report {
    pub fn fine(&mut self, topic: &'static str, text: impl Into<String>) {
        self.add(topic, Finding::Fine, text.into());
    }

    pub fn problem(&mut self, topic: &'static str, text: impl Into<String>) {
        self.add(topic, Finding::Problem, text.into());
    }

    fn add(&mut self, topic: &'static str, finding: Finding, text: String) {
        self.checks.push(Check {
            topic,
            finding,
            text,
        });
    }

    /// Returns the number of problems.
    pub fn problems(&self) -> usize {
        let problems = self.checks.iter();
        problems
            .filter(|check| check.finding == Finding::Problem)
            .count()
    }

    /// Returns the report for people: facts first, then problems.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for check in self
            .checks
            .iter()
            .filter(|check| check.finding == Finding::Fine)
        {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{:8} {}", check.topic, check.text);
        }
        for check in self
            .checks
            .iter()
            .filter(|check| check.finding == Finding::Problem)
        {
            let _ = writeln!(text, "problem  {}", check.text);
        }
        if self.problems() == 0 {
            text.push_str("ok       nothing wrong was found\n");
        }
        text
    }

    /// Returns the report for programs, as one line.
    pub fn json(&self, version: &str) -> String {
        let report = serde_json::json!({
            "version": version, "problems": self.problems(), "checks": self.checks,
        });
        format!("{report}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_come_last_and_are_counted() {
        let mut report = Report::default();
        assert!(report.text().starts_with("ok "));
        report.problem("shell", "there is none");
        report.fine("version", "1");
        assert_eq!(report.text(), "version  1\nproblem  there is none\n");
        let json: serde_json::Value = serde_json::from_str(&report.json("1")).unwrap();
        assert_eq!(json["problems"], 1);
        assert_eq!(
            json["checks"][0],
            serde_json::json!({"topic": "shell", "finding": "problem", "text": "there is none"})
        );
    }
}
