//! The built-in options, from the table of the command line.

use pinion_cli::tables::run_command::{FileOption, OPTIONS, OptionType, YIELDING};

use crate::built_in::BuiltIn;
use crate::field::FieldType;

/// The options of every command, in the order of help pages.
pub const BUILT_INS: &[BuiltIn] = &built_ins(OPTIONS);

/// Options of pinion for which a command's own field of the same name takes precedence.
pub const YIELDING_BUILT_INS: &[BuiltIn] = &built_ins(YIELDING);

const fn built_ins<const COUNT: usize>(options: [FileOption; COUNT]) -> [BuiltIn; COUNT] {
    let mut built_ins = [built_in(&options[0]); COUNT];
    let mut index = 1;
    while index < COUNT {
        built_ins[index] = built_in(&options[index]);
        index += 1;
    }
    built_ins
}

const fn built_in(option: &FileOption) -> BuiltIn {
    let choices: &'static [&'static str] = match option.kind {
        OptionType::Choice(choices) => choices,
        _ => &[],
    };
    let short = match option.flag.others {
        [short] => Some(short.as_bytes()[1] as char),
        _ => None,
    };
    BuiltIn {
        // Without the two dashes.
        name: option.flag.name.split_at(2).1,
        short,
        kind: match option.kind {
            OptionType::Bool => FieldType::Bool,
            OptionType::Text => FieldType::String,
            OptionType::Secret => FieldType::Secret,
            OptionType::Int => FieldType::Int,
            OptionType::Float => FieldType::Float,
            OptionType::Texts => FieldType::StringList,
            OptionType::Choice(_) => FieldType::Choice,
            OptionType::Pairs => FieldType::KeyValue,
        },
        choices,
        default: option.default,
        group: option.group,
        help: option.flag.help,
        claims_stdin: option.claims_stdin,
    }
}
