//! Sprig's functions on lists.

use super::{Arguments, Function, Outcome, Scope, check_comparisons, exactly, from};
use crate::value::Value;

pub(super) const TABLE: &[Function] = &[
    from("list", 0, |_, args| Ok(Value::list(args.all().to_vec()))).shallow(),
    from("tuple", 0, |_, args| Ok(Value::list(args.all().to_vec()))).shallow(),
    exactly("first", 1, |_, args| {
        Ok(args.items(0)?.first().cloned().unwrap_or_default())
    })
    .shallow(),
    exactly("mustFirst", 1, |_, args| {
        Ok(args.items(0)?.first().cloned().unwrap_or_default())
    })
    .shallow(),
    exactly("last", 1, |_, args| {
        Ok(args.items(0)?.last().cloned().unwrap_or_default())
    })
    .shallow(),
    exactly("mustLast", 1, |_, args| {
        Ok(args.items(0)?.last().cloned().unwrap_or_default())
    })
    .shallow(),
    exactly("rest", 1, |_, args| {
        Ok(Value::list(
            args.items(0)?.iter().skip(1).cloned().collect(),
        ))
    })
    .shallow(),
    exactly("mustRest", 1, |_, args| {
        Ok(Value::list(
            args.items(0)?.iter().skip(1).cloned().collect(),
        ))
    })
    .shallow(),
    exactly("initial", 1, initial).shallow(),
    exactly("mustInitial", 1, initial).shallow(),
    exactly("append", 2, append).shallow(),
    exactly("push", 2, append).shallow(),
    exactly("mustAppend", 2, append).shallow(),
    exactly("mustPush", 2, append).shallow(),
    exactly("prepend", 2, prepend).shallow(),
    exactly("mustPrepend", 2, prepend).shallow(),
    from("concat", 0, concat).shallow(),
    exactly("reverse", 1, |_, args| {
        Ok(Value::list(args.items(0)?.iter().rev().cloned().collect()))
    })
    .shallow(),
    exactly("mustReverse", 1, |_, args| {
        Ok(Value::list(args.items(0)?.iter().rev().cloned().collect()))
    })
    .shallow(),
    exactly("uniq", 1, uniq),
    exactly("mustUniq", 1, uniq),
    from("without", 1, without),
    from("mustWithout", 1, without),
    exactly("has", 2, has),
    exactly("mustHas", 2, has),
    exactly("compact", 1, compact).shallow(),
    exactly("mustCompact", 1, compact).shallow(),
    from("mustSlice", 1, super::builtin::slice).shallow(),
    exactly("chunk", 2, chunk).shallow(),
    exactly("mustChunk", 2, chunk).shallow(),
];

fn initial(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let items = args.items(0)?;
    Ok(Value::list(items[..items.len().saturating_sub(1)].to_vec()))
}

fn append(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let mut items = args.items(0)?.to_vec();
    items.push(args.get(1).clone());
    Ok(Value::list(items))
}

fn prepend(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let mut items = vec![args.get(1).clone()];
    items.extend_from_slice(args.items(0)?);
    Ok(Value::list(items))
}

fn concat(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let mut items = Vec::new();
    for index in 0..args.len() {
        items.extend_from_slice(args.items(index)?);
    }
    Ok(Value::list(items))
}

fn uniq(scope: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let items = args.items(0)?;
    check_comparisons(scope, args.get(0).extent().weight, items.len())?;
    let mut kept: Vec<Value> = Vec::new();
    for item in items {
        if !kept.contains(item) {
            kept.push(item.clone());
        }
    }
    Ok(Value::list(kept))
}

fn without(scope: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let items = args.items(0)?.iter();
    let dropped = args.from(1);
    check_comparisons(scope, args.get(0).extent().weight, dropped.len())?;
    Ok(Value::list(
        items
            .filter(|item| !dropped.contains(item))
            .cloned()
            .collect(),
    ))
}

fn has(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    Ok(args.items(1)?.contains(args.get(0)).into())
}

fn compact(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let items = args.items(0)?.iter();
    Ok(Value::list(
        items.filter(|item| item.is_true()).cloned().collect(),
    ))
}

fn chunk(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let size = args.count(0)?.max(1);
    let parts = args.items(1)?.chunks(size);
    Ok(Value::list(
        parts.map(|part| Value::list(part.to_vec())).collect(),
    ))
}
