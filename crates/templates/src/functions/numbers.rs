//! Sprig's functions on numbers.

use super::conversion::{to_float, to_int};
use super::{Arguments, Function, Outcome, Scope, between, check_items, exactly, from, text_value};
use crate::value::Value;

pub(super) const TABLE: &[Function] = &[
    exactly("abs", 1, |_, args| {
        Ok(to_int(args.get(0)).saturating_abs().into())
    }),
    exactly("absf", 1, |_, args| Ok(to_float(args.get(0)).abs().into())),
    exactly("add1", 1, |_, args| {
        Ok(to_int(args.get(0)).wrapping_add(1).into())
    }),
    exactly("mod", 2, |_, args| {
        match to_int(args.get(0)).checked_rem(to_int(args.get(1))) {
            Some(rest) => Ok(rest.into()),
            None => Err("the second number is 0".to_owned()),
        }
    }),
    from("max", 1, |_, args| fold_int(args, i64::max)),
    from("min", 1, |_, args| fold_int(args, i64::min)),
    from("biggest", 1, |_, args| fold_int(args, i64::max)),
    from("maxf", 1, |_, args| fold_float(args, f64::max)),
    from("minf", 1, |_, args| fold_float(args, f64::min)),
    from("addf", 1, |_, args| fold_float(args, |a, b| a + b)),
    exactly("add1f", 1, |_, args| {
        Ok((to_float(args.get(0)) + 1.0).into())
    }),
    from("subf", 1, |_, args| fold_float(args, |a, b| a - b)),
    from("mulf", 1, |_, args| fold_float(args, |a, b| a * b)),
    from("divf", 1, |_, args| fold_float(args, |a, b| a / b)),
    exactly("floor", 1, |_, args| {
        Ok(to_float(args.get(0)).floor().into())
    }),
    exactly("ceil", 1, |_, args| Ok(to_float(args.get(0)).ceil().into())),
    between("round", 2, 3, round),
    exactly("until", 1, |_, args| {
        stepped(
            0,
            to_int(args.get(0)),
            if to_int(args.get(0)) < 0 { -1 } else { 1 },
        )
    }),
    exactly("untilStep", 3, |_, args| {
        stepped(
            to_int(args.get(0)),
            to_int(args.get(1)),
            to_int(args.get(2)),
        )
    }),
    from("seq", 0, seq),
    exactly("randInt", 2, |scope, args| {
        let (least, bound) = (to_int(args.get(0)), to_int(args.get(1)));
        if bound <= least {
            return Err("the second number must be larger than the first".to_owned());
        }
        let width = bound.abs_diff(least);
        Ok(least.wrapping_add(scope.random.below(width) as i64).into())
    }),
];

fn fold_int(args: &Arguments<'_>, combine: fn(i64, i64) -> i64) -> Outcome {
    let numbers = args.all().iter().map(to_int);
    Ok(numbers.reduce(combine).unwrap_or(0).into())
}

fn fold_float(args: &Arguments<'_>, combine: fn(f64, f64) -> f64) -> Outcome {
    let numbers = args.all().iter().map(to_float);
    Ok(numbers.reduce(combine).unwrap_or(0.0).into())
}

fn round(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let (number, digits) = (to_float(args.get(0)), args.int(1)?);
    let up_from = if args.len() > 2 {
        to_float(args.get(2))
    } else {
        0.5
    };
    let scale = 10_f64.powi(i32::try_from(digits).unwrap_or(0));
    let scaled = number * scale;
    let fraction = (scaled % 1.0).abs();
    let rounded = match (fraction >= up_from, number > 0.0) {
        (true, true) | (false, false) => scaled.ceil(),
        (true, false) | (false, true) => scaled.floor(),
    };
    Ok((rounded / scale).into())
}

fn stepped(start: i64, end: i64, step: i64) -> Outcome {
    if step == 0 {
        return Ok(Value::list(Vec::new()));
    }
    // The distance between two numbers can be twice the range of a number.
    let distance = i128::from(end) - i128::from(start);
    let step = i128::from(step);
    let count = if (distance > 0) == (step > 0) {
        distance.unsigned_abs().div_ceil(step.unsigned_abs())
    } else {
        0
    };
    let count = check_items(usize::try_from(count).unwrap_or(usize::MAX))?;
    let number = |index| i64::try_from(i128::from(start) + index as i128 * step).unwrap_or(end);
    Ok(Value::list(
        (0..count).map(|index| number(index).into()).collect(),
    ))
}

/// `seq 3` is `1 2 3`, `seq 2 4` is `2 3 4`, `seq 0 2 6` is `0 2 4 6`.
fn seq(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let number = |index| to_int(args.get(index));
    let downward = |start: i64, end: i64| if end < start { -1 } else { 1 };
    let (start, step, end) = match args.len() {
        0 => return text_value(""),
        1 => (1, downward(1, number(0)), number(0)),
        2 => (number(0), downward(number(0), number(1)), number(1)),
        3 => (number(0), number(1), number(2)),
        _ => return text_value(""),
    };
    if step == 0 || (end > start) != (step > 0) && end != start {
        return text_value("");
    }
    let Value::List(list) = stepped(start, end.saturating_add(step.signum()), step)? else {
        return text_value("");
    };
    let shown: Vec<String> = list.iter().map(crate::print::printed).collect();
    text_value(shown.join(" "))
}
