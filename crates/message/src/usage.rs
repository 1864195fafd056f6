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
    /// Answer tokens spent on reasoning, included in `output`; absent if the API does not report them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-since" = "modern"))]
    pub reasoning: Option<u64>,
    /// All tokens, as the provider counts them.
    pub total_tokens: u64,
    /// The cost in USD.
    pub cost: Cost,
    /// Tokens of `cache_write` that stay in the cache for an hour; absent if the API does not report them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-since" = "modern"))]
    pub cache_write_1h: Option<u64>,
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
    /// The provider reported `total`; absent if nothing was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-since" = "modern"))]
    pub total_from_provider: Option<bool>,
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
        // An hour in the cache is charged at twice the rate of input.
        let hour = self
            .cache_write_1h
            .unwrap_or_default()
            .min(self.cache_write);
        self.cost.cache_write = part(rates.cache_write, self.cache_write - hour);
        if hour > 0 {
            self.cost.cache_write += part(2.0 * rates.input, hour);
        }
        self.cost.total =
            self.cost.input + self.cost.output + self.cost.cache_read + self.cost.cache_write;
        self.cost.total_from_provider = Some(false);
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
        self.reasoning = sum_of_known(self.reasoning, other.reasoning);
        self.cache_write_1h = sum_of_known(self.cache_write_1h, other.cache_write_1h);
        let reported = |cost: &Cost| cost.total_from_provider;
        self.cost.total_from_provider = match (reported(&self.cost), reported(&other.cost)) {
            (Some(left), Some(right)) => Some(left && right),
            (known, None) | (None, known) => known,
        };
    }

    /// Returns the usage without the members that only newer sessions have.
    pub fn without_details(mut self) -> Self {
        self.reasoning = None;
        self.cache_write_1h = None;
        self.cost.total_from_provider = None;
        self
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

/// Adds two counts of which either may be absent.
fn sum_of_known(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.saturating_add(right)),
        (known, None) | (None, known) => known,
    }
}

/// Adds counts. They come from servers and files and may be of any size, so the sum saturates.
fn sum<const N: usize>(counts: [u64; N]) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}
