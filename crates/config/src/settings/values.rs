//! Groups of settings as their readers want them: plain values, defaults filled in.

/// When and how much of a long conversation is summarised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compaction {
    /// Without being asked.
    pub enabled: bool,
    /// Tokens kept free for the next answer.
    pub reserve_tokens: u64,
    /// Tokens of recent messages that stay as they are.
    pub keep_recent_tokens: u64,
}

/// How a branch that is left gets summarised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchSummary {
    /// Tokens kept free for the summary.
    pub reserve_tokens: u64,
    /// Do not ask, do not summarise.
    pub skip_prompt: bool,
}

/// How failed requests are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Repeat at all.
    pub enabled: bool,
    /// How often.
    pub max_retries: u64,
    /// First pause; doubles each time.
    pub base_delay_ms: u64,
    /// A server that asks for a longer pause than this makes the request fail.
    pub max_delay_ms: u64,
    /// Below the agent, in the HTTP layer.
    pub provider: ProviderRetry,
}

/// Repetition inside one request; absent values are the provider's own defaults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProviderRetry {
    /// Limit for one request.
    pub timeout_ms: Option<u64>,
    /// How often a request is sent again.
    pub max_retries: Option<u64>,
}

/// What happens to images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Images {
    /// Shrink large ones.
    pub auto_resize: bool,
    /// Never send any.
    pub block_images: bool,
}
