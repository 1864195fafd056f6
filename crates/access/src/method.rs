//! Everything that can be asked of a hub.

use std::fmt;

use pinion_status::Failure;

macro_rules! methods {
    ($($name:ident: $about:literal,)+) => {
        /// A method of the hub's service. The names are those on the wire.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Method {
            $(#[doc = $about] $name,)+
        }

        impl Method {
            /// Every method there is.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Its name on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }
        }
    };
}

methods! {
    HubInfo: "What the hub says about itself.",
    ListClips: "The clips there are.",
    GetClipManifest: "What a clip says about itself.",
    GetManifest: "The same, under its older name.",
    ListProviders: "Who offers clips.",
    GetClipWeb: "A web file of a clip; the same right as for its pages under `/clips/`.",
    Invoke: "A call of a command.",
    InvokeStream: "A call of a command that is fed while it runs.",
    DataRead: "Reading what a clip keeps.",
    DataWrite: "Changing what a clip keeps.",
    Data: "Either, by the operation it names.",
    GetLogs: "What a clip, or the hub itself, has logged.",
    AddClip: "Installing or upgrading a clip.",
    RemoveClip: "Removing a clip.",
    GetBindings: "What the slots of a clip are bound to.",
    SetBinding: "Binding a slot of a clip.",
    RemoveBinding: "Freeing a slot of a clip.",
    ProviderStream: "Offering clips.",
    RuntimeStream: "Offering to install clips.",
}

impl Method {
    /// The method with this name on the wire.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|method| method.as_str() == name)
    }

    /// The method whose rights an operation on data needs: [`Method::DataRead`] or [`Method::DataWrite`].
    pub fn of_operation(operation: &str) -> Result<Self, Failure> {
        match operation {
            "" | "read" | "list" | "stat" => Ok(Self::DataRead),
            "write" | "delete" => Ok(Self::DataWrite),
            other => Err(Failure::invalid(format!(
                "unknown data operation {other:?}: there are read, list, stat, write and delete"
            ))),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
