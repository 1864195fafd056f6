//! The parser: builds a tree from tokens.

mod pipeline;
mod words;

use crate::error::Fault;
use crate::lexer::{Piece, Token, Word, pieces};
use crate::syntax::{Branch, Node, NodeKind, Tree};
use words::Words;

/// The deepest nesting of actions and parentheses.
pub(crate) const MAX_NESTING: usize = 100;

/// Parses a template's text.
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

/// The action that ended a list of nodes.
enum Stop {
    Text,
    End(usize),
    /// With the words after `else`.
    Else(usize, Vec<Token>),
}

struct Parser {
    pieces: std::vec::IntoIter<Piece>,
    tree: Tree,
    /// Names of the variables in scope, innermost last.
    variables: Vec<String>,
    /// The open blocks: their keyword and their offset.
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
        if self.open.len() > MAX_NESTING {
            let offset = self.open.last().map_or(0, |(_, offset)| *offset);
            return Err(Fault::limit(
                offset,
                format!("blocks are nested more than {MAX_NESTING} deep"),
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
            Stop::Else(at, rest) => self.else_branch(control, at, rest)?,
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

    /// Parses the branch after `else`: a list of nodes, or, for `else if` and `else with`, one
    /// nested action that shares the `end`.
    fn else_branch(
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
        self.store(name, offset, body)
    }

    fn named_block(&mut self, offset: usize, mut words: Words) -> Result<NodeKind, Fault> {
        let name = words.name("block")?;
        let argument = self.pipeline(&mut words, "block", 0)?;
        let outer = std::mem::replace(&mut self.variables, vec!["$".to_owned()]);
        let ranges = std::mem::take(&mut self.ranges);
        let body = self.body("block", offset)?;
        self.variables = outer;
        self.ranges = ranges;
        self.store(name.clone(), offset, body)?;
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

    /// Stores a named template. An empty one may be defined again, as in Go.
    fn store(&mut self, name: String, offset: usize, body: Vec<Node>) -> Result<(), Fault> {
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
}
