//! The syntax tree of a template.

use std::collections::HashMap;
use std::ops::Range;

use crate::functions::Function;
use crate::value::Value;

/// The named templates of one text: the text itself and its definitions.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub root: Vec<Node>,
    pub defined: HashMap<String, Vec<Node>>,
}

/// A part of a template that prints or controls printing.
#[derive(Debug)]
pub(crate) struct Node {
    pub offset: usize,
    pub kind: NodeKind,
}

#[derive(Debug)]
pub(crate) enum NodeKind {
    Text(Range<usize>),
    Action(Pipeline),
    If(Branch),
    With(Branch),
    Range(Branch),
    Template {
        name: String,
        argument: Option<Pipeline>,
    },
    Break,
    Continue,
}

#[derive(Debug)]
pub(crate) struct Branch {
    pub pipeline: Pipeline,
    pub body: Vec<Node>,
    pub otherwise: Vec<Node>,
}

/// Commands that pass on their results, and the variables that receive the last one.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub offset: usize,
    pub variables: Vec<String>,
    pub binding: Binding,
    pub commands: Vec<Command>,
}

/// The effect of a pipeline on its variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binding {
    Declare,
    Assign,
}

/// An operand, or a function or method with its arguments.
#[derive(Debug)]
pub(crate) struct Command {
    pub offset: usize,
    pub operands: Vec<Operand>,
}

#[derive(Debug)]
pub(crate) struct Operand {
    pub offset: usize,
    pub kind: OperandKind,
}

#[derive(Debug)]
pub(crate) enum OperandKind {
    Dot,
    Nil,
    Literal(Value),
    /// `.a.b`
    Field(Vec<String>),
    /// `$x.a.b`
    Variable(String, Vec<String>),
    Function(&'static Function),
    /// `( … )`, with the fields after it.
    Group(Box<Pipeline>, Vec<String>),
}
