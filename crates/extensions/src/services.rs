//! What native operations may ask of the program around the engine.

/// The program as extensions see it. Every method is called on the thread of the engine and must not
/// wait for it.
pub trait Services: Send + Sync {
    /// Ends the program as `process.exit` asks, once everything written is flushed.
    fn exit(&self, code: i32);
}

/// A program that offers nothing: for trying scripts on their own.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoServices;

impl Services for NoServices {
    fn exit(&self, _code: i32) {}
}
