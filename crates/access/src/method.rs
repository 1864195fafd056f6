//! The methods of a hub.

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
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Returns the name on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }
        }
    };
}

methods! {
    HubInfo: "The hub's description of itself.",
    ListClips: "The list of clips.",
    GetClipManifest: "The manifest of a clip.",
    GetManifest: "The manifest of a clip, under the method's older name.",
    ListProviders: "The list of providers.",
    GetClipWeb: "A web file of a clip; the same right as for its pages under `/clips/`.",
    Invoke: "A call of a command.",
    InvokeStream: "A call of a command that receives input while it runs.",
    DataRead: "Reading a clip's data.",
    DataWrite: "Changing a clip's data.",
    Data: "Reading or changing a clip's data; the request names the operation.",
    GetLogs: "The log of a clip or of the hub.",
    AddClip: "Installing or upgrading a clip.",
    RemoveClip: "Removing a clip.",
    GetBindings: "The bindings of a clip.",
    SetBinding: "Binding a slot of a clip.",
    RemoveBinding: "Removing a binding of a clip.",
    ProviderStream: "Offering clips.",
    RuntimeStream: "Offering to install clips.",
}

impl Method {
    /// Returns the method with this name on the wire.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|method| method.as_str() == name)
    }

    /// Returns the method whose permission a data operation requires: [`Method::DataRead`] or [`Method::DataWrite`].
    pub fn of_operation(operation: &str) -> Result<Self, Failure> {
        match operation {
            "" | "read" | "list" | "stat" => Ok(Self::DataRead),
            "write" | "delete" => Ok(Self::DataWrite),
            other => Err(Failure::invalid(format!(
                "unknown data operation {other:?}; use read, list, stat, write or delete"
            ))),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
