//! The macro that makes types from a table of commands.

/// Makes `Name` from rows `Variant "word" { member: Type, … } -> Data;`. Members that may be missing are options. A
/// command without data has no arrow.
macro_rules! commands {
    ($(
        $(#[$about:meta])*
        $name:ident $word:literal { $( $(#[$note:meta])* $member:ident : $kind:ty ),* $(,)? }
        $(-> $data:ty)? ;
    )*) => {
        /// The name of a command.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(clippy::enum_variant_names, reason = "named as on the wire")]
        pub(crate) enum Name {
            $($name),*
        }

        impl Name {
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns its word on the wire.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word),*
                }
            }

            /// Finds the command with this word.
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Returns the schema of its members without `type` and `id`.
            pub fn members(self, generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                use schemars::JsonSchema;
                match self {
                    $(Self::$name => members::$name::json_schema(generator)),*
                }
            }

            /// Returns the schema of the data in its response; `None` if it has none.
            #[allow(dead_code, unused_variables, reason = "early commands are not answered")]
            pub fn data(self, generator: &mut schemars::SchemaGenerator) -> Option<schemars::Schema> {
                match self {
                    $(Self::$name => {
                        let data: Option<schemars::Schema> = None;
                        $(let data = Some(generator.subschema_for::<$data>());)?
                        data
                    })*
                }
            }
        }

        #[allow(dead_code, reason = "for the schema: the decoder reads members one by one")]
        mod members {
            #[allow(unused_imports)]
            use super::*;

            $(
                $(#[$about])*
                #[derive(schemars::JsonSchema)]
                #[schemars(rename_all = "camelCase")]
                pub struct $name {
                    $( $(#[$note])* $member: $kind ),*
                }
            )*
        }
    };
}

pub(crate) use commands;
