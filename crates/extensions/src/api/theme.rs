//! Chooses the theme that extensions paint with and its number of colours.

use serde_json::{Value, json};

/// Returns `{name, mode}`: the theme from the settings, or one that suits the terminal.
pub(super) fn choose(named: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Value {
    let suggested = if has_light_background(&variable) {
        "light"
    } else {
        "dark"
    };
    let mode = if has_true_colour(&variable) {
        "truecolor"
    } else {
        "256color"
    };
    json!({"name": named.unwrap_or(suggested), "mode": mode})
}

fn has_light_background(variable: &impl Fn(&str) -> Option<String>) -> bool {
    let colours = variable("COLORFGBG").unwrap_or_default();
    let background = colours
        .rsplit(';')
        .next()
        .and_then(|code| code.parse().ok());
    background.is_some_and(|code: u32| code >= 8)
}

fn has_true_colour(variable: &impl Fn(&str) -> Option<String>) -> bool {
    let promised = variable("COLORTERM");
    if matches!(promised.as_deref(), Some("truecolor" | "24bit")) {
        return true;
    }
    if variable("WT_SESSION").is_some() {
        return true;
    }
    let terminal = variable("TERM").unwrap_or_default();
    let plain = matches!(terminal.as_str(), "" | "dumb" | "linux" | "screen")
        || terminal.starts_with("screen-")
        || terminal.starts_with("screen.");
    !plain && variable("TERM_PROGRAM").as_deref() != Some("Apple_Terminal")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)]) -> (String, String) {
        let theme = choose(None, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        });
        let text = |member: &str| theme[member].as_str().unwrap_or_default().to_owned();
        (text("name"), text("mode"))
    }

    #[test]
    fn without_a_terminal_it_is_dark_with_256_colours() {
        assert_eq!(chosen(&[]), ("dark".into(), "256color".into()));
    }

    #[test]
    fn variables_of_the_terminal_choose_theme_and_colours() {
        let mode = |variables: &[(&str, &str)]| chosen(variables).1;
        assert_eq!(mode(&[("COLORTERM", "24bit")]), "truecolor");
        assert_eq!(mode(&[("TERM", "xterm")]), "truecolor");
        assert_eq!(mode(&[("TERM", "screen-256color")]), "256color");
        let apple = [("TERM", "xterm"), ("TERM_PROGRAM", "Apple_Terminal")];
        assert_eq!(mode(&apple), "256color");
        assert_eq!(chosen(&[("COLORFGBG", "0;15")]).0, "light");
        assert_eq!(chosen(&[("COLORFGBG", "15;0")]).0, "dark");
    }
}
