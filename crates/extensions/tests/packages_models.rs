//! Requests of extensions to models.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_extensions::{ScriptOptions, Services};
use pinion_llm::{
    Authorization, Environment, EventStream, Provider, Providers, Registry, RegistryOptions,
    Request, StreamEvent,
};
use pinion_message::Model;
use serde_json::{Value, json};
use support::Bench;

/// The models of the program, without any key.
struct Models {
    registry: Arc<Registry>,
    _directory: tempfile::TempDir,
}

impl Services for Models {
    fn exit(&self, _code: i32) {}

    fn all_models(&self) -> Vec<Arc<Model>> {
        self.registry.all()
    }

    fn find_model(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        self.registry.find(provider, id)
    }

    fn access(&self, model: &Model) -> BoxFuture<'static, Result<Authorization, String>> {
        let (registry, model) = (Arc::clone(&self.registry), model.clone());
        Box::pin(async move {
            registry
                .authorize(&model)
                .await
                .map_err(|error| error.to_string())
        })
    }

    fn environment(&self, provider: &str) -> Environment {
        self.registry.environment(provider)
    }

    fn provider(&self) -> Option<Arc<dyn Provider>> {
        Some(Arc::new(Watched(Providers::default())))
    }
}

/// A provider that shows a body and a response to observers of the request, and answers with the changed body.
struct Watched(Providers);

impl Provider for Watched {
    fn stream(&self, request: Request) -> EventStream {
        let Some(tap) = request.options.tap.clone() else {
            return self.0.stream(request);
        };
        let model = Arc::clone(&request.model);
        let answer = async move {
            let payload = tap.payload(json!({ "prompt": "hi" })).await;
            tap.response(201, [("x-a".to_owned(), "b".to_owned())].into())
                .await;
            let message = json!({ "content": [{ "type": "text", "text": payload.to_string() }], "api": model.api, "stopReason": "stop" });
            StreamEvent::End(serde_json::from_value(message).unwrap())
        };
        Box::pin(futures_util::stream::once(answer))
    }
}

async fn run(body: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let azure = json!({"type": "api_key", "env": {"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_BASE_URL": "of the entry"}});
    let auth = json!({ "azure": azure }).to_string();
    std::fs::write(directory.path().join("auth.json"), auth).unwrap();
    let options = RegistryOptions {
        include_offline: true,
        environment: Environment::Fixed([].into()),
    };
    let (registry, _) = Registry::load(directory.path(), options);
    let services = Arc::new(Models {
        registry: Arc::new(registry),
        _directory: directory,
    });
    let bench = Bench::with(ScriptOptions {
        services,
        ..ScriptOptions::default()
    })
    .await;
    bench.write(
        "a.ts",
        &format!(
            "import * as ai from '@mariozechner/pi-ai';
             import {{ Agent }} from '@mariozechner/pi-agent-core';
             const model = ai.getModel('offline' as any, 'demo' as any) as any;
             const asked = (text: string) => ({{ messages: [{{ role: 'user' as const, content: text, timestamp: 1 }}] }});
             export default async () => {{ {body} }};"
        ),
    );
    bench.run("a.ts").await.unwrap()
}

#[tokio::test]
async fn a_model_answers_an_extension() {
    let found = run("
        const answer = await ai.complete(model, asked('say exactly: hello there'));
        return [answer.role, answer.stopReason, answer.provider, answer.model, answer.content.some((block: any) => block.type === 'text' && block.text.length > 0), answer.usage.totalTokens > 0];").await;
    assert_eq!(
        found,
        json!(["assistant", "stop", "offline", "demo", true, true])
    );
}

#[tokio::test]
async fn stream_events_arrive_in_order_with_a_partial_message() {
    let found = run("
        const stream = ai.streamSimple(model, asked('hello'), { reasoning: 'low' });
        const kinds: string[] = []; let grown = ''; let same = true; let partial: any; let ended = '';
        for await (const event of stream) {
          if (kinds.at(-1) !== event.type) kinds.push(event.type);
          if ('partial' in event) { partial ??= event.partial; same &&= partial === event.partial; }
          if (event.type === 'text_delta') { grown += event.delta; same &&= (event.partial.content[event.contentIndex] as any).text.startsWith(grown); }
          if (event.type === 'text_end') ended = event.content;
        }
        const result = await stream.result();
        return [kinds[0], kinds.at(-1), kinds.includes('text_start') && kinds.indexOf('text_start') < kinds.indexOf('text_end'), same, grown === ended, result.content.at(-1).text === ended];").await;
    assert_eq!(found, json!(["start", "done", true, true, true, true]));
}

#[tokio::test]
async fn variables_of_auth_json_reach_requests_with_the_extensions_own_key() {
    let found = run("
        const azure = ai.getModel('azure' as any, 'gpt-5.4' as never) as any;
        const answers = [await ai.complete(azure, asked('hi')), await ai.complete(azure, asked('hi'), { apiKey: 'own' })];
        return answers.map((answer) => answer.errorMessage);").await;
    for error in found.as_array().unwrap() {
        let error = error.as_str().unwrap();
        assert!(error.contains("\"of the entry\" is not a URL"), "{error}");
    }
}

#[tokio::test]
async fn an_impossible_request_gives_a_failed_answer() {
    let found = run("
        const claude = ai.getModel('anthropic', 'claude-sonnet-4-5');
        const refused = await ai.complete(claude, asked('hi'));
        const stopped = await ai.complete(model, asked('hello'), { signal: AbortSignal.abort() });
        let unknown; try { ai.stream({ ...model, api: 'nope' }, asked('x')) } catch (error) { unknown = (error as Error).message }
        return [claude.provider, refused.stopReason, refused.errorMessage!.length > 0, stopped.stopReason, unknown, ai.getModel('x' as any, 'y' as never) ?? null, ai.getProviders().includes('anthropic')];").await;
    assert_eq!(
        found,
        json!([
            "anthropic",
            "error",
            true,
            "aborted",
            "No API provider registered for api: nope",
            null,
            true
        ])
    );
}

#[tokio::test]
async fn an_extension_implements_its_own_api() {
    let found = run("
        const faux = ai.registerFauxProvider();
        faux.setResponses([ai.fauxAssistantMessage([ai.fauxToolCall('add', { a: '1' }, { id: 'c1' })], { stopReason: 'toolUse' }), ai.fauxAssistantMessage('two')]);
        const agent = new Agent({ initialState: { model: faux.getModel(), tools: [{ name: 'add', label: 'add', description: '', parameters: { type: 'object', properties: { a: { type: 'number' } } } as any,
          execute: async (id: string, params: any) => ({ content: [{ type: 'text' as const, text: String(params.a + 1) }], details: {} }) }] } });
        const seen: string[] = []; agent.subscribe((event) => { if (event.type !== 'message_update') seen.push(event.type) });
        await agent.prompt('add');
        const last = await ai.completeSimple(faux.getModel(), asked('more'));
        return [seen.join(' '), agent.state.messages.map((message: any) => message.content[0].text ?? message.content[0].arguments), agent.state.isStreaming, last.errorMessage];").await;
    assert_eq!(
        found,
        json!([
            "agent_start turn_start message_start message_end message_start message_end tool_execution_start tool_execution_end \
             message_start message_end turn_end turn_start message_start message_end turn_end agent_end",
            ["add", { "a": "1" }, "2", "two"],
            false,
            "No more faux responses queued",
        ])
    );
}

#[tokio::test]
async fn streams_and_helpers_keep_their_contract() {
    let found = run("
        const stream = ai.createAssistantMessageEventStream();
        const reading = (async () => { const seen: string[] = []; for await (const event of stream) seen.push(event.type); return seen })();
        stream.push({ type: 'start', partial: {} as any }); stream.push({ type: 'done', reason: 'stop', message: { a: 1 } as any }); stream.push({ type: 'start', partial: {} as any }); stream.end();
        const usage = { input: 1000, output: 10, cacheRead: 5, cacheWrite: 7, totalTokens: 1, cost: {} } as any;
        ai.calculateCost(ai.getModel('anthropic', 'claude-sonnet-4-5'), usage);
        return [await reading, await stream.result(), usage.cost.total, ai.parseStreamingJson('{\"a\": [1, \"b'), ai.isContextOverflow({ stopReason: 'error', errorMessage: 'prompt is too long: 5 > 4' } as any),
          ai.clampThinkingLevel(ai.getModel('anthropic', 'claude-sonnet-4-5'), 'xhigh'), ai.modelsAreEqual(model, { ...model }), ai.modelsAreEqual(model, undefined)];").await;
    assert_eq!(
        found,
        json!([["start", "done"], { "a": 1 }, 0.00317775, { "a": [1, "b"] }, true, "high", true, false])
    );
}

#[tokio::test]
async fn an_extension_sees_the_exchange_and_may_change_the_request() {
    let found = run("
        const seen: unknown[] = [];
        const changed = await ai.complete(model, asked('x'), { onPayload: async (payload: any, of: any) => { seen.push(payload, of.id); return { ...payload, top: 1 } }, onResponse: (response) => { seen.push(response) } });
        const kept = await ai.complete(model, asked('x'), { onPayload: () => undefined });
        const failed = await ai.complete(model, asked('x'), { onPayload: () => { throw new Error('not like this') } });
        return [seen, (changed.content[0] as any).text, (kept.content[0] as any).text, failed.stopReason, failed.errorMessage];").await;
    assert_eq!(
        found,
        json!([
            [{ "prompt": "hi" }, "demo", { "status": 201, "headers": { "x-a": "b" } }],
            r#"{"prompt":"hi","top":1}"#,
            r#"{"prompt":"hi"}"#,
            "error",
            "not like this",
        ])
    );
}
