//! How Markdown looks.

use super::*;

#[test]
fn code_is_copied_as_it_was_written() {
    let codes = code_blocks(
        "a\n\n```rust\nfn x() {\n\ty();\n}\n```\n\n- b\n\n  ~~~\n  c\n  ~~~\n\n    d\n",
    );
    assert_eq!(codes, ["fn x() {\n\ty();\n}\n", "c\n"]);
}
