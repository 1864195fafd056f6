//! The prompt and environment of an attempt, and the check of its answer.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{ChildRun, LENGTH_RETRY_PROMPT};
use crate::plan::{INPUT_VARIABLE, JUDGE, OutputFormat};
use crate::{ChildFailure, FailureKind, launch, prompt, structured};

impl ChildRun<'_> {
    pub(super) fn prompt(&self) -> String {
        let directory = &self.context.directory;
        let path = |path: PathBuf| path.display().to_string();
        let mut text = prompt::render(&self.child.prompt, |name| match name {
            "input" => Some(self.context.input().to_string()),
            "input_path" => Some(path(directory.input())),
            "name" => Some(self.child.name.clone()),
            "run_dir" => Some(path(directory.path().to_owned())),
            "results" => self.results.clone(),
            "results_path" => Some(path(directory.path().join("results.md"))),
            _ => None,
        });
        if launch::files_in_prompt(self.child.agent) && !self.child.files.is_empty() {
            text.push_str("\n\nFiles that go with this:\n");
            for file in &self.child.files {
                text.push_str(&format!("- {}\n", file.display()));
            }
        }
        if self.too_long {
            text.push_str(LENGTH_RETRY_PROMPT);
        }
        text
    }

    pub(super) fn variables(
        &self,
        model: Option<&str>,
        working_directory: &Path,
    ) -> Vec<(OsString, OsString)> {
        let directory = self.context.directory.path();
        // Some programs use PWD instead of their working directory. The plan's `env` overrides it.
        let working_directory = working_directory
            .canonicalize()
            .unwrap_or_else(|_| working_directory.to_owned());
        let mut variables: Vec<(OsString, OsString)> =
            vec![("PWD".into(), working_directory.into())];
        let own = self.child.env.iter();
        variables.extend(own.map(|(name, value)| (name.into(), value.into())));
        variables.extend([
            ("PINION_FLEET_RUN".into(), directory.into()),
            ("PINION_FLEET_CHILD".into(), self.child.name.clone().into()),
            (
                "PINION_FLEET_ATTEMPT".into(),
                self.attempt.to_string().into(),
            ),
            (
                "PINION_FLEET_MODEL".into(),
                model.unwrap_or_default().into(),
            ),
            (INPUT_VARIABLE.into(), self.context.directory.input().into()),
        ]);
        variables
    }

    /// Returns the answer as JSON if the plan requires JSON, and checks it.
    pub(super) fn output(&self, result: Option<&str>) -> Result<Option<Value>, ChildFailure> {
        let OutputFormat::Json { schema } = &self.child.output else {
            return Ok(None);
        };
        let wrong = |message: String| ChildFailure::new(FailureKind::StructuredOutput, message);
        let value = structured::find_json(result.unwrap_or_default())
            .ok_or_else(|| wrong("the answer is not JSON".into()))?;
        let violations = schema
            .as_ref()
            .and_then(|schema| structured::violations(schema, &value));
        if let Some(violations) = violations {
            return Err(wrong(format!(
                "the answer does not match its schema: {violations}"
            )));
        }
        let rule = self.context.plan.verdict.as_ref();
        if let Some(rule) = rule.filter(|_| self.child.name == JUDGE)
            && value.get(&rule.field).is_none()
        {
            return Err(wrong(format!(
                "the answer has no member \"{}\", which holds the verdict",
                rule.field
            )));
        }
        Ok(Some(value))
    }
}
