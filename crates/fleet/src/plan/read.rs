//! A plan from its file: everything that is wrong is told at once, before anything starts.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::Duration;

use super::fields::{Fields, shown};
use super::node::{self, Kind, Node};
use super::settings::{KEYS, Settings, models};
use super::{Budget, ChildPlan, Isolation, Plan, PlanError, Problem, Verdict};
use crate::prompt::{CHILD_NAMES, JUDGE_NAMES, unknown_names};
use crate::{AgentKind, BreakerRules};

/// The name of the one who sees all results.
pub(crate) const JUDGE: &str = "judge";
const MAX_NAME: usize = 64;

type Tiers = BTreeMap<String, Vec<(String, u64)>>;

/// Reads the plan in `path`; `check_model` says what is wrong with a model of ours.
pub fn read_plan(
    path: &Path,
    check_model: &dyn Fn(&str) -> Result<(), String>,
) -> Result<Plan, PlanError> {
    let file = path.display().to_string();
    let directory = path.parent().map(Path::to_owned).unwrap_or_default();
    let fail = |line, message| PlanError {
        problems: vec![Problem {
            file: file.clone(),
            line,
            message,
        }],
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| fail(0, format!("the plan cannot be read: {error}")))?;
    let node = node::parse(&text).map_err(|(line, message)| fail(line, message))?;
    let directory = std::path::absolute(&directory).unwrap_or(directory);
    let mut reader = Reader {
        fields: Fields {
            file: file.clone(),
            directory,
            problems: Vec::new(),
        },
        check_model,
        tiers: Tiers::new(),
        used_by_others: HashSet::new(),
        used_by_us: HashSet::new(),
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

struct Reader<'a> {
    fields: Fields,
    check_model: &'a dyn Fn(&str) -> Result<(), String>,
    tiers: Tiers,
    used_by_others: HashSet<String>,
    used_by_us: HashSet<String>,
}

impl Reader<'_> {
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
            children: Vec::new(),
            judge: None,
            verdict: None,
        };
        let find = |name: &str| {
            let found = members.iter().find(|(key, _)| key.name == name);
            found.map(|(_, node)| node)
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
            self.breaker(node, &mut plan.breaker);
        }
        let mut defaults = match find("defaults") {
            Some(node) => self.settings(node, "defaults", &[]).0,
            None => Settings::default(),
        };
        defaults.budget = defaults.budget.or(budget.child);
        match find("children") {
            Some(list) => plan.children = self.children(list, &defaults),
            None => self.fields.problem(
                node.line,
                "there are no children; list them under \"children\"",
            ),
        }
        if let Some(node) = find("judge") {
            (plan.judge, plan.verdict) = self.judge(node, &defaults);
        }
        self.check_unused_tiers();
        plan
    }

    fn read_tiers(&mut self, node: &Node) {
        for (key, value) in self.fields.free_members(node, "tiers") {
            let models = models(value, &mut self.fields);
            self.tiers.insert(key.name.clone(), models);
        }
    }

    fn budget(&mut self, node: &Node) -> Budget {
        let mut budget = Budget::default();
        for (key, value) in self.fields.members(node, "budget", &["run", "child"]) {
            match key.name.as_str() {
                "run" => budget.run = self.fields.money(value, "budget"),
                "child" => budget.child = self.fields.money(value, "budget"),
                _ => {}
            }
        }
        budget
    }

    fn breaker(&mut self, node: &Node, rules: &mut BreakerRules) {
        for (key, value) in
            self.fields
                .members(node, "breaker", &["failures", "window", "cooldown"])
        {
            match key.name.as_str() {
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
                _ => {}
            }
        }
    }

    /// The settings in a mapping, and its members that are none.
    fn settings<'n>(
        &mut self,
        node: &'n Node,
        what: &str,
        more: &[&str],
    ) -> (Settings, Vec<(&'n str, &'n Node)>) {
        let known: Vec<&str> = KEYS.iter().chain(more).copied().collect();
        let mut settings = Settings::default();
        let mut rest = Vec::new();
        for (key, value) in self.fields.members(node, what, &known) {
            match more.contains(&key.name.as_str()) {
                true => rest.push((key.name.as_str(), value)),
                false => settings.take(&key.name, value, &mut self.fields),
            }
        }
        (settings, rest)
    }

    fn children(&mut self, list: &Node, defaults: &Settings) -> Vec<ChildPlan> {
        let mut names = HashSet::new();
        let mut children = Vec::new();
        let items = self.fields.items(list, "children");
        if items.is_empty() {
            self.fields
                .problem(list.line, "there are no children; a plan has at least one");
        }
        for item in items {
            let (settings, rest) = self.settings(item, "a child", &["name", "prompt"]);
            let (mut name, mut prompt) = (None, None);
            for (key, node) in rest {
                match key {
                    "name" => name = self.name(node, &mut names),
                    _ => prompt = self.prompt(node, &CHILD_NAMES),
                }
            }
            let has = |key: &str| match &item.kind {
                Kind::Map(members) => members.iter().any(|(member, _)| member.name == key),
                _ => true,
            };
            if !has("name") {
                self.fields.problem(item.line, "this child has no name");
            }
            if !has("prompt") {
                self.fields.problem(item.line, "this child has no prompt");
            }
            let settings = settings.or(defaults);
            let models = self.models(&settings, item.line);
            let (name, prompt) = (name.unwrap_or_default(), prompt.unwrap_or_default());
            children.push(settings.child(name, prompt, models));
        }
        children
    }

    fn judge(&mut self, node: &Node, defaults: &Settings) -> (Option<ChildPlan>, Option<Verdict>) {
        let (settings, rest) = self.settings(node, "the judge", &["prompt", "verdict"]);
        let (mut prompt, mut verdict) = (None, None);
        for (key, node) in &rest {
            match *key {
                "prompt" => prompt = self.prompt(node, &JUDGE_NAMES),
                _ => verdict = self.verdict(node),
            }
        }
        if !rest.iter().any(|(key, _)| *key == "prompt") {
            self.fields.problem(node.line, "the judge has no prompt");
        }
        let settings = settings.or(defaults);
        let models = self.models(&settings, node.line);
        let mut judge = settings.child(JUDGE.into(), prompt.unwrap_or_default(), models);
        if verdict.is_some() && judge.output == super::Output::Text {
            judge.output = super::Output::Json { schema: None };
        }
        (Some(judge), verdict)
    }

    fn verdict(&mut self, node: &Node) -> Option<Verdict> {
        let mut verdict = Verdict {
            field: "verdict".into(),
            exit: Vec::new(),
        };
        for (key, value) in self.fields.members(node, "the verdict", &["field", "exit"]) {
            match key.name.as_str() {
                "field" => verdict.field = self.fields.text(value, "field")?,
                "exit" => {
                    for (key, value) in self.fields.free_members(value, "exit") {
                        let code = self.fields.count(value, "an exit code", 0);
                        match code.map(u8::try_from) {
                            Some(Ok(code)) => verdict.exit.push((key.name.clone(), code)),
                            Some(Err(_)) => {
                                self.fields
                                    .problem(value.line, "an exit code is at most 255");
                            }
                            None => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Some(verdict)
    }

    fn name(&mut self, node: &Node, names: &mut HashSet<String>) -> Option<String> {
        let name = self.fields.text(node, "name")?;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(fits) {
            let rule = format!("use up to {MAX_NAME} letters, digits, - and _");
            self.fields.problem(
                node.line,
                format!("\"{name}\" is no name for a child; {rule}"),
            );
        } else if name == JUDGE {
            self.fields.problem(
                node.line,
                "a child cannot be called judge; that is who sees all results",
            );
        } else if !names.insert(name.clone()) {
            self.fields.problem(
                node.line,
                format!("there is another child called \"{name}\""),
            );
        }
        Some(name)
    }

    /// `{ file: … }`, `{ text: … }` or just the text.
    fn prompt(&mut self, node: &Node, names: &[&str]) -> Option<String> {
        if let Kind::Text(text) = &node.kind {
            self.check_names(text, names, None, node.line);
            return Some(text.clone());
        }
        let members = self.fields.members(node, "a prompt", &["file", "text"]);
        match members {
            [(key, value)] if key.name == "text" => {
                let text = self.fields.text(value, "text")?;
                self.check_names(&text, names, None, value.line);
                Some(text)
            }
            [(key, value)] if key.name == "file" => {
                let (path, text) = self.fields.file(value, "prompt")?;
                self.check_names(&text, names, Some(&path), 1);
                Some(text)
            }
            _ => {
                self.fields.problem(
                    node.line,
                    "a prompt is a file or a text: { file: … } or { text: … }",
                );
                None
            }
        }
    }

    fn check_names(&mut self, text: &str, names: &[&str], file: Option<&Path>, line: u64) {
        for (offset, name) in unknown_names(text, names) {
            let message = format!(
                "there is no {{{{ {name} }}}}; known are {}",
                names.join(", ")
            );
            match file {
                Some(path) => {
                    let problem = Problem {
                        file: shown(path, &self.fields.directory),
                        line: line + offset,
                        message,
                    };
                    self.fields.problems.push(problem);
                }
                None => self.fields.problem(line, message),
            }
        }
    }

    /// The models of a child, in order.
    fn models(&mut self, settings: &Settings, line: u64) -> Vec<String> {
        let agent = settings.agent.unwrap_or_default();
        let ours = agent == AgentKind::Pinion;
        if agent == AgentKind::Jsonl && settings.command.as_ref().is_none_or(Vec::is_empty) {
            self.fields.problem(line, "agent jsonl needs a command");
        }
        if let Some((Isolation::Task, at)) = settings.isolation
            && !ours
        {
            self.fields
                .problem(at, "only agent pinion can run as a task");
        }
        if let Some((Isolation::Task, at)) = settings.isolation
            && ours
            && (settings.command.is_some()
                || settings.env.as_ref().is_some_and(|env| !env.is_empty()))
        {
            self.fields
                .problem(at, "a task is no process: command and env are not for it");
        }
        let named = match (&settings.models, &settings.tier) {
            (Some(models), _) => models.clone(),
            (None, Some((tier, at))) => {
                let tier = tier.clone();
                let Some(models) = self.tiers.get(&tier).cloned() else {
                    let known: Vec<&str> = self.tiers.keys().map(String::as_str).collect();
                    let known = match known.is_empty() {
                        true => "the plan has none".to_owned(),
                        false => format!("known are {}", known.join(", ")),
                    };
                    self.fields
                        .problem(*at, format!("there is no tier \"{tier}\"; {known}"));
                    return Vec::new();
                };
                match ours {
                    true => self.used_by_us.insert(tier),
                    false => self.used_by_others.insert(tier),
                };
                models
            }
            (None, None) => Vec::new(),
        };
        if ours {
            self.check(&named);
        }
        named.into_iter().map(|(model, _)| model).collect()
    }

    fn check(&mut self, models: &[(String, u64)]) {
        for (model, line) in models {
            if let Err(message) = (self.check_model)(model) {
                self.fields.problem(*line, message);
            }
        }
    }

    /// A tier that nobody uses may be used tomorrow.
    fn check_unused_tiers(&mut self) {
        let tiers = std::mem::take(&mut self.tiers);
        for (name, models) in &tiers {
            if !self.used_by_us.contains(name) && !self.used_by_others.contains(name) {
                self.check(models);
            }
        }
    }
}
