//! Evaluation of pipelines: field access and function calls.

use super::Evaluator;
use crate::error::Fault;
use crate::functions::{Arguments, Reach, Special};
use crate::syntax::{Command, Operand, OperandKind, Pipeline};
use crate::time;
use crate::value::Value;

/// The deepest nesting of a value.
const MAX_VALUE_DEPTH: u32 = 64;

impl<'t> Evaluator<'t> {
    pub(super) fn pipeline(&mut self, dot: &Value, pipeline: &'t Pipeline) -> Result<Value, Fault> {
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
                "`nil` alone is not a command: use it as an argument",
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

    /// Follows field names into a value. Arguments belong to the last name, which must then be a
    /// method of a time.
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
        let size = |value: &Value| match function.reach {
            Reach::Deep => value.extent().weight,
            Reach::Surface => value.surface(),
        };
        let read: u64 = values.iter().map(size).sum();
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
        self.charge(offset, size(&result).saturating_add(extra))?;
        // A file record holds its text three times, though only once in memory.
        let limit = self.scope.context.limits.output as u64 * 4;
        if extent.depth > MAX_VALUE_DEPTH
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

    /// Evaluates `and` and `or`: arguments are evaluated one by one until the result is certain.
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
}
