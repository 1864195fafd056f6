//! Reads a plan from its file and reports all its mistakes at once, before anything starts.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinion_yaml::{Entry, Node};

use super::fields::Fields;
use super::settings::{KEYS, Settings};
use super::{Budget, Plan, PlanError, Problem, Sharing};
use crate::BreakerRules;

/// The largest plan, in bytes.
const PLAN_LIMIT: u64 = 64 << 20;

/// Models by tier, each with its line.
type Tiers = BTreeMap<String, Vec<(String, u64)>>;

/// Reads the plan in `path`; `check_model` returns a message about a model that pinion cannot use.
pub fn read_plan(
    path: &Path,
    check_model: &dyn Fn(&str) -> Result<(), String>,
) -> Result<Plan, PlanError> {
    let file = path.display().to_string();
    let directory = directory_of(path);
    let fail = |line, message| PlanError {
        problems: vec![Problem {
            file: file.clone(),
            line,
            message,
        }],
    };
    let unreadable =
        |why: &dyn std::fmt::Display| fail(0, format!("the plan cannot be read: {why}"));
    let bytes = pinion_files::read_named(path, PLAN_LIMIT).map_err(|error| unreadable(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable(&"it is not UTF-8"))?;
    let node = pinion_yaml::parse(&text).map_err(|problem| fail(problem.line, problem.message))?;
    let mut reader = PlanReader {
        fields: Fields {
            file: file.clone(),
            directory,
            problems: Vec::new(),
        },
        check_model,
        lines: text.lines().map(str::to_owned).collect(),
        tiers: Tiers::new(),
        used_by_others: HashSet::new(),
        used_by_pinion: HashSet::new(),
    };
    let stem = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let plan = reader.plan(&node, stem.unwrap_or(file));
    let mut problems = reader.fields.problems;
    if problems.is_empty() {
        return Ok(plan);
    }
    problems.sort_by_key(|problem| problem.line);
    Err(PlanError { problems })
}

/// Reads a plan part by part; the parts are in `children.rs` and `models.rs`.
pub(super) struct PlanReader<'a> {
    pub fields: Fields,
    pub check_model: &'a dyn Fn(&str) -> Result<(), String>,
    /// The lines of the file.
    pub lines: Vec<String>,
    pub tiers: Tiers,
    pub used_by_others: HashSet<String>,
    pub used_by_pinion: HashSet<String>,
}

impl PlanReader<'_> {
    fn plan(&mut self, node: &Node, name: String) -> Plan {
        const TOP: [&str; 10] = [
            "name",
            "tiers",
            "defaults",
            "budget",
            "parallel",
            "timeout",
            "retry_reserve",
            "breaker",
            "children",
            "judge",
        ];
        let members = self.fields.members(node, "the plan", &TOP);
        let mut plan = Plan {
            name,
            parallel: 4,
            timeout: Duration::from_secs(25 * 60),
            retry_reserve: Duration::from_secs(2 * 60),
            budget: None,
            breaker: BreakerRules::default(),
            sharing: Sharing::default(),
            children: Vec::new(),
            judge: None,
            verdict: None,
        };
        let find = |name: &str| {
            let found = members.iter().find(|entry| entry.key == name);
            found.map(|entry| &entry.value)
        };
        if let Some(node) = find("name") {
            plan.name = self.fields.text(node, "name").unwrap_or_default();
        }
        if let Some(node) = find("tiers") {
            self.read_tiers(node);
        }
        if let Some(count) =
            find("parallel").and_then(|node| self.fields.count(node, "parallel", 1))
        {
            plan.parallel = usize::try_from(count).unwrap_or(usize::MAX).min(100_000);
        }
        if let Some(time) = find("timeout").and_then(|node| self.fields.time(node, "timeout")) {
            plan.timeout = time;
        }
        if let Some(time) =
            find("retry_reserve").and_then(|node| self.fields.time(node, "retry_reserve"))
        {
            plan.retry_reserve = time;
        }
        let budget = find("budget")
            .map(|node| self.budget(node))
            .unwrap_or_default();
        plan.budget = budget.run;
        if let Some(node) = find("breaker") {
            self.breaker(node, &mut plan);
        }
        let mut defaults = match find("defaults") {
            Some(node) => self.settings(node, "defaults", &[]).0,
            None => Settings::default(),
        };
        defaults.budget = defaults.budget.or(budget.child);
        match find("children") {
            Some(list) => plan.children = self.children(list, &defaults),
            None => self.fields.problem(
                node.at.line,
                "there are no children; list them under `children:`",
            ),
        }
        if let Some(node) = find("judge") {
            (plan.judge, plan.verdict) = self.judge(node, &defaults);
        }
        self.check_unused_tiers();
        plan
    }

    fn budget(&mut self, node: &Node) -> Budget {
        let mut budget = Budget::default();
        for Entry { key, value, .. } in self.fields.members(node, "budget", &["run", "child"]) {
            match key.as_str() {
                "run" => budget.run = self.fields.money(value, "budget"),
                "child" => budget.child = self.fields.money(value, "budget"),
                _ => {}
            }
        }
        budget
    }

    fn breaker(&mut self, node: &Node, plan: &mut Plan) {
        const KNOWN: [&str; 4] = ["failures", "window", "cooldown", "shared"];
        let rules = &mut plan.breaker;
        for Entry { key, value, .. } in self.fields.members(node, "breaker", &KNOWN) {
            match key.as_str() {
                "failures" => {
                    let count = self.fields.count(value, "failures", 1);
                    rules.failures = count
                        .and_then(|n| u32::try_from(n).ok())
                        .unwrap_or(rules.failures);
                }
                "window" => {
                    rules.window = self.fields.time(value, "window").unwrap_or(rules.window);
                }
                "cooldown" => {
                    rules.cooldown = self
                        .fields
                        .time(value, "cooldown")
                        .unwrap_or(rules.cooldown);
                }
                "shared" => {
                    plan.sharing = match self.fields.boolean(value, "shared") {
                        Some(true) => Sharing::Always,
                        Some(false) => Sharing::Never,
                        None => plan.sharing,
                    };
                }
                _ => {}
            }
        }
    }

    /// Reads the settings in a mapping, and returns its other members, whose keys are in `more`.
    pub fn settings<'n>(
        &mut self,
        node: &'n Node,
        what: &str,
        more: &[&str],
    ) -> (Settings, Vec<(&'n str, &'n Node)>) {
        let known: Vec<&str> = KEYS.iter().chain(more).copied().collect();
        let mut settings = Settings::default();
        let mut rest = Vec::new();
        for Entry { key, value, .. } in self.fields.members(node, what, &known) {
            if more.contains(&key.as_str()) {
                rest.push((key.as_str(), value));
            } else {
                settings.take(key, value, &mut self.fields);
            }
        }
        (settings, rest)
    }
}

/// Returns the directory of a plan, also if the path is a bare file name.
fn directory_of(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    whole.parent().map(Path::to_owned).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_file_name_is_in_the_working_directory() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(directory_of(Path::new("plan.yaml")), here);
        assert_eq!(
            directory_of(Path::new("plans/plan.yaml")),
            here.join("plans")
        );
    }
}
