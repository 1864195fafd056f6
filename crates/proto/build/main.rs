//! Compiles the `.proto` files without an external compiler and generates the Rust types of their
//! messages.
//!
//! The generator is written for pinion instead of taken from a library: because it covers only what
//! these protocols need, its encoders write directly into a buffer, its readers copy nothing, and
//! the program is smaller.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::panic,
    reason = "cargo reads stdout, and a broken declaration must stop the build"
)]

mod binary;
mod enums;
mod listing;
mod names;
mod rust;
mod schema;

use std::path::{Path, PathBuf};
use std::{env, fs};

use protox::Compiler;

/// A package, the file that declares it, and the module of its types.
struct Package {
    name: &'static str,
    file: &'static str,
    module: &'static str,
    about: &'static str,
    forms: Forms,
}

/// The encodings of a package's messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Forms {
    /// As JSON, also in fields of type `Any`.
    Json,
    /// As JSON and in binary form.
    JsonAndBinary,
}

const PACKAGES: [Package; 7] = [
    Package {
        name: "pinocchio.chatapp.v1",
        file: "pinocchio/chatapp/v1/chat.proto",
        module: "chat",
        about: "Events and timeline entities of a chat: `pinocchio.chatapp.v1`.",
        forms: Forms::Json,
    },
    Package {
        name: "pinocchio.chatapp.rpc.v1",
        file: "pinocchio/chatapp/rpc/v1/rpc.proto",
        module: "rpc",
        about: "Lines of the command runner: `pinocchio.chatapp.rpc.v1`.",
        forms: Forms::Json,
    },
    Package {
        name: "pinocchio.chatapp.frontendtools.v1",
        file: "pinocchio/chatapp/frontendtools/v1/frontend_tool.proto",
        module: "frontend_tools",
        about: "Tools that run in the client: `pinocchio.chatapp.frontendtools.v1`.",
        forms: Forms::Json,
    },
    Package {
        name: "pinocchio.chatapp.widgets.v1",
        file: "pinocchio/chatapp/widgets/v1/widget.proto",
        module: "widgets",
        about: "Widgets: `pinocchio.chatapp.widgets.v1`.",
        forms: Forms::Json,
    },
    Package {
        name: "sessionstream.v1",
        file: "sessionstream/v1/transport.proto",
        module: "sessionstream",
        about: "Sessions watched from afar: `sessionstream.v1`.",
        forms: Forms::Json,
    },
    Package {
        name: "pinix.v2",
        file: "pinix/v2/hub.proto",
        module: "hub",
        about: "The hub, its clients, providers and runtimes: `pinix.v2`.\n\nReading JSON leniently, requests may say `alias` or \
                `clip` for `clipName`, and a payload that is not a text in base64 is taken as the JSON it is.",
        forms: Forms::JsonAndBinary,
    },
    Package {
        name: "pinion.cluster.v1",
        file: "pinion/cluster/v1/cluster.proto",
        module: "cluster",
        about: "Messages between the hubs of a cluster: `pinion.cluster.v1`.",
        forms: Forms::JsonAndBinary,
    },
];

fn main() {
    let root =
        Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../proto");
    println!("cargo::rerun-if-changed={}", root.display());
    println!("cargo::rerun-if-changed=build");
    let compiler = compile(&root, &PACKAGES);
    let pool = compiler.descriptor_pool();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    let write =
        |name: &str, bytes: &[u8]| fs::write(out.join(name), bytes).expect("a writable OUT_DIR");
    write("messages.rs", rust::generate(&pool, &PACKAGES).as_bytes());
    let schema = |forms| schema::generate(&pool, PACKAGES.iter().filter(|it| it.forms == forms));
    write("schema.json", schema(Forms::Json).as_bytes());
    write("hub.json", schema(Forms::JsonAndBinary).as_bytes());
    let hub = pool
        .get_file_by_name("pinix/v2/hub.proto")
        .expect("a compiled file");
    write("hub.txt", listing::generate(&hub).as_bytes());
    write("hub_rows.rs", binary::rows(&pool).as_bytes());
    write("descriptors.bin", &descriptors(&root, Forms::Json));
    write("hub.bin", &descriptors(&root, Forms::JsonAndBinary));
}

fn compile<'a>(root: &Path, packages: impl IntoIterator<Item = &'a Package>) -> Compiler {
    let mut compiler = Compiler::new([root]).expect("the directory of declarations");
    compiler.include_source_info(true).include_imports(true);
    for package in packages {
        if let Err(error) = compiler.open_file(package.file) {
            panic!("{}: {error:?}", package.file);
        }
    }
    compiler
}

/// The declarations of the packages with these forms, and what they refer to.
fn descriptors(root: &Path, forms: Forms) -> Vec<u8> {
    let mut compiler = compile(root, PACKAGES.iter().filter(|it| it.forms == forms));
    compiler.include_source_info(false);
    compiler.encode_file_descriptor_set()
}
