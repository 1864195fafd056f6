//! Tokens and cost of one request, and their sums.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ModelCost;

/// Tokens and cost of one request. `input` never contains cached tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Prompt tokens that were neither read from nor written to a cache.
    pub input: u64,
    /// Answer tokens, reasoning included.
    pub output: u64,
    /// Prompt tokens read from a cache.
    pub cache_read: u64,
    /// Prompt tokens written to a cache.
    pub cache_write: u64,
    /// All tokens, as the provider counts them.
    pub total_tokens: u64,
    /// The cost in USD.
    pub cost: Cost,
}

/// USD, per kind of token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// Fresh prompt tokens.
    #[schemars(range(min = 0))]
    pub input: f64,
    /// Answer tokens.
    #[schemars(range(min = 0))]
    pub output: f64,
    /// Tokens read from a cache.
    #[schemars(range(min = 0))]
    pub cache_read: f64,
    /// Tokens written to a cache.
    #[schemars(range(min = 0))]
    pub cache_write: f64,
    /// The sum of the four.
    #[schemars(range(min = 0))]
    pub total: f64,
}

impl Usage {
    /// Sets `cost` from the model's rates.
    ///
    /// The order of operations (divide first, then multiply, then add left to right) is pi's, so
    /// that the numbers agree to the last bit.
    pub fn price(&mut self, rates: &ModelCost) {
        let rates = rates.for_prompt(sum([self.input, self.cache_read, self.cache_write]));
        let part = |rate: f64, tokens: u64| (rate / 1_000_000.0) * tokens as f64;
        self.cost.input = part(rates.input, self.input);
        self.cost.output = part(rates.output, self.output);
        self.cost.cache_read = part(rates.cache_read, self.cache_read);
        self.cost.cache_write = part(rates.cache_write, self.cache_write);
        self.cost.total =
            self.cost.input + self.cost.output + self.cost.cache_read + self.cost.cache_write;
    }

    /// Adds the tokens and cost of another request.
    pub fn add(&mut self, other: &Self) {
        for (total, more) in [
            (&mut self.input, other.input),
            (&mut self.output, other.output),
            (&mut self.cache_read, other.cache_read),
            (&mut self.cache_write, other.cache_write),
            (&mut self.total_tokens, other.total_tokens),
        ] {
            *total = total.saturating_add(more);
        }
        self.cost.input += other.cost.input;
        self.cost.output += other.cost.output;
        self.cost.cache_read += other.cost.cache_read;
        self.cost.cache_write += other.cost.cache_write;
        self.cost.total += other.cost.total;
    }

    /// Returns the size of the context after this request, in tokens.
    pub fn context_tokens(&self) -> u64 {
        if self.total_tokens > 0 {
            self.total_tokens
        } else {
            sum([self.input, self.output, self.cache_read, self.cache_write])
        }
    }
}

/// Adds counts. They come from servers and files and may be of any size, so the sum saturates.
fn sum<const N: usize>(counts: [u64; N]) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}
