//! Hooks that block, change or answer what a session is about to do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use pinion_agent::{
    Answer, Command, Compacted, CompactionChoice, CompactionPlan, Disposition, Event, Hooks, Input,
    InputOutcome, Moment, NavigationChoice, NavigationPlan, Origin, Prompt, Replacement,
    RequestContext, RunStart, RunStartChanges, SelectionSource, SessionApi, ToolCallResult,
    ToolGate, ToolOutput, ToolRun, UserBash, UserBashOutcome,
};
use pinion_message::{Message, Model, StopReason, ThinkingLevel};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, Parts, bench_with};
use crate::events::{answer, ends_once, last_answer, only};
use crate::provider::{Turn, calls, says};

/// The behaviour of the hooks of one case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    BlockCalls,
    ChangeArguments,
    ChangeResults,
    HandleInput,
    ChangeInput,
    ChangePrompt,
    HideContext,
    RefuseReplacement,
    CancelCompaction,
    HangInCalls,
}

impl Behaviour {
    fn moment(self) -> Moment {
        match self {
            Self::BlockCalls | Self::ChangeArguments | Self::HangInCalls => Moment::ToolCall,
            Self::ChangeResults => Moment::ToolResult,
            Self::HandleInput | Self::ChangeInput => Moment::Input,
            Self::ChangePrompt => Moment::BeforeRun,
            Self::HideContext => Moment::Context,
            Self::RefuseReplacement => Moment::BeforeReplace,
            Self::CancelCompaction => Moment::BeforeCompaction,
        }
    }
}

struct CaseHooks {
    behaviour: Behaviour,
    /// `running` and `settled`, in order.
    log: Mutex<Vec<&'static str>>,
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl Hooks for CaseHooks {
    fn attach(&self, _: SessionApi) {}

    fn wants(&self, moment: Moment) -> bool {
        moment == self.behaviour.moment()
    }

    fn running(&self, _: CancellationToken) {
        self.log.lock().unwrap().push("running");
    }

    fn settled(&self) {
        self.log.lock().unwrap().push("settled");
    }

    fn observe<'a>(&'a self, _: &'a Event) -> BoxFuture<'a, ()> {
        ready(())
    }

    fn message_end(&self, message: Arc<Message>) -> BoxFuture<'_, Arc<Message>> {
        ready(message)
    }

    fn input(&self, input: Input) -> BoxFuture<'_, InputOutcome> {
        ready(if self.behaviour == Behaviour::HandleInput {
            InputOutcome::Handled
        } else {
            InputOutcome::Continue {
                text: format!("{} politely", input.text),
                images: input.images,
            }
        })
    }

    fn user_bash(&self, _: UserBash) -> BoxFuture<'_, UserBashOutcome> {
        ready(UserBashOutcome::Run)
    }

    fn before_run(&self, opening: RunStart) -> BoxFuture<'_, RunStartChanges> {
        ready(RunStartChanges {
            system_prompt: Some(format!("{} In rhymes.", opening.system_prompt)),
            ..RunStartChanges::default()
        })
    }

    fn context(&self, context: RequestContext) -> BoxFuture<'_, RequestContext> {
        let last = context.messages.last().cloned();
        ready(RequestContext {
            messages: last.into_iter().collect(),
            ..context
        })
    }

    fn payload(&self, payload: Value) -> BoxFuture<'_, Value> {
        ready(payload)
    }

    fn response(&self, _: u16, _: BTreeMap<String, String>) -> BoxFuture<'_, ()> {
        ready(())
    }

    fn tool_call<'a>(&'a self, run: &'a ToolRun, _: Value) -> BoxFuture<'a, ToolGate> {
        match self.behaviour {
            Behaviour::HangInCalls => Box::pin(std::future::pending()),
            Behaviour::BlockCalls => ready(ToolGate::Block(format!("{} is blocked", run.name))),
            _ => ready(ToolGate::Run(json!({"say": "changed"}))),
        }
    }

    fn tool_result<'a>(
        &'a self,
        _: &'a ToolRun,
        _: &'a Value,
        result: ToolCallResult,
    ) -> BoxFuture<'a, ToolCallResult> {
        let text = result.output.content[0].as_text().unwrap_or_default();
        ready(ToolCallResult {
            output: ToolOutput::text(format!("{text}, reviewed")),
            is_error: result.is_error,
        })
    }

    fn before_replace<'a>(&'a self, _: &'a Replacement) -> BoxFuture<'a, bool> {
        ready(false)
    }

    fn leaving<'a>(&'a self, _: &'a Replacement, _: Option<PathBuf>) -> BoxFuture<'a, ()> {
        ready(())
    }

    fn entered<'a>(
        &'a self,
        _: &'a Replacement,
        _: Option<PathBuf>,
        _: Origin,
    ) -> BoxFuture<'a, ()> {
        ready(())
    }

    fn before_compaction(
        &self,
        _: CompactionPlan,
        _: CancellationToken,
    ) -> BoxFuture<'_, CompactionChoice> {
        ready(CompactionChoice::Cancel)
    }

    fn compacted(&self, _: Compacted) -> BoxFuture<'_, ()> {
        ready(())
    }

    fn before_navigation(
        &self,
        _: NavigationPlan,
        _: CancellationToken,
    ) -> BoxFuture<'_, NavigationChoice> {
        ready(NavigationChoice::Cancel)
    }

    fn navigated(
        &self,
        _: Option<String>,
        _: Option<String>,
        _: Option<Value>,
        _: bool,
    ) -> BoxFuture<'_, ()> {
        ready(())
    }

    fn model_selected(
        &self,
        _: Arc<Model>,
        _: Option<Arc<Model>>,
        _: SelectionSource,
    ) -> BoxFuture<'_, ()> {
        ready(())
    }

    fn level_selected(&self, _: ThinkingLevel, _: ThinkingLevel) {}

    fn caught_up(&self) -> BoxFuture<'_, ()> {
        ready(())
    }

    fn command(&self, _: &str, _: &str) -> Option<BoxFuture<'static, ()>> {
        None
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        ready(())
    }
}

fn hooked(behaviour: Behaviour, script: Vec<Turn>) -> (Bench, Arc<CaseHooks>) {
    let hooks = Arc::new(CaseHooks {
        behaviour,
        log: Mutex::default(),
    });
    let mut parts = Parts {
        hooks: Some(Arc::clone(&hooks) as Arc<dyn Hooks>),
        ..Parts::default()
    };
    parts.settings.keep_recent_tokens = 1;
    (bench_with(script, parts), hooks)
}

fn one_call() -> Vec<Turn> {
    vec![calls("act", json!({"say": "asked"})), says("over")]
}

#[tokio::test(start_paused = true)]
async fn a_hook_blocks_a_call_and_the_model_sees_its_reason() {
    let (mut bench, hooks) = hooked(Behaviour::BlockCalls, one_call());
    let lines = bench.run("go").await;
    ends_once(&lines);
    assert_eq!(
        only(&lines, &["tool end"]),
        ["tool end failed act is blocked"]
    );
    assert!(bench.tool_log().is_empty());
    assert_eq!(last_answer(&lines), answer(StopReason::Stop, "over"));
    assert_eq!(*hooks.log.lock().unwrap(), ["running", "settled"]);
}

#[tokio::test(start_paused = true)]
async fn a_hook_changes_the_arguments_of_a_call() {
    let (mut bench, _) = hooked(Behaviour::ChangeArguments, one_call());
    let lines = bench.run("go").await;
    assert_eq!(only(&lines, &["tool end"]), ["tool end changed"]);
    assert_eq!(bench.tool_log(), ["begin changed", "end changed"]);
}

#[tokio::test(start_paused = true)]
async fn a_hook_changes_the_result_of_a_call() {
    let (mut bench, _) = hooked(Behaviour::ChangeResults, one_call());
    let lines = bench.run("go").await;
    assert_eq!(only(&lines, &["tool end"]), ["tool end asked, reviewed"]);
    let seen = bench.asked()[1].messages.last().unwrap().clone();
    assert_eq!(seen, "toolResult: asked, reviewed");
}

#[tokio::test(start_paused = true)]
async fn an_abort_does_not_wait_for_a_hook_that_hangs() {
    let script = vec![calls("act", json!({})), says("on")];
    let (mut bench, _) = hooked(Behaviour::HangInCalls, script);
    bench.prompt("go").await;
    bench.until("tool start").await;
    bench.abort().await;
    let lines = bench.news();
    assert_eq!(
        only(&lines, &["tool end"]),
        ["tool end failed Operation aborted"]
    );
    assert_eq!(lines.last().unwrap(), "settled aborted=true");
    bench.assert_continues("on").await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_handles_a_prompt_so_that_no_run_starts() {
    let (mut bench, hooks) = hooked(Behaviour::HandleInput, Vec::new());
    let taken = bench.ask(Command::Prompt(Prompt::new("go"))).await;
    assert!(matches!(taken, Ok(Answer::Taken(Disposition::Handled))));
    assert!(bench.news().is_empty());
    assert!(hooks.log.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_hook_changes_the_text_of_a_prompt() {
    let (mut bench, _) = hooked(Behaviour::ChangeInput, vec![says("a")]);
    bench.run("go").await;
    assert_eq!(bench.asked()[0].messages, ["user: go politely"]);
}

#[tokio::test(start_paused = true)]
async fn a_hook_changes_the_system_prompt_of_one_run() {
    let (mut bench, _) = hooked(Behaviour::ChangePrompt, vec![says("a"), says("b")]);
    for _ in 0..2 {
        bench.run("go").await;
    }
    for asked in bench.asked() {
        assert_eq!(asked.system_prompt, "Be brief. In rhymes.");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_hides_messages_from_the_model_but_not_from_the_session() {
    let (mut bench, _) = hooked(Behaviour::HideContext, vec![says("a"), says("b")]);
    bench.run("first").await;
    bench.run("second").await;
    assert_eq!(bench.asked()[1].messages, ["user: second"]);
    assert_eq!(bench.conversation().await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_hook_refuses_a_new_session_and_the_run_continues() {
    let (mut bench, _) = hooked(Behaviour::RefuseReplacement, vec![says("a").waits("end")]);
    bench.prompt("go").await;
    bench.until("delta a").await;
    let new = Command::NewSession {
        parent: None,
        prepare: None,
        origin: Origin::Client,
    };
    let refused = bench.ask(new).await;
    assert!(
        matches!(refused, Ok(Answer::Cancelled(true))),
        "{refused:?}"
    );
    assert!(bench.state().await.is_streaming);
    bench.gates.open("end");
    let lines = bench.settled().await;
    assert_eq!(lines.last().unwrap(), "settled aborted=false");
}

#[tokio::test(start_paused = true)]
async fn a_hook_cancels_a_compaction_before_the_model_is_asked() {
    let (mut bench, _) = hooked(Behaviour::CancelCompaction, vec![says("a"), says("on")]);
    bench.run("go").await;
    let error = bench.refused(Command::Compact { instructions: None }).await;
    assert_eq!(error.to_string(), "Compaction cancelled");
    assert_eq!(bench.asked().len(), 1);
    bench.assert_continues("on").await;
}
