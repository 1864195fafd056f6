//! Compiles the declaration without an external compiler.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
    let descriptors = protox::compile(["echo/v1/echo.proto"], ["proto"])?;
    let set = out.join("descriptors.bin");
    std::fs::write(&set, prost::Message::encode_to_vec(&descriptors))?;
    connectrpc_build::Config::new()
        .descriptor_set(&set)
        .files(&["echo/v1/echo.proto"])
        .include_file("_connectrpc.rs")
        .compile()?;
    println!("cargo::rerun-if-changed=proto");
    Ok(())
}
