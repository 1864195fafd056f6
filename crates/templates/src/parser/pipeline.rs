//! Parsing of one action: variables, commands, operands.

use super::words::Words;
use super::{MAX_NESTING, Parser};
use crate::error::Fault;
use crate::functions;
use crate::lexer::Word;
use crate::syntax::{Binding, Command, Operand, OperandKind, Pipeline};
use crate::value::Value;

impl Parser {
    pub(super) fn pipeline(
        &mut self,
        words: &mut Words,
        context: &str,
        depth: usize,
    ) -> Result<Pipeline, Fault> {
        let offset = words.offset();
        if depth > MAX_NESTING {
            return Err(Fault::limit(
                offset,
                format!("parentheses are nested more than {MAX_NESTING} deep"),
            ));
        }
        let (variables, binding) = self.binding(words, context)?;
        let mut commands: Vec<Command> = Vec::new();
        loop {
            let command = self.command(words, context, depth)?;
            if !commands.is_empty() && !callable(&command.operands[0]) {
                return Err(Fault::syntax(
                    command.offset,
                    "a literal cannot take the value in front of `|`: expected a function",
                ));
            }
            commands.push(command);
            match words.peek() {
                Some(Word::Pipe) => {
                    words.next();
                    // As in Go, a pipe with nothing after it is ignored.
                    match words.peek() {
                        None if depth == 0 => break,
                        Some(Word::Close) if depth > 0 => break,
                        _ => {}
                    }
                }
                Some(Word::Close) if depth > 0 => break,
                None if depth == 0 => break,
                None => return Err(Fault::syntax(words.end, "expected `)`")),
                Some(other) => {
                    return Err(Fault::syntax(
                        words.offset(),
                        format!(
                            "unexpected {}: expected an operand, `|` or `}}}}`",
                            other.shown()
                        ),
                    ));
                }
            }
        }
        // A variable is in scope after the pipeline that declares it.
        if binding == Binding::Declare {
            self.variables.extend(variables.iter().cloned());
        }
        Ok(Pipeline {
            offset,
            variables,
            binding,
            commands,
        })
    }

    fn binding(
        &mut self,
        words: &mut Words,
        context: &str,
    ) -> Result<(Vec<String>, Binding), Fault> {
        let mut names = Vec::new();
        let mut ahead = 0;
        let offset = words.offset();
        while let Some(Word::Variable(name)) = words.peek_at(ahead) {
            names.push(name.clone());
            match words.peek_at(ahead + 1) {
                Some(Word::Comma) => ahead += 2,
                Some(word @ (Word::Declare | Word::Assign)) => {
                    let binding = if *word == Word::Declare {
                        Binding::Declare
                    } else {
                        Binding::Assign
                    };
                    if names.len() > if context == "range" { 2 } else { 1 } {
                        return Err(Fault::syntax(
                            offset,
                            "too many variables: `range` takes two, all others one",
                        ));
                    }
                    if binding == Binding::Assign
                        && let Some(unknown) = names.iter().find(|n| !self.variables.contains(n))
                    {
                        return Err(undefined(offset, unknown));
                    }
                    words.skip(ahead + 2);
                    return Ok((names, binding));
                }
                _ => break,
            }
        }
        Ok((Vec::new(), Binding::Declare))
    }

    fn command(
        &mut self,
        words: &mut Words,
        context: &str,
        depth: usize,
    ) -> Result<Command, Fault> {
        let offset = words.offset();
        let mut operands: Vec<Operand> = Vec::new();
        while let Some(token) = words.token() {
            if matches!(token.word, Word::Pipe | Word::Close) {
                break;
            }
            if !operands.is_empty() && !token.spaced {
                return Err(Fault::syntax(
                    token.offset,
                    format!("expected a blank before {}", token.word.shown()),
                ));
            }
            let operand = self.operand(words, depth)?;
            operands.push(operand);
        }
        match operands.first() {
            None => Err(Fault::syntax(
                offset,
                match context {
                    "an action" => "the action is empty: expected a value".to_owned(),
                    other => format!("expected a value for `{other}`"),
                },
            )),
            Some(first) if operands.len() > 1 && !callable(first) => Err(Fault::syntax(
                operands[1].offset,
                "arguments are given to what is not a function: expected `|` or `}}`",
            )),
            _ => Ok(Command { offset, operands }),
        }
    }

    fn operand(&mut self, words: &mut Words, depth: usize) -> Result<Operand, Fault> {
        let offset = words.offset();
        let Some(word) = words.next() else {
            return Err(Fault::syntax(words.end, "expected a value"));
        };
        let kind = match word {
            Word::Dot => OperandKind::Dot,
            Word::Text(text) => OperandKind::Literal(Value::text(text)),
            Word::Int(whole) => OperandKind::Literal(Value::Int(whole)),
            Word::Float(number) => OperandKind::Literal(Value::Float(number)),
            Word::Field(name) => {
                let mut path = vec![name];
                path.extend(words.fields());
                OperandKind::Field(path)
            }
            Word::Variable(name) => {
                if !self.variables.contains(&name) {
                    return Err(undefined(offset, &name));
                }
                OperandKind::Variable(name, words.fields())
            }
            Word::Identifier(name) => match name.as_str() {
                "true" => OperandKind::Literal(Value::Bool(true)),
                "false" => OperandKind::Literal(Value::Bool(false)),
                "nil" => OperandKind::Nil,
                _ => match functions::find(&name) {
                    Some(function) => OperandKind::Function(function),
                    None => return Err(unknown_function(offset, &name)),
                },
            },
            Word::Open => {
                let scope = self.variables.len();
                let pipeline = self.pipeline(words, "( )", depth + 1)?;
                self.variables.truncate(scope);
                words.next();
                OperandKind::Group(Box::new(pipeline), words.fields())
            }
            other => {
                return Err(Fault::syntax(
                    offset,
                    format!("unexpected {}: expected a value", other.shown()),
                ));
            }
        };
        if let Some(token) = words.token()
            && !token.spaced
            && matches!(token.word, Word::Field(_))
        {
            return Err(Fault::syntax(
                token.offset,
                format!(
                    "{} follows what has no fields: put a blank before it, or parentheses around what is in front",
                    token.word.shown()
                ),
            ));
        }
        Ok(Operand { offset, kind })
    }
}

fn callable(operand: &Operand) -> bool {
    match &operand.kind {
        OperandKind::Function(_) | OperandKind::Field(_) => true,
        OperandKind::Variable(_, fields) | OperandKind::Group(_, fields) => !fields.is_empty(),
        _ => false,
    }
}

fn undefined(offset: usize, name: &str) -> Fault {
    Fault::syntax(
        offset,
        format!("variable {name} is not defined here: declare it first with `{name} := …`"),
    )
}

fn unknown_function(offset: usize, name: &str) -> Fault {
    let advice = match functions::nearest(name) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => format!("; a field of the data is written `.{name}`"),
    };
    Fault::syntax(offset, format!("unknown function `{name}`{advice}"))
}
