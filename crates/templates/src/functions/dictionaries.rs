//! Sprig's functions on dictionaries.

use std::collections::BTreeMap;

use super::{Arguments, Function, Outcome, Scope, Special, exactly, from};
use crate::print;
use crate::value::Value;

pub(super) const TABLE: &[Function] = &[
    from("dict", 0, dict),
    exactly("get", 2, |_, args| {
        Ok(args
            .map(0)?
            .get(args.text(1)?)
            .cloned()
            .unwrap_or_else(|| Value::text("")))
    })
    .shallow(),
    exactly("set", 3, set).shallow().with(Special::Update),
    exactly("unset", 2, |_, args| {
        let mut map = (**args.map(0)?).clone();
        map.remove(args.text(1)?);
        Ok(Value::map(map))
    })
    .shallow()
    .with(Special::Update),
    exactly("hasKey", 2, |_, args| {
        Ok(args.map(0)?.contains_key(args.text(1)?).into())
    })
    .shallow(),
    from("pluck", 1, pluck).shallow(),
    from("keys", 1, |_, args| {
        let mut keys = Vec::new();
        for index in 0..args.len() {
            keys.extend(args.map(index)?.keys().cloned());
        }
        Ok(Value::texts(keys))
    })
    .shallow(),
    exactly("values", 1, |_, args| {
        Ok(Value::list(args.map(0)?.values().cloned().collect()))
    })
    .shallow(),
    from("pick", 1, |_, args| filtered(args, true)).shallow(),
    from("omit", 1, |_, args| filtered(args, false)).shallow(),
    from("merge", 1, |_, args| merged(args, false)).with(Special::Update),
    from("mustMerge", 1, |_, args| merged(args, false)).with(Special::Update),
    from("mergeOverwrite", 1, |_, args| merged(args, true)).with(Special::Update),
    from("mustMergeOverwrite", 1, |_, args| merged(args, true)).with(Special::Update),
    from("dig", 3, dig).shallow(),
    exactly("deepCopy", 1, |_, args| Ok(args.get(0).clone())).shallow(),
    exactly("mustDeepCopy", 1, |_, args| Ok(args.get(0).clone())).shallow(),
    exactly("deepEqual", 2, |_, args| {
        Ok((args.get(0) == args.get(1)).into())
    }),
];

fn dict(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    Ok(Value::object(args.all().chunks(2).map(|pair| {
        let value = pair.get(1).cloned().unwrap_or_else(|| Value::text(""));
        (print::printed(&pair[0]), value)
    })))
}

fn set(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let mut map = (**args.map(0)?).clone();
    map.insert(args.text(1)?.to_owned(), args.get(2).clone());
    Ok(Value::map(map))
}

fn pluck(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let name = args.text(0)?;
    let mut found = Vec::new();
    for index in 1..args.len() {
        found.extend(args.map(index)?.get(name).cloned());
    }
    Ok(Value::list(found))
}

fn filtered(args: &Arguments<'_>, keep: bool) -> Outcome {
    let mut names = Vec::new();
    for index in 1..args.len() {
        names.push(args.text(index)?);
    }
    Ok(Value::object(
        args.map(0)?
            .iter()
            .filter(|(key, _)| names.contains(&key.as_str()) == keep)
            .map(|(key, value)| (key.clone(), value.clone())),
    ))
}

fn merged(args: &Arguments<'_>, overwrite: bool) -> Outcome {
    let mut result = (**args.map(0)?).clone();
    for index in 1..args.len() {
        merge_into(&mut result, args.map(index)?, overwrite);
    }
    Ok(Value::map(result))
}

fn merge_into(
    target: &mut BTreeMap<String, Value>,
    source: &BTreeMap<String, Value>,
    overwrite: bool,
) {
    for (key, value) in source {
        match (target.get(key), value) {
            (Some(Value::Map(inner)), Value::Map(other)) => {
                let mut inner = (**inner).clone();
                merge_into(&mut inner, other, overwrite);
                target.insert(key.clone(), Value::map(inner));
            }
            (Some(present), _) if present.is_true() && !overwrite => {}
            _ => {
                target.insert(key.clone(), value.clone());
            }
        }
    }
}

/// `dig "a" "b" default dict`: returns the value at that path, or the default.
fn dig(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let (path, default) = (args.len() - 2, args.get(args.len() - 2));
    let mut value = Value::Map(args.map(args.len() - 1)?.clone());
    for index in 0..path {
        value = match value.get(args.text(index)?) {
            Some(inner) => inner.clone(),
            None => return Ok(default.clone()),
        };
    }
    Ok(value)
}
