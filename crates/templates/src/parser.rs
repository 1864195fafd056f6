//! From words to a tree.

use crate::error::Fault;
use crate::functions;
use crate::lexer::{Piece, Token, Word, pieces};
use crate::syntax::{
    Binding, Branch, Command, Node, NodeKind, Operand, OperandKind, Pipeline, Tree,
};
use crate::value::Value;

/// How deep actions and parentheses may be nested.
pub(crate) const NESTING: usize = 100;

/// Reads a template's text.
pub(crate) fn parse(text: &str) -> Result<Tree, Fault> {
    let mut parser = Parser {
        pieces: pieces(text)?.into_iter(),
        tree: Tree::default(),
        variables: vec!["$".to_owned()],
        open: Vec::new(),
        ranges: 0,
    };
    let (root, end) = parser.block()?;
    match end {
        Stop::Text => {
            parser.tree.root = root;
            Ok(parser.tree)
        }
        Stop::End(offset) => Err(Fault::syntax(
            offset,
            "unexpected `end`: no `if`, `range`, `with`, `define` or `block` is open",
        )),
        Stop::Else(offset, _) => Err(Fault::syntax(
            offset,
            "unexpected `else`: no `if`, `range` or `with` is open",
        )),
    }
}

/// What ended a run of nodes.
enum Stop {
    Text,
    End(usize),
    /// With the words after `else`.
    Else(usize, Vec<Token>),
}

struct Parser {
    pieces: std::vec::IntoIter<Piece>,
    tree: Tree,
    /// Names of the variables in sight, innermost last.
    variables: Vec<String>,
    /// The blocks that are open: their word and where they begin.
    open: Vec<(&'static str, usize)>,
    ranges: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Control {
    If,
    With,
    Range,
}

impl Control {
    fn word(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::With => "with",
            Self::Range => "range",
        }
    }

    fn of(word: &str) -> Option<Self> {
        match word {
            "if" => Some(Self::If),
            "with" => Some(Self::With),
            "range" => Some(Self::Range),
            _ => None,
        }
    }
}

impl Parser {
    fn block(&mut self) -> Result<(Vec<Node>, Stop), Fault> {
        if self.open.len() > NESTING {
            let offset = self.open.last().map_or(0, |(_, offset)| *offset);
            return Err(Fault::limit(
                offset,
                format!("blocks are nested more than {NESTING} deep"),
            ));
        }
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.next() {
            let (offset, tokens) = match piece {
                Piece::Text(range) => {
                    nodes.push(Node {
                        offset: range.start,
                        kind: NodeKind::Text(range),
                    });
                    continue;
                }
                Piece::Action { offset, tokens } => (offset, tokens),
            };
            let mut words = Words::new(offset, tokens);
            let keyword = match words.peek() {
                Some(Word::Identifier(name)) => name.clone(),
                _ => String::new(),
            };
            let kind = match keyword.as_str() {
                "end" => {
                    words.next();
                    words.finish("`end`")?;
                    return Ok((nodes, Stop::End(offset)));
                }
                "else" => {
                    words.next();
                    return Ok((nodes, Stop::Else(offset, words.rest())));
                }
                "if" | "with" | "range" => {
                    words.next();
                    let control = Control::of(&keyword).unwrap_or(Control::If);
                    self.control(control, offset, words)?
                }
                "define" => {
                    words.next();
                    self.define(offset, &mut words)?;
                    continue;
                }
                "block" => {
                    words.next();
                    self.named_block(offset, words)?
                }
                "template" => {
                    words.next();
                    let name = words.name("template")?;
                    let argument = if words.is_empty() {
                        None
                    } else {
                        Some(self.pipeline(&mut words, "template", 0)?)
                    };
                    NodeKind::Template { name, argument }
                }
                "break" | "continue" => {
                    words.next();
                    words.finish(&format!("`{keyword}`"))?;
                    if self.ranges == 0 {
                        return Err(Fault::syntax(
                            offset,
                            format!("`{keyword}` stands outside of a `range`"),
                        ));
                    }
                    if keyword == "break" {
                        NodeKind::Break
                    } else {
                        NodeKind::Continue
                    }
                }
                _ => {
                    let pipeline = self.pipeline(&mut words, "an action", 0)?;
                    NodeKind::Action(pipeline)
                }
            };
            nodes.push(Node { offset, kind });
        }
        match self.open.last() {
            None => Ok((nodes, Stop::Text)),
            Some((word, offset)) => Err(Fault::syntax(
                *offset,
                format!("this `{word}` has no end: expected `{{{{end}}}}`"),
            )),
        }
    }

    fn control(
        &mut self,
        control: Control,
        offset: usize,
        mut words: Words,
    ) -> Result<NodeKind, Fault> {
        let scope = self.variables.len();
        self.open.push((control.word(), offset));
        let pipeline = self.pipeline(&mut words, control.word(), 0)?;
        let bound = self.variables.len();
        if control == Control::Range {
            self.ranges += 1;
        }
        let (body, end) = self.block()?;
        if control == Control::Range {
            self.ranges -= 1;
        }
        self.variables.truncate(bound);
        let otherwise = match end {
            Stop::Else(at, rest) => self.otherwise(control, at, rest)?,
            _ => Vec::new(),
        };
        self.variables.truncate(scope);
        self.open.pop();
        let branch = Branch {
            pipeline,
            body,
            otherwise,
        };
        Ok(match control {
            Control::If => NodeKind::If(branch),
            Control::With => NodeKind::With(branch),
            Control::Range => NodeKind::Range(branch),
        })
    }

    /// What follows `else`: a list of its own, or, for `else if` and `else with`, one nested action that takes
    /// the `end` with it.
    fn otherwise(
        &mut self,
        control: Control,
        offset: usize,
        rest: Vec<Token>,
    ) -> Result<Vec<Node>, Fault> {
        let mut words = Words::new(offset, rest);
        if let Some(Word::Identifier(word)) = words.peek().cloned()
            && let Some(nested) = Control::of(&word)
            && nested == control
            && control != Control::Range
        {
            words.next();
            let kind = self.control(nested, offset, words)?;
            return Ok(vec![Node { offset, kind }]);
        }
        let expected = match control {
            Control::If => "`else` or `else if`",
            Control::With => "`else` or `else with`",
            Control::Range => "`else`",
        };
        words.finish(expected)?;
        match self.block()? {
            (nodes, Stop::Else(at, _)) => {
                drop(nodes);
                Err(Fault::syntax(at, "a second `else`: expected `{{end}}`"))
            }
            (nodes, _) => Ok(nodes),
        }
    }

    fn define(&mut self, offset: usize, words: &mut Words) -> Result<(), Fault> {
        if !self.open.is_empty() {
            return Err(Fault::syntax(
                offset,
                "`define` stands inside another action: it must be outside of all others",
            ));
        }
        let name = words.name("define")?;
        words.finish("`define \"name\"`")?;
        let outer = std::mem::replace(&mut self.variables, vec!["$".to_owned()]);
        let body = self.body("define", offset)?;
        self.variables = outer;
        self.keep(name, offset, body)
    }

    fn named_block(&mut self, offset: usize, mut words: Words) -> Result<NodeKind, Fault> {
        let name = words.name("block")?;
        let argument = self.pipeline(&mut words, "block", 0)?;
        let outer = std::mem::replace(&mut self.variables, vec!["$".to_owned()]);
        let ranges = std::mem::take(&mut self.ranges);
        let body = self.body("block", offset)?;
        self.variables = outer;
        self.ranges = ranges;
        self.keep(name.clone(), offset, body)?;
        Ok(NodeKind::Template {
            name,
            argument: Some(argument),
        })
    }

    fn body(&mut self, word: &'static str, offset: usize) -> Result<Vec<Node>, Fault> {
        self.open.push((word, offset));
        let (body, end) = self.block()?;
        self.open.pop();
        match end {
            Stop::Else(at, _) => Err(Fault::syntax(
                at,
                format!("unexpected `else` in a `{word}`: expected `{{{{end}}}}`"),
            )),
            _ => Ok(body),
        }
    }

    /// Keeps a named template. An empty one may be given again, as in Go.
    fn keep(&mut self, name: String, offset: usize, body: Vec<Node>) -> Result<(), Fault> {
        let empty = |nodes: &[Node]| nodes.is_empty();
        match self.tree.defined.get(&name) {
            Some(earlier) if !empty(earlier) && !empty(&body) => Err(Fault::syntax(
                offset,
                format!("template {name:?} is defined twice"),
            )),
            Some(earlier) if !empty(earlier) => Ok(()),
            _ => {
                self.tree.defined.insert(name, body);
                Ok(())
            }
        }
    }

    fn pipeline(
        &mut self,
        words: &mut Words,
        context: &str,
        depth: usize,
    ) -> Result<Pipeline, Fault> {
        let offset = words.offset();
        if depth > NESTING {
            return Err(Fault::limit(
                offset,
                format!("parentheses are nested more than {NESTING} deep"),
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
                    // As in Go, a pipe with nothing behind it is passed over.
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
        // A variable can be used once the pipeline that makes it is over.
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
        while let Some(Word::Variable(name)) = words.look(ahead) {
            names.push(name.clone());
            match words.look(ahead + 1) {
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
    Fault::syntax(offset, format!("there is no function `{name}`{advice}"))
}

/// The words of one action and how far they are read.
struct Words {
    tokens: Vec<Token>,
    at: usize,
    /// Where the action begins; stands in for the place of a word that is missing.
    end: usize,
}

impl Words {
    fn new(offset: usize, tokens: Vec<Token>) -> Self {
        Self {
            tokens,
            at: 0,
            end: offset,
        }
    }

    fn token(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn look(&self, ahead: usize) -> Option<&Word> {
        self.tokens.get(self.at + ahead).map(|token| &token.word)
    }

    fn peek(&self) -> Option<&Word> {
        self.look(0)
    }

    fn next(&mut self) -> Option<Word> {
        let word = self.peek().cloned();
        self.at += 1;
        word
    }

    fn skip(&mut self, count: usize) {
        self.at += count;
    }

    fn is_empty(&self) -> bool {
        self.at >= self.tokens.len()
    }

    fn offset(&self) -> usize {
        self.token().map_or(self.end, |token| token.offset)
    }

    fn rest(mut self) -> Vec<Token> {
        self.tokens.split_off(self.at.min(self.tokens.len()))
    }

    /// `.a.b` right behind what was just read.
    fn fields(&mut self) -> Vec<String> {
        let mut fields = Vec::new();
        while let Some(Token {
            spaced: false,
            word: Word::Field(name),
            ..
        }) = self.token()
        {
            fields.push(name.clone());
            self.at += 1;
        }
        fields
    }

    fn name(&mut self, after: &str) -> Result<String, Fault> {
        let offset = self.offset();
        match self.next() {
            Some(Word::Text(name)) => Ok(name),
            _ => Err(Fault::syntax(
                offset,
                format!("expected a name in quotes after `{after}`"),
            )),
        }
    }

    fn finish(&self, what: &str) -> Result<(), Fault> {
        match self.token() {
            None => Ok(()),
            Some(token) => Err(Fault::syntax(
                token.offset,
                format!(
                    "unexpected {} after {what}: expected `}}}}`",
                    token.word.shown()
                ),
            )),
        }
    }
}
