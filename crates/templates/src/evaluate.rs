//! Evaluation: renders a tree with a value.

mod call;

use crate::context::RenderContext;
use crate::error::Fault;
use crate::functions::Scope;
use crate::print;
use crate::random::Random;
use crate::syntax::{Binding, Branch, Node, NodeKind, Pipeline, Tree};
use crate::value::Value;

pub(crate) fn render(
    text: &str,
    tree: &Tree,
    data: &Value,
    context: &RenderContext,
) -> Result<String, Fault> {
    let mut evaluator = Evaluator {
        text,
        tree,
        output: String::with_capacity(text.len()),
        variables: vec![("$", data.clone())],
        depth: 0,
        work: 0,
        scope: Scope {
            context,
            random: Random::new(context.seed),
            work: 0,
            expressions: Default::default(),
        },
    };
    evaluator.walk(data, &tree.root)?;
    Ok(evaluator.output)
}

/// The control flow after a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

struct Evaluator<'t> {
    text: &'t str,
    tree: &'t Tree,
    output: String,
    variables: Vec<(&'t str, Value)>,
    depth: usize,
    work: u64,
    scope: Scope<'t>,
}

impl<'t> Evaluator<'t> {
    fn walk(&mut self, dot: &Value, nodes: &'t [Node]) -> Result<Flow, Fault> {
        for node in nodes {
            self.charge(node.offset, 1)?;
            let flow = self.node(dot, node)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn node(&mut self, dot: &Value, node: &'t Node) -> Result<Flow, Fault> {
        match &node.kind {
            NodeKind::Text(range) => {
                self.print(node.offset, &self.text[range.clone()])?;
                Ok(Flow::Next)
            }
            NodeKind::Action(pipeline) => {
                let value = self.pipeline(dot, pipeline)?;
                if pipeline.variables.is_empty() {
                    self.show(node.offset, &value)?;
                } else {
                    self.bind(pipeline, value);
                }
                Ok(Flow::Next)
            }
            NodeKind::If(branch) | NodeKind::With(branch) => {
                let mark = self.variables.len();
                self.enter(node.offset)?;
                let value = self.pipeline(dot, &branch.pipeline)?;
                self.bind(&branch.pipeline, value.clone());
                let with = matches!(node.kind, NodeKind::With(_));
                let flow = if !value.is_true() {
                    self.walk(dot, &branch.otherwise)
                } else if with {
                    self.walk(&value, &branch.body)
                } else {
                    self.walk(dot, &branch.body)
                };
                self.depth -= 1;
                self.variables.truncate(mark);
                flow
            }
            NodeKind::Range(branch) => {
                let mark = self.variables.len();
                self.enter(node.offset)?;
                let flow = self.range(dot, node.offset, branch);
                self.depth -= 1;
                self.variables.truncate(mark);
                flow
            }
            NodeKind::Template { name, argument } => {
                let argument = match argument {
                    Some(pipeline) => self.pipeline(dot, pipeline)?,
                    None => Value::Nil,
                };
                let Some(body) = self.tree.defined.get(name) else {
                    return Err(Fault::evaluation(
                        node.offset,
                        format!("template {name:?} is not defined in this text"),
                    ));
                };
                self.enter(node.offset)?;
                let outer = std::mem::replace(&mut self.variables, vec![("$", argument.clone())]);
                self.walk(&argument, body)?;
                self.variables = outer;
                self.depth -= 1;
                Ok(Flow::Next)
            }
            NodeKind::Break => Ok(Flow::Break),
            NodeKind::Continue => Ok(Flow::Continue),
        }
    }

    fn range(&mut self, dot: &Value, offset: usize, branch: &'t Branch) -> Result<Flow, Fault> {
        let value = self.pipeline(dot, &branch.pipeline)?;
        let variables = &branch.pipeline.variables;
        let declared = branch.pipeline.binding == Binding::Declare;
        if declared {
            for name in variables {
                self.variables.push((name, Value::Nil));
            }
        }
        let mark = self.variables.len();
        let round = |evaluator: &mut Self, key: Value, item: &Value| -> Result<Flow, Fault> {
            evaluator.charge(offset, 1)?;
            match variables.as_slice() {
                [] => {}
                [single] => evaluator.assign(single, item.clone()),
                [first, second, ..] => {
                    evaluator.assign(first, key);
                    evaluator.assign(second, item.clone());
                }
            }
            let flow = evaluator.walk(item, &branch.body)?;
            evaluator.variables.truncate(mark);
            Ok(flow)
        };
        let mut rounds = 0_u64;
        match &value {
            Value::Nil => {}
            Value::List(list) => {
                for (index, item) in list.iter().enumerate() {
                    rounds += 1;
                    if round(self, Value::Int(index as i64), item)? == Flow::Break {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for (key, item) in map.iter() {
                    rounds += 1;
                    if round(self, Value::text(key.as_str()), item)? == Flow::Break {
                        break;
                    }
                }
            }
            Value::Int(count) => {
                if variables.len() > 1 {
                    return Err(Fault::evaluation(
                        branch.pipeline.offset,
                        "a `range` over a whole number has one variable",
                    ));
                }
                for number in 0..*count {
                    rounds += 1;
                    let number = Value::Int(number);
                    if round(self, number.clone(), &number)? == Flow::Break {
                        break;
                    }
                }
            }
            other => {
                return Err(Fault::evaluation(
                    branch.pipeline.offset,
                    format!(
                        "`range` cannot go through {}: expected a list, a map or a whole number",
                        other.described()
                    ),
                ));
            }
        }
        if rounds == 0 {
            return self.walk(dot, &branch.otherwise);
        }
        Ok(Flow::Next)
    }

    fn bind(&mut self, pipeline: &'t Pipeline, value: Value) {
        for name in &pipeline.variables {
            match pipeline.binding {
                Binding::Declare => self.variables.push((name, value.clone())),
                Binding::Assign => self.assign(name, value.clone()),
            }
        }
    }

    fn assign(&mut self, name: &str, value: Value) {
        if let Some(slot) = self.variables.iter_mut().rev().find(|(n, _)| *n == name) {
            slot.1 = value;
        }
    }

    fn variable(&self, name: &str) -> Value {
        self.variables
            .iter()
            .rev()
            .find(|(n, _)| *n == name)
            .map_or(Value::Nil, |(_, value)| value.clone())
    }

    fn enter(&mut self, offset: usize) -> Result<(), Fault> {
        self.depth += 1;
        let limit = self.scope.context.limits.depth;
        if self.depth > limit {
            return Err(Fault::limit(
                offset,
                format!("the template calls itself or nests more than {limit} deep"),
            ));
        }
        Ok(())
    }

    fn charge(&mut self, offset: usize, work: u64) -> Result<(), Fault> {
        self.work = self.work.saturating_add(work);
        if self.work > self.scope.context.limits.work {
            return Err(Fault::limit(
                offset,
                "the template takes too much work and was stopped: it loops too often or its values are too large",
            ));
        }
        Ok(())
    }

    fn show(&mut self, offset: usize, value: &Value) -> Result<(), Fault> {
        match value {
            Value::String(text) => self.print(offset, text),
            Value::Nil => self.print(offset, "<no value>"),
            other => {
                self.charge(offset, other.extent().weight)?;
                let text = print::printed(other);
                self.print(offset, &text)
            }
        }
    }

    fn print(&mut self, offset: usize, text: &str) -> Result<(), Fault> {
        let limit = self.scope.context.limits.output;
        if self.output.len() + text.len() > limit {
            return Err(Fault::limit(
                offset,
                format!("the output is larger than {limit} bytes"),
            ));
        }
        self.charge(offset, text.len() as u64 / 32)?;
        self.output.push_str(text);
        Ok(())
    }
}
