//! Lists of models for people.

use pinion_message::Model;

/// Reports whether every word of `search` occurs in the model's `provider/id` or name.
pub fn matches_search(model: &Model, search: &str) -> bool {
    let name = format!("{}/{} {}", model.provider, model.id, model.name).to_lowercase();
    let search = search.to_lowercase();
    search.split_whitespace().all(|word| name.contains(word))
}

/// Returns models in columns, below a heading if `with_heading` is set and there are models.
pub fn model_table(models: &[&Model], with_heading: bool) -> String {
    let heading = [
        "provider", "model", "context", "max-out", "thinking", "images",
    ];
    let mut rows = Vec::new();
    if with_heading && !models.is_empty() {
        rows.push(heading.map(str::to_owned));
    }
    let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    rows.extend(models.iter().map(|model| {
        [
            model.provider.clone(),
            model.id.clone(),
            thousands(model.context_window),
            thousands(model.max_tokens),
            yes_no(model.reasoning),
            yes_no(model.takes_images()),
        ]
    }));
    pinion_text::columns(&rows)
}

fn thousands(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}K", tokens / 1_000),
        _ => format!("{:.1}M", tokens as f64 / 1e6).replace(".0M", "M"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_rounded_to_what_people_compare() {
        for (tokens, text) in [
            (999, "999"),
            (8_192, "8K"),
            (200_000, "200K"),
            (1_000_000, "1M"),
            (1_048_576, "1M"),
            (1_500_000, "1.5M"),
        ] {
            assert_eq!(thousands(tokens), text);
        }
    }
}
