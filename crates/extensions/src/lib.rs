//! TypeScript extensions in an embedded JavaScript engine.
