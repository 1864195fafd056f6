//! Compiles the `.proto` files without an external compiler and writes the Rust types of their messages.
//!
//! The types are our own rather than a library's: all this crate does with them is protobuf's JSON form, and a
//! generator that knows only that gives encoders that write straight into a buffer, and a smaller program.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::panic,
    reason = "cargo reads stdout, and a broken declaration must stop the build"
)]

mod enums;
mod names;
mod rust;
mod schema;

use std::path::{Path, PathBuf};
use std::{env, fs};

use protox::Compiler;

/// A package, the file that declares it and the module its types go into.
struct Package {
    name: &'static str,
    file: &'static str,
    module: &'static str,
    about: &'static str,
}

const PACKAGES: [Package; 5] = [
    Package {
        name: "pinocchio.chatapp.v1",
        file: "pinocchio/chatapp/v1/chat.proto",
        module: "chat",
        about: "Events and timeline entities of a chat: `pinocchio.chatapp.v1`.",
    },
    Package {
        name: "pinocchio.chatapp.rpc.v1",
        file: "pinocchio/chatapp/rpc/v1/rpc.proto",
        module: "rpc",
        about: "Lines of the command runner: `pinocchio.chatapp.rpc.v1`.",
    },
    Package {
        name: "pinocchio.chatapp.frontendtools.v1",
        file: "pinocchio/chatapp/frontendtools/v1/frontend_tool.proto",
        module: "frontend_tools",
        about: "Tools that run in the client: `pinocchio.chatapp.frontendtools.v1`.",
    },
    Package {
        name: "pinocchio.chatapp.widgets.v1",
        file: "pinocchio/chatapp/widgets/v1/widget.proto",
        module: "widgets",
        about: "Widgets: `pinocchio.chatapp.widgets.v1`.",
    },
    Package {
        name: "sessionstream.v1",
        file: "sessionstream/v1/transport.proto",
        module: "sessionstream",
        about: "Sessions watched from afar: `sessionstream.v1`.",
    },
];

fn main() {
    let root =
        Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../proto");
    println!("cargo::rerun-if-changed={}", root.display());
    println!("cargo::rerun-if-changed=build");
    let mut compiler = Compiler::new([&root]).expect("the directory of declarations");
    compiler.include_source_info(true).include_imports(true);
    for package in &PACKAGES {
        if let Err(error) = compiler.open_file(package.file) {
            panic!("{}: {error:?}", package.file);
        }
    }
    let pool = compiler.descriptor_pool();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    let write =
        |name: &str, bytes: &[u8]| fs::write(out.join(name), bytes).expect("a writable OUT_DIR");
    write("messages.rs", rust::generate(&pool, &PACKAGES).as_bytes());
    write("schema.json", schema::generate(&pool, &PACKAGES).as_bytes());
    compiler.include_source_info(false);
    write("descriptors.bin", &compiler.encode_file_descriptor_set());
}
