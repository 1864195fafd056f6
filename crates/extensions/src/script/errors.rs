//! Errors of scripts, and the conversion of exceptions to them.

use rquickjs::{Ctx, Value};

use super::callee::not_a_function;

/// The reasons why a call of a script failed. Displayed as the message alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// The script threw.
    #[error("{message}")]
    Thrown {
        /// The message of the error, or the thrown value as text.
        message: String,
        /// `TypeError` and the like; empty if the thrown value is not an error.
        name: String,
        /// The `code` of the error, which Node's errors have.
        code: Option<String>,
        /// The stack trace.
        stack: Option<String>,
    },
    /// The script did not return in time, or used too much memory.
    #[error("{0}")]
    Interrupted(String),
    /// The scripts used too much memory, and all generations were dropped.
    #[error("{0}")]
    Exhausted(String),
    /// The caller stopped waiting for the call.
    #[error("The call was aborted")]
    Aborted,
    /// The generation is closed.
    #[error("The extension generation is closed")]
    Closed,
    /// Too many requests wait for the engine.
    #[error("The extensions are busy and too many requests wait for them. Try again later.")]
    Busy,
    /// The engine has ended or could not be created.
    #[error("The script engine has ended")]
    Ended,
}

impl ScriptError {
    /// Returns a stable name for the kind of failure.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Thrown { .. } => "script_threw",
            Self::Interrupted(_) => "script_interrupted",
            Self::Exhausted(_) => "script_exhausted",
            Self::Aborted => "script_aborted",
            Self::Closed => "script_closed",
            Self::Busy => "script_busy",
            Self::Ended => "script_ended",
        }
    }
}

/// Converts a thrown value to an error.
pub(crate) fn describe<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> ScriptError {
    let Some(object) = value.as_object().filter(|_| value.is_error()) else {
        return ScriptError::Thrown {
            message: as_text(ctx, value),
            name: String::new(),
            code: None,
            stack: None,
        };
    };
    let member = |name: &str| -> Option<String> {
        match object.get::<_, Value<'js>>(name) {
            Ok(value) if value.is_string() => value.get().ok(),
            Ok(_) => None,
            Err(_) => {
                ctx.catch();
                None
            }
        }
    };
    let stack = member("stack");
    ScriptError::Thrown {
        message: readable_message(&member("message").unwrap_or_default(), stack.as_deref()),
        name: member("name").unwrap_or_default(),
        code: member("code"),
        stack,
    }
}

fn as_text<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    if let Some(symbol) = value.as_symbol() {
        let description = symbol.description().ok();
        let description = description.and_then(|description| description.get::<String>().ok());
        return format!("Symbol({})", description.unwrap_or_default());
    }
    match value.get::<rquickjs::Coerced<String>>() {
        Ok(text) => text.0,
        Err(_) => {
            ctx.catch();
            "[thrown value]".to_owned()
        }
    }
}

/// Returns `message` in the words that extensions expect: this engine words a failed property access or call
/// differently from V8, which extensions are written for. `stack` holds the location of the error.
#[must_use]
pub fn readable_message(message: &str, stack: Option<&str>) -> String {
    if matches!(message, "not a function" | "not a constructor") {
        return stack
            .and_then(not_a_function)
            .unwrap_or_else(|| message.to_owned());
    }
    if let Some(name) = message.strip_suffix(" is not initialized")
        && !name.contains(' ')
    {
        return format!("Cannot access '{name}' before initialization");
    }
    match message {
        "cannot convert to object" => {
            return "Cannot convert undefined or null to object".to_owned();
        }
        "circular reference" => return "Converting circular structure to JSON".to_owned(),
        "invalid 'instanceof' right operand" => {
            return "Right-hand side of 'instanceof' is not callable".to_owned();
        }
        "invalid 'in' operand" => {
            return "Cannot use 'in' operator to search for a key in a value that is not an object"
                .to_owned();
        }
        _ => {}
    }
    for (start, verb) in [
        ("cannot read property '", "read"),
        ("cannot set property '", "set"),
    ] {
        if let Some(rest) = message.strip_prefix(start)
            && let Some((property, object)) = rest.rsplit_once("' of ")
            && matches!(object, "undefined" | "null")
        {
            return if verb == "read" {
                format!("Cannot read properties of {object} (reading '{property}')")
            } else {
                format!("Cannot set properties of {object} (setting '{property}')")
            };
        }
    }
    message.to_owned()
}
