//! Translates the settings files to the settings of the engine and the tools.

use std::time::Duration;

use pinion_agent::{EngineSettings, ProjectSwitches, Steering, ToolOrder};
use pinion_config::{Dirs, Settings};
use pinion_llm::{CacheRetention, HttpRetry, Timeouts};
use pinion_message::Mask;
use pinion_pi::{CLASSIC_BEHAVIOUR, MODERN_BEHAVIOUR};
use pinion_tools::ToolSettings;
use serde_json::Value;

/// Runs tool calls in parallel. A steering message waits for the end of the turn, so that no call is skipped.
pub(super) fn with_later_ways(settings: EngineSettings) -> EngineSettings {
    EngineSettings {
        tool_order: ToolOrder::Parallel,
        steering: Steering::WaitsForTurn,
        ..settings
    }
}

/// Selects the behaviour that clients of pi 1.x expect. HTTP requests are not retried unless the settings configure
/// retries.
pub(super) fn with_modern_behaviour(
    settings: EngineSettings,
    configured: &Settings,
) -> EngineSettings {
    let mut settings = EngineSettings {
        behaviour: MODERN_BEHAVIOUR,
        resize_prompt_images: configured.images().auto_resize,
        ..settings
    };
    if configured.retry().provider.max_retries.is_none() {
        settings.http_retry.max_retries = 0;
    }
    settings
}

pub(crate) fn tool_settings(dirs: &Dirs, settings: &Settings, mask: &Mask) -> ToolSettings {
    ToolSettings {
        shell_path: settings.shell_path().map(|path| dirs.resolve(path)),
        shell_command_prefix: settings.shell_command_prefix().map(str::to_owned),
        bin_dir: Some(dirs.agent_dir.join("bin")),
        auto_resize_images: settings.images().auto_resize,
        env: vec![("AI_AGENT".into(), "pinion".into())],
        environment: pinion_extensions::changed_environment,
        mask: mask.clone(),
        send_start_update: false,
        ..ToolSettings::default()
    }
}

pub(crate) fn engine_settings(settings: &Settings) -> EngineSettings {
    let defaults = EngineSettings::default();
    let compaction = settings.compaction();
    let retry = settings.retry();
    let http_retry = HttpRetry {
        max_retries: retry
            .provider
            .max_retries
            .map_or(defaults.http_retry.max_retries, clamp_u32),
        max_delay: Duration::from_millis(retry.max_delay_ms),
    };
    let first_byte = retry.provider.timeout_ms.map(Duration::from_millis);
    let timeouts = Timeouts {
        first_byte: first_byte.unwrap_or(defaults.timeouts.first_byte),
        idle: timeout(settings, "timeouts.idleMs").unwrap_or(defaults.timeouts.idle),
        connect: timeout(settings, "timeouts.connectMs").unwrap_or(defaults.timeouts.connect),
        total: timeout(settings, "timeouts.totalMs"),
    };
    EngineSettings {
        steering_mode: Some(settings.steering_mode().to_owned()),
        follow_up_mode: Some(settings.follow_up_mode().to_owned()),
        auto_compaction: compaction.enabled,
        reserve_tokens: compaction.reserve_tokens,
        keep_recent_tokens: compaction.keep_recent_tokens,
        branch_summary_reserve_tokens: settings.branch_summary().reserve_tokens,
        auto_retry: retry.enabled,
        project_switches: ProjectSwitches {
            auto_compaction: switch(settings, "compaction.enabled"),
            auto_retry: switch(settings, "retry.enabled"),
        },
        max_retries: clamp_u32(retry.max_retries),
        retry_base_delay: Duration::from_millis(retry.base_delay_ms),
        http_retry,
        timeouts,
        thinking_budgets: settings.thinking_budgets(),
        cache_retention: match std::env::var("PI_CACHE_RETENTION").as_deref() {
            Ok("long") => CacheRetention::Long,
            _ => CacheRetention::Short,
        },
        tool_timeout: settings
            .get_global("tools.timeoutSeconds")
            .and_then(Value::as_u64)
            .map_or(defaults.tool_timeout, Duration::from_secs),
        steering: match settings.get("steeringDelivery").and_then(Value::as_str) {
            Some("after-turn") => Steering::WaitsForTurn,
            _ => Steering::SkipsCalls,
        },
        block_images: settings.images().block_images,
        default_thinking_level: settings
            .default_thinking_level()
            .unwrap_or(defaults.default_thinking_level),
        behaviour: CLASSIC_BEHAVIOUR,
        ..defaults
    }
}

/// Returns the project's value of a boolean setting, if it has one.
fn switch(settings: &Settings, path: &str) -> Option<bool> {
    settings.get_project(path).and_then(Value::as_bool)
}

fn timeout(settings: &Settings, path: &str) -> Option<Duration> {
    settings
        .get_global(path)
        .and_then(Value::as_u64)
        .map(Duration::from_millis)
}

fn clamp_u32(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
