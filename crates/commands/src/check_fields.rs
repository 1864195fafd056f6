//! Checks the fields of a command.

use crate::built_in::BuiltIn;
use crate::command::Command;
use crate::error::CommandError;
use crate::field::{Field, FieldType};

/// Rejects fields that a command line cannot set.
pub(crate) fn check(command: &Command, built_ins: &[BuiltIn]) -> Result<(), CommandError> {
    let place = || command.origin.name.clone();
    let bad = |field: &Field, reason: &str| CommandError::BadField {
        place: place(),
        field: field.name.clone(),
        reason: reason.to_owned(),
    };
    let mut names: Vec<String> = Vec::new();
    let mut letters: Vec<char> = Vec::new();
    for field in command.fields() {
        let option = field.option();
        if let Some(known) = built_ins.iter().find(|known| known.name == option) {
            return Err(clash(command, field, format!("--{}", known.name)));
        }
        if let Some(letter) = field.short
            && let Some(known) = built_ins.iter().find(|known| known.short == Some(letter))
        {
            return Err(clash(
                command,
                field,
                format!("-{letter} (--{})", known.name),
            ));
        }
        if names.contains(&option) {
            return Err(bad(field, "occurs twice"));
        }
        if field.short.is_some_and(|letter| letters.contains(&letter)) {
            return Err(bad(field, "has the `shortFlag` of another field"));
        }
        if option.starts_with('-') || option.contains(['=', ' ', '\t', '\n']) {
            return Err(bad(field, "has a name that cannot be an option"));
        }
        if matches!(field.kind, FieldType::Choice | FieldType::ChoiceList)
            && field.choices.is_empty()
        {
            return Err(bad(field, "has no `choices`"));
        }
        names.push(option);
        letters.extend(field.short);
        if let Some(default) = &field.default {
            crate::convert::default(field, default).map_err(|reason| {
                bad(field, &format!("has a default that is invalid: {reason}"))
            })?;
        }
    }
    let mut optional: Option<&str> = None;
    for (index, argument) in command.arguments.iter().enumerate() {
        if argument.required {
            if let Some(earlier) = optional {
                return Err(bad(
                    argument,
                    &format!("is required, but `{earlier}` before it is not"),
                ));
            }
        } else {
            optional = Some(&argument.name);
        }
        if argument.kind.is_list() && index + 1 < command.arguments.len() {
            return Err(bad(argument, "is a list and must be the last argument"));
        }
    }
    Ok(())
}

fn clash(command: &Command, field: &Field, option: String) -> CommandError {
    CommandError::Clash {
        place: command.origin.name.clone(),
        field: field.name.clone(),
        option,
    }
}
