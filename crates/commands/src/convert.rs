//! Converts the texts of a command line, an environment variable or a file to values.

use pinion_templates::Value;

use crate::dates::parse_date;
use crate::field::{Field, FieldType};
use crate::files::{self, Format};
use crate::tables;
use crate::world::World;

/// Converts one or several texts to a value.
pub(crate) fn value(
    kind: FieldType,
    choices: &[&str],
    texts: &[String],
    world: &mut World,
) -> Result<Value, String> {
    let last = texts.last().map_or("", String::as_str);
    match kind {
        FieldType::String | FieldType::Secret => Ok(Value::text(last)),
        FieldType::Int => int(last),
        FieldType::Float => float(last),
        FieldType::Bool => boolean(last).map(Value::Bool),
        FieldType::Date => match parse_date(last, &world.now) {
            Some(time) => Ok(Value::time(time)),
            None => Err(format!("{last:?} is not {}", kind.expected())),
        },
        FieldType::Choice => chosen(last, choices),
        FieldType::ChoiceList => each(texts, |text| chosen(text, choices)),
        FieldType::StringList => Ok(Value::texts(texts.iter().map(String::as_str))),
        FieldType::IntList => each(texts, int),
        FieldType::FloatList => each(texts, float),
        FieldType::KeyValue => key_value(texts, world),
        FieldType::StringFromFile => world.text(last).map(Value::String),
        FieldType::StringFromFiles => {
            let mut all = String::new();
            for name in texts {
                all.push_str(&world.text(name)?);
            }
            Ok(Value::text(all))
        }
        FieldType::StringListFromFile => lines(last, world).map(Value::list),
        FieldType::StringListFromFiles => joined(texts, |name| lines(name, world)),
        FieldType::ObjectFromFile => object(last, world),
        FieldType::ObjectListFromFile => objects(last, world).map(Value::list),
        FieldType::ObjectListFromFiles => joined(texts, |name| objects(name, world)),
        FieldType::File => files::record(world, last),
        FieldType::FileList => each(texts, |name| files::record(world, name)),
    }
}

/// Splits a written list, with or without brackets.
pub(crate) fn listed(text: &str) -> Vec<String> {
    let inner = text
        .trim()
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'));
    match inner {
        Some(inner) => tables::items(inner)
            .iter()
            .map(|item| item.trim().to_owned())
            .collect(),
        None => tables::items(text),
    }
}

/// Converts a default in a command file to a value. Files are not read: the text itself is the value.
pub(crate) fn default(field: &Field, json: &serde_json::Value) -> Result<Value, String> {
    let choices: Vec<&str> = field.choices.iter().map(String::as_str).collect();
    let wrong = || format!("{json} is not {}", field.kind.expected());
    let plain = |json: &serde_json::Value| match json {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Number(_) | serde_json::Value::Bool(_) => Some(json.to_string()),
        _ => None,
    };
    let text = || plain(json).ok_or_else(wrong);
    let texts = || match json {
        serde_json::Value::Array(items) => items
            .iter()
            .map(|item| plain(item).ok_or_else(wrong))
            .collect::<Result<Vec<String>, String>>(),
        other => plain(other).map(|text| vec![text]).ok_or_else(wrong),
    };
    match field.kind {
        FieldType::String
        | FieldType::Secret
        | FieldType::StringFromFile
        | FieldType::StringFromFiles
        | FieldType::File => text().map(Value::text),
        FieldType::Int => int(&text()?),
        FieldType::Float => float(&text()?),
        FieldType::Bool => match json {
            serde_json::Value::Bool(flag) => Ok(Value::Bool(*flag)),
            _ => boolean(&text()?).map(Value::Bool),
        },
        FieldType::Date => text().map(Value::text),
        FieldType::Choice => chosen(&text()?, &choices),
        FieldType::ChoiceList => each(&texts()?, |text| chosen(text, &choices)),
        FieldType::IntList => each(&texts()?, int),
        FieldType::FloatList => each(&texts()?, float),
        FieldType::StringList
        | FieldType::StringListFromFile
        | FieldType::StringListFromFiles
        | FieldType::FileList => texts().map(Value::texts),
        FieldType::KeyValue | FieldType::ObjectFromFile => match json {
            serde_json::Value::Object(_) => Ok(Value::from_json(json)),
            _ => Err(wrong()),
        },
        FieldType::ObjectListFromFile | FieldType::ObjectListFromFiles => match json {
            serde_json::Value::Array(items) if items.iter().all(serde_json::Value::is_object) => {
                Ok(Value::from_json(json))
            }
            _ => Err(wrong()),
        },
    }
}

/// Converts a default to a template value: resolves dates and reads file records.
pub(crate) fn default_value(
    field: &Field,
    json: &serde_json::Value,
    world: &mut World,
) -> Result<Value, String> {
    let plain = default(field, json)?;
    match (field.kind, &plain) {
        (FieldType::Date | FieldType::File, Value::String(text)) => {
            value(field.kind, &[], &[text.to_string()], world)
        }
        (FieldType::FileList, Value::List(list)) => {
            let names: Vec<String> = list
                .iter()
                .filter_map(|v| v.as_str().map(str::to_owned))
                .collect();
            value(field.kind, &[], &names, world)
        }
        _ => Ok(plain),
    }
}

fn int(text: &str) -> Result<Value, String> {
    text.trim()
        .parse()
        .map(Value::Int)
        .map_err(|_| format!("{text:?} is not a whole number"))
}

fn float(text: &str) -> Result<Value, String> {
    text.trim()
        .parse()
        .map(Value::Float)
        .map_err(|_| format!("{text:?} is not a number"))
}

pub(crate) fn boolean(text: &str) -> Result<bool, String> {
    match text.trim().to_lowercase().as_str() {
        "true" | "t" | "1" | "yes" | "y" | "on" => Ok(true),
        "false" | "f" | "0" | "no" | "n" | "off" => Ok(false),
        _ => Err(format!(
            "{text:?} is not true or false (on, off, yes and no work too)"
        )),
    }
}

fn chosen(text: &str, choices: &[&str]) -> Result<Value, String> {
    if choices.contains(&text) {
        return Ok(Value::text(text));
    }
    let shown: Vec<&str> = choices
        .iter()
        .copied()
        .filter(|choice| !choice.is_empty())
        .collect();
    let advice = match pinion_text::nearest(text, shown.iter().copied()) {
        Some(near) => format!("; did you mean {near:?}?"),
        None => String::new(),
    };
    Err(format!(
        "{text:?} is not one of {}{advice}",
        shown.join(", ")
    ))
}

fn each(
    texts: &[String],
    mut read: impl FnMut(&str) -> Result<Value, String>,
) -> Result<Value, String> {
    let values: Result<Vec<Value>, String> = texts.iter().map(|text| read(text)).collect();
    values.map(Value::list)
}

fn joined(
    names: &[String],
    mut read: impl FnMut(&str) -> Result<Vec<Value>, String>,
) -> Result<Value, String> {
    let mut all = Vec::new();
    for name in names {
        all.extend(read(name)?);
    }
    Ok(Value::list(all))
}

fn key_value(texts: &[String], world: &mut World) -> Result<Value, String> {
    let mut entries = Vec::new();
    for text in texts {
        if let Some(name) = text.strip_prefix('@') {
            match object(name, world)? {
                Value::Map(map) => entries.extend(map.iter().map(|(k, v)| (k.clone(), v.clone()))),
                other => return Err(format!("{} holds {other:?}", files::shown(name))),
            }
            continue;
        }
        let Some((key, value)) = text.split_once(['=', ':']) else {
            return Err(format!(
                "{text:?} is not a pair such as key=value or key:value"
            ));
        };
        entries.push((key.to_owned(), Value::text(value)));
    }
    Ok(Value::object(entries))
}

fn object(name: &str, world: &mut World) -> Result<Value, String> {
    match files::data(world, name)? {
        map @ Value::Map(_) => Ok(map),
        // A table with one row is one object.
        Value::List(list) if list.len() == 1 && matches!(list[0], Value::Map(_)) => {
            Ok(list[0].clone())
        }
        _ => Err(format!(
            "{} does not contain exactly one object",
            files::shown(name)
        )),
    }
}

fn objects(name: &str, world: &mut World) -> Result<Vec<Value>, String> {
    match files::data(world, name)? {
        Value::List(list) if list.iter().all(|item| matches!(item, Value::Map(_))) => {
            Ok(list.to_vec())
        }
        map @ Value::Map(_) => Ok(vec![map]),
        _ => Err(format!(
            "{} does not contain a list of objects",
            files::shown(name)
        )),
    }
}

fn lines(name: &str, world: &mut World) -> Result<Vec<Value>, String> {
    let text = world.text(name)?;
    match Format::of(name) {
        Format::Text => Ok(text.lines().map(Value::from).collect()),
        Format::Table(_) => Ok(text
            .lines()
            .skip(1)
            .filter(|line| !line.is_empty())
            .map(Value::from)
            .collect()),
        _ => match files::data(world, name)? {
            Value::List(list)
                if list
                    .iter()
                    .all(|item| !matches!(item, Value::List(_) | Value::Map(_))) =>
            {
                Ok(list
                    .iter()
                    .map(|item| Value::text(pinion_templates::printed(item)))
                    .collect())
            }
            _ => Err(format!(
                "{} does not contain a list of texts",
                files::shown(name)
            )),
        },
    }
}
