//! Checks that tests wait for conditions and not for time.
//!
//! A fixed pause, which is a `sleep` outside a loop, must have a comment above it that gives the reason. An upper bound
//! of wall time must be at least ten seconds, because test machines are slow and busy; a paused clock is exempt.

/// The smallest upper bound of wall time in a test, in milliseconds.
const MIN_BOUND: u64 = 10_000;

/// Returns the places in the tests of a file that wait for a fixed time or expect a fast machine.
pub fn faults(name: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut faults = Vec::new();
    for index in first_test_line(name, &lines)..lines.len() {
        let line = lines[index].trim_start();
        if line.starts_with("//") {
            continue;
        }
        if has_paused_clock(&lines, index) {
            continue;
        }
        if is_pause(line) && !has_reason(&lines, index) && !is_in_loop(&lines, index) {
            faults.push(format!(
                "{name}:{}: a fixed pause without a reason above it; wait for a condition",
                index + 1
            ));
        }
        if upper_bound(line).is_some_and(|bound| bound < MIN_BOUND) {
            faults.push(format!(
                "{name}:{}: an upper bound of wall time below ten seconds",
                index + 1
            ));
        }
    }
    faults
}

/// Tests are whole files, except programs that tests start, or a module at the end of a file.
fn first_test_line(name: &str, lines: &[&str]) -> usize {
    let is_file = name.contains("/tests/") || name.ends_with("tests.rs");
    if is_file && !name.contains("/tests/bin/") {
        return 0;
    }
    let module = lines.windows(2).position(|pair| {
        pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
    });
    module.unwrap_or(lines.len())
}

fn is_pause(line: &str) -> bool {
    ["thread::sleep(", "time::sleep("]
        .iter()
        .any(|call| line.contains(call))
}

fn has_reason(lines: &[&str], index: usize) -> bool {
    index > 0 && lines[index - 1].trim_start().starts_with("//")
}

/// Reports whether a line is in a loop of its function, by the indentation that rustfmt gives it.
fn is_in_loop(lines: &[&str], index: usize) -> bool {
    let mut depth = indentation(lines[index]);
    let mut block_ends_head = false;
    for line in lines[..index].iter().rev() {
        let code = line.trim();
        let at = indentation(line);
        let encloses = at < depth || (block_ends_head && at == depth);
        if code.is_empty() || code.starts_with("//") || !encloses {
            continue;
        }
        depth = at;
        // The head of a block may have several lines, of which only the first names the block.
        block_ends_head = code.starts_with(['{', ')', ']', '}']);
        let is_loop = ["while ", "for "].iter().any(|word| code.starts_with(word));
        if is_loop || code.ends_with("loop {") {
            return true;
        }
        if code.contains("fn ") {
            return false;
        }
    }
    false
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the milliseconds below which a line expects elapsed time to be.
fn upper_bound(line: &str) -> Option<u64> {
    let (before, after) = line.split_once("elapsed() <")?;
    if ["while ", "if "]
        .iter()
        .any(|word| before.starts_with(word))
    {
        return None;
    }
    let (_, after) = after.split_once("Duration::from_")?;
    let (unit, after) = after.split_once('(')?;
    let (number, _) = after.split_once(')')?;
    let number: u64 = number.replace('_', "").parse().ok()?;
    match unit {
        "secs" => Some(number * 1000),
        "millis" => Some(number),
        "micros" | "nanos" => Some(0),
        _ => None,
    }
}

/// Reports whether the test around a line has a clock that stands still while there is work.
fn has_paused_clock(lines: &[&str], index: usize) -> bool {
    let attribute = lines[..index].iter().rev().find(|line| {
        let line = line.trim_start();
        line.starts_with("#[test]") || line.starts_with("#[tokio::test")
    });
    attribute.is_some_and(|attribute| attribute.contains("start_paused"))
}

#[cfg(test)]
mod tests {
    use super::faults;

    fn count(body: &str) -> usize {
        faults("crates/a/tests/b.rs", body).len()
    }

    #[test]
    fn a_fixed_pause_needs_a_reason() {
        let pause = "thread::sleep(Duration::from_millis(5));";
        assert_eq!(count(&format!("fn a() {{\n    {pause}\n}}\n")), 1);
        let reason = format!("fn a() {{\n    // Time to read too much.\n    {pause}\n}}\n");
        assert_eq!(count(&reason), 0);
        assert_eq!(count(&reason.replace("thread", "tokio::time")), 0);
    }

    #[test]
    fn a_loop_may_pause() {
        let pause = "tokio::time::sleep(Duration::from_millis(5)).await;";
        for head in [
            "while !done() {",
            "loop {",
            "let status = loop {",
            "for _ in 0..9 {",
            "while a()\n        && b()\n    {",
            "for a in [\n        1,\n    ] {",
        ] {
            let text = format!("fn a() {{\n    {head}\n        {pause}\n    }}\n}}\n");
            assert_eq!(count(&text), 0, "{text}");
            let text = format!("fn a() {{\n    {head}\n        b();\n    }}\n    {pause}\n}}\n");
            assert_eq!(count(&text), 1, "{text}");
        }
    }

    #[test]
    fn upper_bounds_are_at_least_ten_seconds() {
        let test = |bound: &str| format!("#[test]\nfn a() {{\n    {bound}\n}}\n");
        let short = test("assert!(begin.elapsed() < Duration::from_secs(9));");
        assert_eq!(count(&short), 1);
        assert_eq!(count(&short.replace("secs(9", "millis(9_999")), 1);
        assert_eq!(count(&short.replace('9', "10")), 0);
        assert_eq!(count(&short.replace("9)", "9), \"{kind}\"")), 1);
        assert_eq!(count(&short.replace('<', ">")), 0);
        assert_eq!(count(&short.replace("assert!(", "while ")), 0);
        let paused = short.replace("#[test]", "#[tokio::test(start_paused = true)]");
        assert_eq!(count(&paused), 0);
    }

    #[test]
    fn only_tests_are_checked() {
        let text = "fn a() {\n    thread::sleep(PAUSE);\n}\n";
        assert!(faults("crates/a/src/b.rs", text).is_empty());
        assert!(faults("crates/a/tests/bin/b.rs", text).is_empty());
        let module = format!("fn b() {{}}\n\n#[cfg(test)]\nmod tests {{\n{text}}}\n");
        assert_eq!(faults("crates/a/src/b.rs", &module).len(), 1);
        assert!(
            faults(
                "crates/a/src/b.rs",
                &module.replace("mod tests {", "use a;")
            )
            .is_empty()
        );
    }
}
