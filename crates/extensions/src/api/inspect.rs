//! Loads extensions only to report what they register.

use std::fmt::Write;

use super::{ExtensionEntry, ExtensionReport, Extensions, LoadFailure, Options};

impl Extensions {
    /// Loads extensions as a run would, and unloads them. Returns the report of each, or the reason why it was not
    /// loaded; the others are loaded in spite of it.
    ///
    /// # Errors
    ///
    /// Fails if the engine does not start.
    pub async fn inspect(
        entries: Vec<ExtensionEntry>,
        options: Options,
    ) -> Result<Vec<Result<ExtensionReport, String>>, LoadFailure> {
        let options = Options {
            lenient: true,
            ..options
        };
        let paths: Vec<String> = entries
            .iter()
            .map(|entry| entry.path.display().to_string())
            .collect();
        let loaded = Self::load(entries, options).await?;
        let reports = loaded.report();
        let outcome = |path: &String| {
            let mut problems = loaded.problems().iter();
            if let Some(problem) = problems.find(|problem| problem.path == *path) {
                return Err(problem.message.clone());
            }
            let report = reports.iter().find(|report| report.path == *path);
            report
                .cloned()
                .ok_or_else(|| "it was not loaded".to_owned())
        };
        Ok(paths.iter().map(outcome).collect())
    }
}

impl ExtensionReport {
    /// Returns indented lines for people, one for each kind of registration.
    pub fn text(&self) -> String {
        let marked = |names: &[String], mark: &str| -> Vec<String> {
            names.iter().map(|name| format!("{mark}{name}")).collect()
        };
        let mut text = String::new();
        for (word, names) in [
            ("tools", self.tools.clone()),
            ("commands", marked(&self.commands, "/")),
            ("flags", marked(&self.flags, "--")),
            ("events", self.events.clone()),
            ("providers", self.providers.clone()),
            ("shortcuts", self.shortcuts.clone()),
            ("renderers", self.renderers.clone()),
            ("modules", self.modules.clone()),
        ] {
            if !names.is_empty() {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "  {word}: {}", names.join(", "));
            }
        }
        let milliseconds = self.load_time.as_secs_f64() * 1000.0;
        let _ = writeln!(text, "  loaded in: {milliseconds:.1} ms");
        text
    }
}
