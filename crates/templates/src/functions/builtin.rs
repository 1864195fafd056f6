//! The functions that every Go template has.

use std::cmp::Ordering;

use super::{Arguments, Function, Outcome, Scope, Special, exactly, from, text_value};
use crate::format::sprintf;
use crate::print;
use crate::value::Value;

pub(super) const TABLE: &[Function] = &[
    from("and", 1, unreachable_here).with(Special::And),
    from("or", 1, unreachable_here).with(Special::Or),
    exactly("not", 1, |_, args| Ok((!args.get(0).is_true()).into())).shallow(),
    exactly("len", 1, len).shallow(),
    from("index", 1, index).shallow(),
    from("slice", 1, slice).shallow(),
    from("print", 0, |_, args| text_value(print::sprint(args.all()))),
    from("println", 0, |_, args| {
        text_value(print::sprintln(args.all()))
    }),
    from("printf", 1, |scope, args| {
        let limit = scope.context.limits.output;
        sprintf(args.text(0)?, args.from(1), limit).map(Value::text)
    }),
    from("html", 0, |_, args| text_value(html(&joined(args)))),
    from("js", 0, |_, args| text_value(js(&joined(args)))),
    from("urlquery", 0, |_, args| {
        text_value(url_query(&joined(args)))
    }),
    from("call", 1, |_, args| Err(args.wrong(0, "a function"))),
    from("eq", 1, eq).shallow(),
    exactly("ne", 2, |_, args| {
        equal(args.get(0), args.get(1)).map(|equal| (!equal).into())
    })
    .shallow(),
    exactly("lt", 2, |_, args| {
        compare(args).map(|order| order.is_some_and(Ordering::is_lt).into())
    })
    .shallow(),
    exactly("le", 2, |_, args| {
        compare(args).map(|order| order.is_some_and(Ordering::is_le).into())
    })
    .shallow(),
    exactly("gt", 2, |_, args| {
        compare(args).map(|order| order.is_some_and(Ordering::is_gt).into())
    })
    .shallow(),
    exactly("ge", 2, |_, args| {
        compare(args).map(|order| order.is_some_and(Ordering::is_ge).into())
    })
    .shallow(),
];

/// Stands in the table for `and` and `or`, which the evaluator handles, because they may skip
/// arguments.
fn unreachable_here(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    Ok(args.all().last().cloned().unwrap_or_default())
}

/// Joins the arguments of an escaping function; nil is joined as a template prints it.
fn joined(args: &Arguments<'_>) -> String {
    let values: Vec<Value> = args
        .all()
        .iter()
        .map(|value| match value {
            Value::Nil => Value::text("<no value>"),
            other => other.clone(),
        })
        .collect();
    print::sprint(&values)
}

fn len(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let length = match args.get(0) {
        Value::String(text) => text.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        _ => return Err(args.wrong(0, "text, a list or a map")),
    };
    Ok(Value::Int(length as i64))
}

fn index(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let mut value = args.get(0).clone();
    for (position, key) in args.from(1).iter().enumerate() {
        value = match (&value, key) {
            (Value::Map(map), Value::String(name)) => map.get(&**name).cloned().unwrap_or_default(),
            (Value::Map(_), _) => {
                return Err(args.wrong(position + 1, "the name of an entry, as text"));
            }
            (Value::List(list), Value::Int(at)) => usize::try_from(*at)
                .ok()
                .and_then(|at| list.get(at).cloned())
                .ok_or_else(|| out_of_range(*at, list.len()))?,
            (Value::String(text), Value::Int(at)) => usize::try_from(*at)
                .ok()
                .and_then(|at| text.as_bytes().get(at))
                .map(|byte| Value::Int(i64::from(*byte)))
                .ok_or_else(|| out_of_range(*at, text.len()))?,
            (Value::List(_) | Value::String(_), _) => {
                return Err(args.wrong(position + 1, "a whole number"));
            }
            (Value::Nil, _) => {
                return Err("nothing cannot be indexed: the value is missing".to_owned());
            }
            (other, _) => return Err(format!("{} cannot be indexed", other.described())),
        };
    }
    Ok(value)
}

fn out_of_range(at: i64, length: usize) -> String {
    format!("index {at} is out of range: there are {length} items, counted from 0")
}

/// Go's `slice`; for lists it is also sprig's.
pub(super) fn slice(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let length = match args.get(0) {
        Value::List(list) => list.len(),
        Value::String(text) => text.len(),
        _ => return Err(args.wrong(0, "a list or text")),
    };
    let mut bounds = [0, length];
    for (position, bound) in args.from(1).iter().take(2).enumerate() {
        bounds[position] = match bound {
            Value::Int(at) if *at >= 0 && *at as usize <= length => *at as usize,
            Value::Int(at) => return Err(out_of_range(*at, length)),
            _ => return Err(args.wrong(position + 1, "a whole number")),
        };
    }
    let [start, end] = bounds;
    if start > end {
        return Err(format!("the start {start} is behind the end {end}"));
    }
    match args.get(0) {
        Value::List(list) => Ok(Value::list(list[start..end].to_vec())),
        Value::String(text) => {
            text_value(String::from_utf8_lossy(&text.as_bytes()[start..end]).into_owned())
        }
        _ => Ok(Value::Nil),
    }
}

fn eq(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    if args.len() < 2 {
        return Err("there is nothing to compare with: expected a second argument".to_owned());
    }
    for other in args.from(1) {
        if equal(args.get(0), other)? {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}

/// Compares as Go does: only values of one kind, except that any value may be compared with nil.
fn equal(a: &Value, b: &Value) -> Result<bool, String> {
    match (a, b) {
        (Value::Nil, _) | (_, Value::Nil) => Ok(matches!((a, b), (Value::Nil, Value::Nil))),
        (Value::List(_) | Value::Map(_), _) | (_, Value::List(_) | Value::Map(_)) => Err(format!(
            "{} and {} cannot be compared; use deepEqual for lists and maps",
            a.described(),
            b.described()
        )),
        _ if std::mem::discriminant(a) == std::mem::discriminant(b) => Ok(a == b),
        _ => Err(incompatible(a, b)),
    }
}

fn compare(args: &Arguments<'_>) -> Result<Option<Ordering>, String> {
    let (a, b) = (args.get(0), args.get(1));
    match (a, b) {
        (Value::Float(_), Value::Float(_)) => Ok(a.partial_cmp(b)),
        _ => match a.partial_cmp(b) {
            Some(order) => Ok(Some(order)),
            None if a.kind_name() == b.kind_name() => {
                Err(format!("{} has no order", a.described()))
            }
            None => Err(incompatible(a, b)),
        },
    }
}

fn incompatible(a: &Value, b: &Value) -> String {
    format!(
        "{} ({}) and {} ({}) cannot be compared: expected values of one type",
        a.described(),
        a.type_name(),
        b.described(),
        b.type_name()
    )
}

fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\0' => out.push('\u{fffd}'),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            other => out.push(other),
        }
    }
    out
}

fn js(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '"' => out.push_str("\\\""),
            '<' => out.push_str("\\u003C"),
            '>' => out.push_str("\\u003E"),
            '&' => out.push_str("\\u0026"),
            '=' => out.push_str("\\u003D"),
            other
                if (other as u32) < 0x20
                    || matches!(other, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}') =>
            {
                out.push_str(&format!("\\u{:04X}", other as u32));
            }
            other => out.push(other),
        }
    }
    out
}

/// Escapes text for the query of a URL.
pub(super) fn url_query(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            b' ' => out.push('+'),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}
