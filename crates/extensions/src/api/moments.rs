//! Maps the events of extensions to moments of a session.

use pinion_agent::Moment;

/// Returns the moments that the engine must report so that handlers of `event` run.
///
/// Some events need more than their own moment: turns are counted from the start of a run, and a streamed answer is
/// assembled from its start.
pub(super) fn moments(event: &str) -> &'static [Moment] {
    match event {
        "agent_start" => &[Moment::AgentStart],
        "agent_end" => &[Moment::AgentEnd],
        "turn_start" | "turn_end" => &[Moment::AgentStart, Moment::TurnStart, Moment::TurnEnd],
        "message_start" => &[Moment::MessageStart],
        "message_update" => &[Moment::MessageStart, Moment::MessageUpdate],
        "message_end" => &[Moment::MessageEnd],
        "tool_execution_start" => &[Moment::ToolStart],
        "tool_execution_update" => &[Moment::ToolUpdate],
        "tool_execution_end" => &[Moment::ToolEnd],
        "input" => &[Moment::Input],
        "user_bash" => &[Moment::UserBash],
        "before_agent_start" => &[Moment::BeforeRun],
        "context" | "context_with_system" => &[Moment::Context],
        "before_provider_headers" => &[Moment::Headers],
        "provider_stream_event" => &[Moment::ProviderEvent],
        "agent_before_settle" => &[Moment::BeforeSettle],
        "agent_settled" => &[Moment::Settled],
        "session_info_changed" => &[Moment::Renamed],
        "session_compact_failed" => &[Moment::CompactionFailed],
        "before_provider_request" => &[Moment::Payload],
        "after_provider_response" => &[Moment::Response],
        "tool_call" => &[Moment::ToolCall],
        "tool_result" => &[Moment::ToolResult],
        "session_before_switch" | "session_before_fork" => &[Moment::BeforeReplace],
        "session_before_compact" => &[Moment::BeforeCompaction],
        "session_compact" => &[Moment::Compacted],
        "session_before_tree" => &[Moment::BeforeNavigation],
        "session_tree" => &[Moment::Navigated],
        "model_select" => &[Moment::ModelSelected],
        "thinking_level_select" => &[Moment::LevelSelected],
        _ => &[],
    }
}

/// Returns the bit of a moment.
pub(super) fn bit(moment: Moment) -> u64 {
    1 << moment as u32
}

/// Returns the bits of all moments that a handler of `event` needs.
pub(super) fn bits(event: &str) -> u64 {
    let moments = moments(event).iter();
    moments.fold(0, |bits, moment| bits | bit(*moment))
}
