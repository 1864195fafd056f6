//! A tree and a value become text.

use crate::error::Fault;
use crate::functions::{Arguments, Scope, Special};
use crate::print;
use crate::random::Random;
use crate::surroundings::Surroundings;
use crate::syntax::{
    Binding, Branch, Command, Node, NodeKind, Operand, OperandKind, Pipeline, Tree,
};
use crate::time;
use crate::value::Value;

/// How deep a value may be nested.
const VALUE_DEPTH: u32 = 64;

pub(crate) fn render(
    text: &str,
    tree: &Tree,
    data: &Value,
    surroundings: &Surroundings,
) -> Result<String, Fault> {
    let mut machine = Machine {
        text,
        tree,
        output: String::with_capacity(text.len()),
        variables: vec![("$", data.clone())],
        depth: 0,
        work: 0,
        scope: Scope {
            surroundings,
            random: Random::new(surroundings.seed),
            work: 0,
            expressions: Default::default(),
        },
    };
    machine.walk(data, &tree.root)?;
    Ok(machine.output)
}

/// What happens after a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

struct Machine<'t> {
    text: &'t str,
    tree: &'t Tree,
    output: String,
    variables: Vec<(&'t str, Value)>,
    depth: usize,
    work: u64,
    scope: Scope<'t>,
}

impl<'t> Machine<'t> {
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
        let round = |machine: &mut Self, key: Value, item: &Value| -> Result<Flow, Fault> {
            machine.charge(offset, 1)?;
            match variables.as_slice() {
                [] => {}
                [single] => machine.assign(single, item.clone()),
                [first, second, ..] => {
                    machine.assign(first, key);
                    machine.assign(second, item.clone());
                }
            }
            let flow = machine.walk(item, &branch.body)?;
            machine.variables.truncate(mark);
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

    fn pipeline(&mut self, dot: &Value, pipeline: &'t Pipeline) -> Result<Value, Fault> {
        let mut handed = None;
        for command in &pipeline.commands {
            handed = Some(self.command(dot, command, handed)?);
        }
        Ok(handed.unwrap_or_default())
    }

    fn command(
        &mut self,
        dot: &Value,
        command: &'t Command,
        handed: Option<Value>,
    ) -> Result<Value, Fault> {
        let Some((first, rest)) = command.operands.split_first() else {
            return Ok(Value::Nil);
        };
        match &first.kind {
            OperandKind::Function(function) => {
                match function.special {
                    Special::And | Special::Or => {
                        let stop_at = function.special == Special::Or;
                        return self.shortcut(dot, first, rest, handed, stop_at);
                    }
                    Special::Update | Special::None => {}
                }
                let values = self.values(dot, rest, handed)?;
                let result = self.call(first.offset, function, &values)?;
                if function.special == Special::Update
                    && let Some(OperandKind::Variable(name, fields)) = rest.first().map(|o| &o.kind)
                    && fields.is_empty()
                {
                    self.assign(name, result.clone());
                }
                Ok(result)
            }
            OperandKind::Nil if rest.is_empty() && handed.is_none() => Err(Fault::evaluation(
                first.offset,
                "`nil` alone is no command: use it as an argument",
            )),
            OperandKind::Field(path) => {
                let values = self.values(dot, rest, handed)?;
                self.path(dot.clone(), path, first.offset, values)
            }
            OperandKind::Variable(name, path) => {
                let values = self.values(dot, rest, handed)?;
                let from = self.variable(name);
                self.path(from, path, first.offset, values)
            }
            OperandKind::Group(pipeline, path) => {
                self.enter(first.offset)?;
                let from = self.pipeline(dot, pipeline)?;
                self.depth -= 1;
                let values = self.values(dot, rest, handed)?;
                self.path(from, path, first.offset, values)
            }
            _ => self.operand(dot, first),
        }
    }

    fn values(
        &mut self,
        dot: &Value,
        operands: &'t [Operand],
        handed: Option<Value>,
    ) -> Result<Vec<Value>, Fault> {
        let mut values = Vec::with_capacity(operands.len() + 1);
        for operand in operands {
            values.push(self.operand(dot, operand)?);
        }
        values.extend(handed);
        Ok(values)
    }

    fn operand(&mut self, dot: &Value, operand: &'t Operand) -> Result<Value, Fault> {
        match &operand.kind {
            OperandKind::Dot => Ok(dot.clone()),
            OperandKind::Nil => Ok(Value::Nil),
            OperandKind::Literal(value) => Ok(value.clone()),
            OperandKind::Field(path) => self.path(dot.clone(), path, operand.offset, Vec::new()),
            OperandKind::Variable(name, path) => {
                self.path(self.variable(name), path, operand.offset, Vec::new())
            }
            OperandKind::Function(function) => match function.special {
                Special::And | Special::Or => Err(Fault::evaluation(
                    operand.offset,
                    format!("{} needs at least one argument", function.name),
                )),
                _ => self.call(operand.offset, function, &[]),
            },
            OperandKind::Group(pipeline, path) => {
                self.enter(operand.offset)?;
                let value = self.pipeline(dot, pipeline)?;
                self.depth -= 1;
                self.path(value, path, operand.offset, Vec::new())
            }
        }
    }

    /// Follows field names into a value. Arguments go to the last name, which must then be a method of a time.
    fn path(
        &mut self,
        from: Value,
        path: &[String],
        offset: usize,
        arguments: Vec<Value>,
    ) -> Result<Value, Fault> {
        let mut value = from;
        let mut arguments = Some(arguments);
        for (index, name) in path.iter().enumerate() {
            let last = index + 1 == path.len();
            let given = if last {
                arguments.take().unwrap_or_default()
            } else {
                Vec::new()
            };
            value = match &value {
                Value::Time(time) => time::method(time, name, &given)
                    .map_err(|message| Fault::evaluation(offset, message))?,
                Value::Map(_) | Value::Nil if !given.is_empty() => {
                    return Err(Fault::evaluation(
                        offset,
                        format!("`.{name}` is not a method, but arguments are given to it"),
                    ));
                }
                Value::Map(map) => map.get(name).cloned().unwrap_or_default(),
                Value::Nil => Value::Nil,
                other => {
                    return Err(Fault::evaluation(
                        offset,
                        format!(
                            "`.{name}` cannot be read from {}: expected a map or a file",
                            other.described()
                        ),
                    ));
                }
            };
        }
        match arguments {
            Some(left) if !left.is_empty() => Err(Fault::evaluation(
                offset,
                "arguments are given to what is not a function",
            )),
            _ => Ok(value),
        }
    }

    fn call(
        &mut self,
        offset: usize,
        function: &'static crate::functions::Function,
        values: &[Value],
    ) -> Result<Value, Fault> {
        let read: u64 = values.iter().map(|value| value.extent().weight).sum();
        self.charge(offset, 1 + read)?;
        function
            .check(values.len())
            .map_err(|message| Fault::evaluation(offset, message))?;
        let arguments = Arguments::new(values);
        let result = (function.run)(&mut self.scope, &arguments).map_err(|message| {
            Fault::evaluation(offset, format!("{}: {message}", function.name))
        })?;
        let extent = result.extent();
        let extra = std::mem::take(&mut self.scope.work);
        self.charge(offset, extent.weight.saturating_add(extra))?;
        let limit = self.scope.surroundings.limits.output as u64;
        if extent.depth > VALUE_DEPTH
            || extent.weight.saturating_mul(32) > limit.saturating_add(4096)
        {
            return Err(Fault::limit(
                offset,
                format!(
                    "{}: the result is too large or too deeply nested",
                    function.name
                ),
            ));
        }
        Ok(result)
    }

    /// `and` and `or`: arguments are looked at one by one until the answer is clear.
    fn shortcut(
        &mut self,
        dot: &Value,
        function: &'t Operand,
        operands: &'t [Operand],
        handed: Option<Value>,
        stop_at: bool,
    ) -> Result<Value, Fault> {
        let mut value = None;
        for operand in operands {
            let next = self.operand(dot, operand)?;
            if next.is_true() == stop_at {
                return Ok(next);
            }
            value = Some(next);
        }
        handed.or(value).ok_or_else(|| {
            Fault::evaluation(function.offset, "`and` and `or` need at least one argument")
        })
    }

    fn enter(&mut self, offset: usize) -> Result<(), Fault> {
        self.depth += 1;
        let limit = self.scope.surroundings.limits.depth;
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
        if self.work > self.scope.surroundings.limits.work {
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
        let limit = self.scope.surroundings.limits.output;
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
