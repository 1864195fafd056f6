//! Compiling and running of a filter with jaq.

use std::io;

use jaq_core::load::{self, Arena, File, Loader, span};
use jaq_core::{Compiler, Ctx, Vars, compile, data};
use jaq_json::{Map, Val, read};
use serde_json::value::RawValue;

use crate::depth::{MAX_DEPTH, is_within_depth};
use crate::{Flow, Problem};

type Data = data::JustLut<Val>;

pub(crate) struct Program {
    filter: jaq_core::Filter<Data>,
    /// The value of `$ENV`.
    environment: Val,
}

impl Program {
    /// Compiles `code`, or describes its fault.
    pub fn compile(code: &str) -> Result<Self, String> {
        let definitions = jaq_core::defs()
            .chain(jaq_std::defs())
            .chain(jaq_json::defs())
            .chain(definitions());
        let functions = jaq_core::funs()
            .chain(jaq_std::funs())
            .chain(jaq_json::funs());
        let arena = Arena::default();
        let file = File { code, path: () };
        let modules = Loader::new(definitions).load(&arena, file);
        let modules = modules.map_err(|errors| first(errors, |it| syntax_error(code, it)))?;
        let filter = Compiler::default()
            .with_global_vars(["$ENV"])
            .with_funs(functions)
            .compile(modules)
            .map_err(|errors| first(errors, undefined))?;
        Ok(Self {
            filter,
            environment: environment(),
        })
    }

    /// Passes each output of a JSON text to `write`.
    pub fn run(
        &self,
        json: &[u8],
        mut write: impl FnMut(&Val) -> io::Result<()>,
    ) -> Result<Flow, Problem> {
        if json.trim_ascii().is_empty() {
            return Ok(Flow::Next);
        }
        let input = parse(json).map_err(Problem::Failed)?;
        let variables = Vars::new([self.environment.clone()]);
        let context = Ctx::<Data>::new(&self.filter.lut, variables);
        for output in self.filter.id.run((context, input)) {
            let output = match output {
                Ok(output) => output,
                Err(thrown) => {
                    return match thrown.get_err() {
                        Ok(error) => Err(Problem::Failed(describe(error))),
                        Err(other) => match other.get_halt() {
                            Ok(code) => Ok(Flow::Halt(code)),
                            Err(_) => Err(Problem::Failed("break without its label".to_owned())),
                        },
                    };
                }
            };
            write(&output).map_err(Problem::Output)?;
        }
        Ok(Flow::Next)
    }
}

/// Parses strict JSON: jaq also accepts comments, in which depth could hide.
fn parse(json: &[u8]) -> Result<Val, String> {
    let strict: Result<&RawValue, _> = serde_json::from_slice(json);
    strict.map_err(|error| format!("the answer is not JSON: {error}"))?;
    if !is_within_depth(json) {
        return Err(format!("the answer is more than {MAX_DEPTH} levels deep"));
    }
    read::parse_single(json).map_err(|error| format!("the answer is not JSON: {error}"))
}

/// Functions that jq has and jaq defines elsewhere.
fn definitions() -> Vec<load::parse::Def<&'static str>> {
    load::parse(include_str!("definitions.jq"), |parser| parser.defs()).unwrap_or_default()
}

/// Describes an error; a string that the filter raised is its own description.
fn describe(error: jaq_json::Error) -> String {
    match error.into_val() {
        Val::TStr(text) => String::from_utf8_lossy(&text).into_owned(),
        value => value.to_string(),
    }
}

/// Returns the environment variables that are valid text.
fn environment() -> Val {
    let variables = std::env::vars_os();
    let texts = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let members: Map = texts
        .map(|(name, value)| (Val::from(name), Val::from(value)))
        .collect();
    Val::obj(members)
}

/// Describes the first of several errors.
fn first<S, E>(errors: load::Errors<S, (), E>, describe: impl FnOnce(E) -> String) -> String {
    let error = errors.into_iter().next();
    error.map_or_else(
        || "it cannot be read".to_owned(),
        |(_, error)| describe(error),
    )
}

/// Describes what was expected in `code`, and where.
fn syntax_error(code: &str, error: load::Error<&str>) -> String {
    let wanted = match error {
        load::Error::Io(_) => return "modules are not supported".to_owned(),
        load::Error::Lex(errors) => errors
            .first()
            .map(|(wanted, found)| (wanted.as_str(), *found)),
        load::Error::Parse(errors) => errors
            .first()
            .map(|(wanted, found)| (wanted.as_str(), *found)),
    };
    let Some((wanted, found)) = wanted else {
        return "it cannot be read".to_owned();
    };
    let wanted = match wanted {
        "term" => "a value or a filter",
        "nothing" => "its end",
        wanted => wanted,
    };
    match found.chars().next() {
        None => format!("{wanted} is missing at its end"),
        Some(_) => {
            let before = code.get(..span(code, found).start).unwrap_or_default();
            let column = before.chars().count() + 1;
            format!("{wanted} is expected at character {column}, where there is {found:?}")
        }
    }
}

/// Names the functions or variables that do not exist.
fn undefined(errors: Vec<compile::Error<&str>>) -> String {
    match errors.first() {
        Some((name, compile::Undefined::Filter(arity))) => {
            format!("unknown function {name}/{arity}")
        }
        Some((name, what)) => format!("unknown {} {name}", what.as_str()),
        None => "it cannot be compiled".to_owned(),
    }
}
