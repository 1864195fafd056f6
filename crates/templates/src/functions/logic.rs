//! Sprig's functions that choose between values and report their types.

use super::{Arguments, Function, Outcome, Scope, between, exactly, from, text_value};
use crate::value::Value;

pub(super) const TABLE: &[Function] = &[
    between("default", 1, 2, |_, args| {
        Ok(if args.len() > 1 && args.get(1).is_true() {
            args.get(1)
        } else {
            args.get(0)
        }
        .clone())
    })
    .shallow(),
    exactly("empty", 1, |_, args| Ok((!args.get(0).is_true()).into())).shallow(),
    from("coalesce", 0, |_, args| {
        Ok(args
            .all()
            .iter()
            .find(|value| value.is_true())
            .cloned()
            .unwrap_or_default())
    })
    .shallow(),
    from("all", 0, |_, args| {
        Ok(args.all().iter().all(Value::is_true).into())
    })
    .shallow(),
    from("any", 0, |_, args| {
        Ok(args.all().iter().any(Value::is_true).into())
    })
    .shallow(),
    exactly("ternary", 3, |_, args| match args.get(2) {
        Value::Bool(flag) => Ok(args.get(usize::from(!*flag)).clone()),
        _ => Err(args.wrong(2, "true or false")),
    })
    .shallow(),
    exactly("fail", 1, |_, args| Err(args.text(0)?.to_owned())),
    exactly("typeOf", 1, |_, args| text_value(args.get(0).type_name())).shallow(),
    exactly("kindOf", 1, |_, args| text_value(args.get(0).kind_name())).shallow(),
    exactly("typeIs", 2, |_, args| {
        Ok((args.text(0)? == args.get(1).type_name()).into())
    })
    .shallow(),
    exactly("typeIsLike", 2, type_is_like).shallow(),
    exactly("kindIs", 2, |_, args| {
        Ok((args.text(0)? == args.get(1).kind_name()).into())
    })
    .shallow(),
];

fn type_is_like(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let wanted = args.text(0)?;
    let actual = args.get(1).type_name();
    Ok((wanted == actual || wanted.strip_prefix('*') == Some(actual)).into())
}
