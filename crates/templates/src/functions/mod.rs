//! The functions of templates: Go's own, sprig's, and Pinocchio's, of which later ones hide earlier ones.

mod builtin;
mod conversion;
mod dates;
mod dictionaries;
mod encoding;
pub(crate) mod expressions;
mod lists;
mod logic;
mod markup;
mod numbers;
mod overrides;
mod paths;
mod strings;
mod urls;
mod words;

use crate::print;
use crate::random::Random;
use crate::surroundings::Surroundings;
use crate::value::{List, Map, Value};

/// What a function gives back; a message says what is wrong with its arguments.
pub(crate) type Outcome = Result<Value, String>;

/// What functions may look at and change beside their arguments.
pub(crate) struct Scope<'s> {
    pub surroundings: &'s Surroundings,
    pub random: Random,
    /// Work beyond what is read and written, to be charged after the call.
    pub work: u64,
    pub expressions: expressions::Compiled,
}

/// A function of templates.
#[derive(Debug)]
pub(crate) struct Function {
    pub name: &'static str,
    least: usize,
    /// No number: as many as wanted.
    most: Option<usize>,
    pub run: fn(&mut Scope<'_>, &Arguments<'_>) -> Outcome,
    pub special: Special,
    pub reach: Reach,
}

/// How far a function goes into its arguments, which is the work it is charged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Into all items of items.
    Deep,
    /// No further than the items themselves.
    Surface,
}

/// Functions that the evaluator has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    None,
    And,
    Or,
    /// Changes the dictionary that is its first argument.
    Update,
}

type Run = fn(&mut Scope<'_>, &Arguments<'_>) -> Outcome;

/// A function with a fixed number of arguments.
const fn exactly(name: &'static str, count: usize, run: Run) -> Function {
    between(name, count, count, run)
}

/// A function with optional arguments.
const fn between(name: &'static str, least: usize, most: usize, run: Run) -> Function {
    Function {
        name,
        least,
        most: Some(most),
        run,
        special: Special::None,
        reach: Reach::Deep,
    }
}

/// A function that takes any number of arguments from `least` on.
const fn from(name: &'static str, least: usize, run: Run) -> Function {
    Function {
        name,
        least,
        most: None,
        run,
        special: Special::None,
        reach: Reach::Deep,
    }
}

impl Function {
    const fn with(mut self, special: Special) -> Self {
        self.special = special;
        self
    }

    /// The same function, which does not look into the items it is given.
    const fn shallow(mut self) -> Self {
        self.reach = Reach::Surface;
        self
    }

    /// Whether so many arguments can be taken.
    pub fn check(&self, count: usize) -> Result<(), String> {
        if count >= self.least && self.most.is_none_or(|most| count <= most) {
            return Ok(());
        }
        let wanted = match self.most {
            Some(most) if most == self.least => plural(most),
            Some(most) => format!("{} to {}", self.least, plural(most)),
            None => format!("at least {}", plural(self.least)),
        };
        Err(format!("{} takes {wanted}, {count} given", self.name))
    }
}

fn plural(count: usize) -> String {
    format!("{count} argument{}", if count == 1 { "" } else { "s" })
}

/// Ours hide sprig's, sprig's hide Go's.
const TABLES: &[&[Function]] = &[
    overrides::TABLE,
    markup::TABLE,
    strings::TABLE,
    words::TABLE,
    numbers::TABLE,
    lists::TABLE,
    dictionaries::TABLE,
    logic::TABLE,
    conversion::TABLE,
    encoding::TABLE,
    dates::TABLE,
    paths::TABLE,
    urls::TABLE,
    expressions::TABLE,
    builtin::TABLE,
];

/// The function of that name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    TABLES
        .iter()
        .flat_map(|table| table.iter())
        .find(|function| function.name == name)
}

/// The names of all functions, sorted.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = TABLES
        .iter()
        .flat_map(|table| table.iter().map(|function| function.name))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The name that is spelled most like the given one.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    pinion_spelling::nearest(name, names())
}

/// The arguments of a call, asked for by kind.
pub(crate) struct Arguments<'a> {
    values: &'a [Value],
}

impl<'a> Arguments<'a> {
    pub fn new(values: &'a [Value]) -> Self {
        Self { values }
    }

    fn all(&self) -> &'a [Value] {
        self.values
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn get(&self, index: usize) -> &'a Value {
        self.values.get(index).unwrap_or(&Value::Nil)
    }

    fn from(&self, index: usize) -> &'a [Value] {
        self.values.get(index..).unwrap_or(&[])
    }

    fn wrong(&self, index: usize, expected: &str) -> String {
        format!(
            "argument {} is {}, expected {expected}",
            index + 1,
            self.get(index).described()
        )
    }

    fn text(&self, index: usize) -> Result<&'a str, String> {
        match self.get(index) {
            Value::String(text) => Ok(text),
            _ => Err(self.wrong(index, "text")),
        }
    }

    /// The text of any value, as sprig makes one.
    fn shown(&self, index: usize) -> String {
        print::printed(self.get(index))
    }

    fn int(&self, index: usize) -> Result<i64, String> {
        match self.get(index) {
            Value::Int(whole) => Ok(*whole),
            _ => Err(self.wrong(index, "a whole number")),
        }
    }

    /// A whole number that counts something.
    fn count(&self, index: usize) -> Result<usize, String> {
        usize::try_from(self.int(index)?.max(0)).map_err(|_| self.wrong(index, "a small number"))
    }

    fn list(&self, index: usize) -> Result<&'a List, String> {
        match self.get(index) {
            Value::List(list) => Ok(list),
            _ => Err(self.wrong(index, "a list")),
        }
    }

    /// A list, where nothing is the empty one.
    fn items(&self, index: usize) -> Result<&'a [Value], String> {
        match self.get(index) {
            Value::Nil => Ok(&[]),
            Value::List(list) => Ok(list),
            _ => Err(self.wrong(index, "a list")),
        }
    }

    fn map(&self, index: usize) -> Result<&'a Map, String> {
        match self.get(index) {
            Value::Map(map) => Ok(map),
            _ => Err(self.wrong(index, "a dictionary")),
        }
    }
}

/// Refuses texts that would be larger than any output may be.
fn bounded(scope: &Scope<'_>, bytes: usize) -> Result<(), String> {
    let limit = scope.surroundings.limits.output;
    if bytes > limit {
        return Err(format!("the result would be larger than {limit} bytes"));
    }
    Ok(())
}

/// The most items of a list that a function makes.
const LONGEST: usize = 1_000_000;

/// Refuses lists that would be longer than any list may be, before they are made.
fn countable(items: usize) -> Result<usize, String> {
    if items > LONGEST {
        return Err(format!("the list would have more than {LONGEST} items"));
    }
    Ok(items)
}

/// Steps that one comparison of all items with each other may take.
const COMPARED: u64 = 100_000_000;

/// Refuses to compare so many values of this weight, all in all, with so many others.
fn comparable(scope: &mut Scope<'_>, weight: u64, others: usize) -> Result<(), String> {
    let steps = weight.saturating_mul(others as u64);
    if steps > COMPARED {
        return Err("there is too much to compare".to_owned());
    }
    scope.work += steps / 64;
    Ok(())
}

fn given(text: impl Into<std::sync::Arc<str>>) -> Outcome {
    Ok(Value::text(text))
}
