//! The functions of templates: Go's, sprig's, and Pinocchio's; later ones override earlier ones.

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

use pinion_text::amount;

use crate::context::RenderContext;
use crate::print;
use crate::random::Random;
use crate::value::{List, Map, Value};

/// The result of a function; the error message describes its wrong arguments.
pub(crate) type Outcome = Result<Value, String>;

/// State that functions may read and change besides their arguments.
pub(crate) struct Scope<'s> {
    pub context: &'s RenderContext,
    pub random: Random,
    /// Work beyond reading and writing, charged after the call.
    pub work: u64,
    pub expressions: expressions::Compiled,
}

/// A function of templates.
#[derive(Debug)]
pub(crate) struct Function {
    pub name: &'static str,
    least: usize,
    /// `None` for any number.
    most: Option<usize>,
    pub run: fn(&mut Scope<'_>, &Arguments<'_>) -> Outcome,
    pub special: Special,
    pub reach: Reach,
}

/// The depth to which a function reads its arguments, which determines its charged work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Items of items too.
    Deep,
    /// Only the items themselves.
    Surface,
}

/// Functions that the evaluator treats specially.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    None,
    And,
    Or,
    /// Changes the dictionary that is its first argument.
    Update,
}

type Run = fn(&mut Scope<'_>, &Arguments<'_>) -> Outcome;

/// Declares a function with a fixed number of arguments.
const fn exactly(name: &'static str, count: usize, run: Run) -> Function {
    between(name, count, count, run)
}

/// Declares a function with optional arguments.
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

/// Declares a function that accepts any number of arguments from `least` on.
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

    /// Declares that the function does not read the items of its arguments.
    const fn shallow(mut self) -> Self {
        self.reach = Reach::Surface;
        self
    }

    /// Checks the number of arguments.
    pub fn check(&self, count: usize) -> Result<(), String> {
        if count >= self.least && self.most.is_none_or(|most| count <= most) {
            return Ok(());
        }
        let wanted = match self.most {
            Some(most) if most == self.least => amount::count(most, "argument"),
            Some(most) => format!("{} to {}", self.least, amount::count(most, "argument")),
            None => format!("at least {}", amount::count(self.least, "argument")),
        };
        Err(format!("{} takes {wanted}, {count} given", self.name))
    }
}

/// Pinocchio's functions override sprig's, and sprig's override Go's.
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

/// Finds a function by its name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    TABLES
        .iter()
        .flat_map(|table| table.iter())
        .find(|function| function.name == name)
}

/// Returns the names of all functions, sorted.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = TABLES
        .iter()
        .flat_map(|table| table.iter().map(|function| function.name))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the name that is spelled most like the given one.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    pinion_text::nearest(name, names())
}

/// The arguments of a call, with accessors for each kind of value.
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

    /// Returns the text of any value, as sprig prints it.
    fn shown(&self, index: usize) -> String {
        print::printed(self.get(index))
    }

    fn int(&self, index: usize) -> Result<i64, String> {
        match self.get(index) {
            Value::Int(whole) => Ok(*whole),
            _ => Err(self.wrong(index, "a whole number")),
        }
    }

    /// Returns a whole number that is not negative.
    fn count(&self, index: usize) -> Result<usize, String> {
        usize::try_from(self.int(index)?.max(0)).map_err(|_| self.wrong(index, "a small number"))
    }

    fn list(&self, index: usize) -> Result<&'a List, String> {
        match self.get(index) {
            Value::List(list) => Ok(list),
            _ => Err(self.wrong(index, "a list")),
        }
    }

    /// Returns a list; nil is the empty list.
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

/// Rejects texts that would be larger than the output limit.
fn check_size(scope: &Scope<'_>, bytes: usize) -> Result<(), String> {
    let limit = scope.context.limits.output;
    if bytes > limit {
        return Err(format!("the result would be larger than {limit} bytes"));
    }
    Ok(())
}

/// The most items of a list that a function creates.
const MAX_ITEMS: usize = 1_000_000;

/// Rejects lists with more than [`MAX_ITEMS`] items before they are created.
fn check_items(items: usize) -> Result<usize, String> {
    if items > MAX_ITEMS {
        return Err(format!("the list would have more than {MAX_ITEMS} items"));
    }
    Ok(items)
}

/// The most steps of one comparison of all items with each other.
const MAX_COMPARISONS: u64 = 100_000_000;

/// Rejects a comparison of values of this total weight with so many others.
fn check_comparisons(scope: &mut Scope<'_>, weight: u64, others: usize) -> Result<(), String> {
    let steps = weight.saturating_mul(others as u64);
    if steps > MAX_COMPARISONS {
        return Err("there is too much to compare".to_owned());
    }
    scope.work += steps / 64;
    Ok(())
}

fn text_value(text: impl Into<std::sync::Arc<str>>) -> Outcome {
    Ok(Value::text(text))
}
