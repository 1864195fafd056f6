//! Changes of extensions to their environment reach the session, and nothing beyond it.

use super::Hostile;

#[test]
fn what_an_extension_sets_in_its_environment_reaches_commands() {
    let mut hostile = Hostile::new(
        r#"process.env.GREETING = "hello from the extension"; delete process.env.HOME;"#,
    );
    let command = r#"{"command":"echo \"$GREETING ${HOME-no home}\""}"#;
    let messages = hostile.run(&format!("CALL bash {command}"));
    let text = format!("{messages:?}");
    assert!(text.contains("hello from the extension no home"), "{text}");
    hostile.goes_on();
}

#[test]
fn without_the_built_in_tools_those_of_extensions_stay() {
    let body = r#"tool(pi, "mine", async () => ({ content: text("it ran") }));"#;
    let mut hostile = Hostile::with(body, &["--no-builtin-tools"]);
    assert_eq!(hostile.call("mine")["content"][0]["text"], "it ran");
    let refused = hostile.call("bash");
    assert_eq!(refused["isError"], true, "{refused}");
    hostile.goes_on();
}
