//! Groups of settings for their readers: plain values with the defaults filled in.

/// Automatic summaries of long conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compaction {
    /// Compact without a request.
    pub enabled: bool,
    /// Tokens reserved for the next answer.
    pub reserve_tokens: u64,
    /// Tokens of recent messages that stay unchanged.
    pub keep_recent_tokens: u64,
}

/// Summaries of branches that the user leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchSummary {
    /// Tokens reserved for the summary.
    pub reserve_tokens: u64,
    /// Neither prompt for a summary nor make one.
    pub skip_prompt: bool,
}

/// Repetition of failed requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    pub enabled: bool,
    pub max_retries: u64,
    /// The first delay; doubles each time.
    pub base_delay_ms: u64,
    /// A request fails if its server requests a longer delay.
    pub max_delay_ms: u64,
    /// Retries below the agent, in the HTTP layer.
    pub provider: ProviderRetry,
}

/// Repetition inside one request; absent values are the provider's own defaults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProviderRetry {
    /// Limit for one request.
    pub timeout_ms: Option<u64>,
    pub max_retries: Option<u64>,
}

/// The handling of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Images {
    /// Shrink large images.
    pub auto_resize: bool,
    /// Never send images.
    pub block_images: bool,
}
