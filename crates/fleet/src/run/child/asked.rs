//! What an attempt is given, and whether its answer has the form the plan asks for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{SHORTER, Story};
use crate::plan::{INPUT_VARIABLE, JUDGE, Output};
use crate::{ChildFailure, FailureKind, launch, prompt, structured};

impl Story<'_> {
    pub(super) fn prompt(&self) -> String {
        let directory = &self.shared.directory;
        let path = |path: PathBuf| path.display().to_string();
        let mut text = prompt::render(&self.child.prompt, |name| match name {
            "input" => Some(self.shared.input().to_string()),
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
            text.push_str(SHORTER);
        }
        text
    }

    pub(super) fn variables(&self, model: Option<&str>, place: &Path) -> Vec<(OsString, OsString)> {
        let directory = self.shared.directory.path();
        // Some programs work where this says and not where they are. The plan has the last word.
        let place = place.canonicalize().unwrap_or_else(|_| place.to_owned());
        let mut variables: Vec<(OsString, OsString)> = vec![("PWD".into(), place.into())];
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
            (INPUT_VARIABLE.into(), self.shared.directory.input().into()),
        ]);
        variables
    }

    /// The answer in the form the plan asks for.
    pub(super) fn output(&self, result: Option<&str>) -> Result<Option<Value>, ChildFailure> {
        let Output::Json { schema } = &self.child.output else {
            return Ok(None);
        };
        let wrong = |message: String| ChildFailure::new(FailureKind::StructuredOutput, message);
        let value = structured::json_in(result.unwrap_or_default())
            .ok_or_else(|| wrong("the answer is not JSON".into()))?;
        let misfit = schema
            .as_ref()
            .and_then(|schema| structured::misfit(schema, &value));
        if let Some(misfit) = misfit {
            return Err(wrong(format!(
                "the answer does not fit its schema: {misfit}"
            )));
        }
        let rule = self.shared.plan.verdict.as_ref();
        if let Some(rule) = rule.filter(|_| self.child.name == JUDGE)
            && value.get(&rule.field).is_none()
        {
            return Err(wrong(format!("the answer has no \"{}\"", rule.field)));
        }
        Ok(Some(value))
    }
}
