//! The built-in tools as extensions use them.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use serde_json::{Value, json};
use support::Bench;

async fn run(bench: &Bench, body: &str) -> Value {
    let cwd = bench.path("").display().to_string();
    bench.write(
        "main.ts",
        &format!(
            "import * as pi from '@mariozechner/pi-coding-agent';
             const cwd = {:?};
             const said = async (work: () => Promise<unknown>) => {{ try {{ return await work() }} catch (error) {{ return 'failed: ' + (error as Error).message }} }};
             const text = (result: any) => result.content.map((block: any) => block.text).join('');
             export default async () => {{ {body} }};",
            cwd.trim_end_matches('/'),
        ),
    );
    bench.run("main.ts").await.unwrap()
}

#[tokio::test]
async fn factories_make_tools_that_really_work() {
    let bench = Bench::new().await;
    bench.write("notes.txt", "one\ntwo\nthree\n");
    let found = run(&bench, "
        const read = pi.createReadTool(cwd), edit = pi.createEditTool(cwd), write = pi.createWriteTool(cwd);
        const shown = await read.execute('1', { path: 'notes.txt', offset: 2, limit: 1 });
        const edited = await edit.execute('2', { path: 'notes.txt', oldText: 'two', newText: 'zwei' });
        const listed = await edit.execute('3', { path: 'notes.txt', edits: [{ oldText: 'one', newText: 'eins' }, { oldText: 'three', newText: 'drei' }] });
        const written = await write.execute('4', { path: 'deep/new.txt', content: 'hello' });
        const missing = await said(() => read.execute('5', { path: 'nowhere' }));
        return [text(shown), text(edited), edited.details.firstChangedLine, text(listed), text(written), missing,
          [read.name, read.label, read.parameters.required, typeof read.description]];").await;
    assert_eq!(
        found,
        json!([
            "two\n\n[2 more lines in file. Use offset=3 to continue.]",
            "Successfully replaced text in notes.txt.",
            2,
            found[3],
            "Successfully wrote 5 bytes to deep/new.txt",
            format!(
                "failed: ENOENT: no such file or directory, access '{}'",
                bench.path("nowhere").display()
            ),
            ["read", "read", ["path"], "string"],
        ])
    );
    assert_eq!(
        fs::read_to_string(bench.path("notes.txt")).unwrap(),
        "eins\nzwei\ndrei\n"
    );
    assert_eq!(
        fs::read_to_string(bench.path("deep/new.txt")).unwrap(),
        "hello"
    );
}

#[tokio::test]
async fn searching_tools_search() {
    let bench = Bench::new().await;
    bench.write("src/a.rs", "fn alpha() {}\n");
    bench.write("src/b.txt", "alpha\n");
    let found = run(&bench, "
        const tools = Object.fromEntries(pi.createReadOnlyTools(cwd).map((tool) => [tool.name, tool]));
        return [
          text(await tools.grep.execute('1', { pattern: 'alpha', glob: '*.rs' })), text(await tools.find.execute('2', { pattern: '*.txt' })),
          text(await tools.ls.execute('3', { path: 'src' })), Object.keys(tools), pi.createCodingTools(cwd).map((tool) => tool.name),
        ];").await;
    assert_eq!(
        found,
        json!([
            "src/a.rs:1: fn alpha() {}",
            "src/b.txt",
            "a.rs\nb.txt",
            ["read", "grep", "find", "ls"],
            ["read", "bash", "edit", "write"]
        ])
    );
}

#[tokio::test]
async fn a_hook_changes_what_bash_runs() {
    let bench = Bench::new().await;
    let found = run(&bench, "
        const hooked = pi.createBashTool(cwd, {
          commandPrefix: 'greeting=hello',
          spawnHook: ({ command, cwd, env }) => ({ command: `${command}; echo \"$greeting $WHO $HOME\"`, cwd: '/', env: { ...env, WHO: 'world', HOME: undefined } }),
        });
        const updates: string[] = [];
        const ran = await hooked.execute('1', { command: 'pwd' }, undefined, (update) => updates.push(text(update)));
        const failing = await said(() => pi.createBashTool(cwd).execute('2', { command: 'echo no; exit 3' }));
        const late = await said(() => pi.createBashTool(cwd).execute('3', { command: 'sleep 30', timeout: 0.1 }));
        const told = updates.length > 0 && updates.every((update) => text(ran).startsWith(update));
        return [text(ran), told, failing, late];").await;
    assert_eq!(
        found,
        json!([
            "/\nhello world \n",
            true,
            "failed: no\n\n\nCommand exited with code 3",
            "failed: Command timed out after 0.1 seconds"
        ])
    );
}

#[tokio::test]
async fn an_extension_replaces_file_and_shell_operations() {
    let bench = Bench::new().await;
    let found = run(&bench, "
        const files = new Map([['/far/a.txt', 'one\\ntwo\\n']]);
        const bytes = (content: string) => Uint8Array.from([...content].map((letter) => letter.charCodeAt(0)));
        const operations = {
          access: async (path: string) => { if (!files.has(path)) throw Object.assign(new Error('gone'), { code: 'ENOENT' }) },
          readFile: async (path: string) => bytes(files.get(path)!), writeFile: async (path: string, content: string) => { files.set(path, content) },
          mkdir: async () => {}, exists: (path: string) => path === '/far', stat: (path: string) => ({ isDirectory: () => path === '/far' }),
          readdir: () => ['b', 'A'], glob: () => ['/far/x/y.ts'],
        } as any;
        const exec = async (command: string, where: string, { onData, timeout }: any) => { onData(bytes(`${command} in ${where} for ${timeout}`)); return { exitCode: command === 'bad' ? 4 : 0 } };
        return [
          text(await pi.createReadTool('/far', { operations }).execute('1', { path: 'a.txt', limit: 1 })),
          text(await pi.createEditTool('/far', { operations }).execute('2', { path: 'a.txt', oldText: 'one', newText: 'uno' })),
          text(await pi.createWriteTool('/far', { operations }).execute('3', { path: 'b.txt', content: 'new' })),
          [...files], text(await pi.createLsTool('/far', { operations }).execute('4', {})), text(await pi.createFindTool('/far', { operations }).execute('5', { pattern: '*' })),
          await said(() => pi.createEditTool('/far', { operations }).execute('6', { path: 'zz', oldText: 'a', newText: 'b' })),
          text(await pi.createBashTool('/far', { operations: { exec } }).execute('7', { command: 'good', timeout: 9 })),
          await said(() => pi.createBashTool('/far', { operations: { exec } }).execute('8', { command: 'bad' })),
        ];").await;
    assert_eq!(
        found,
        json!([
            "one\n\n[2 more lines in file. Use offset=2 to continue.]",
            "Successfully replaced text in a.txt.",
            "Successfully wrote 3 bytes to b.txt",
            [["/far/a.txt", "uno\ntwo\n"], ["/far/b.txt", "new"]],
            "A\nb",
            "x/y.ts",
            "failed: Could not edit file: zz. Error code: ENOENT.",
            "good in /far for 9",
            "failed: bad in /far for undefined\n\nCommand exited with code 4",
        ])
    );
}

#[tokio::test]
async fn the_built_in_shell_can_be_wrapped() {
    let bench = Bench::new().await;
    let found = run(&bench, "
        const local = pi.createLocalBashOperations();
        let seen = ''; const onData = (data: Uint8Array) => { seen += String.fromCharCode(...data) };
        const { exitCode } = await local.exec('echo $WHO; exit 2', cwd, { onData, env: { WHO: 'me' } as any });
        const late = await said(() => local.exec('sleep 30', cwd, { onData, timeout: 0.1 }));
        const stop = new AbortController(); setTimeout(() => stop.abort(), 20);
        const stopped = await said(() => local.exec('sleep 30', cwd, { onData, signal: stop.signal }));
        return [seen, exitCode, late, stopped];").await;
    assert_eq!(
        found,
        json!(["me\n", 2, "failed: timeout:0.1", "failed: aborted"])
    );
}

#[tokio::test]
async fn changes_of_a_file_run_one_at_a_time_in_request_order() {
    let bench = Bench::new().await;
    bench.write("shared.txt", "start\n");
    let found = run(&bench, "
        const path = cwd + '/shared.txt';
        const order: string[] = [];
        let open!: () => void; const gate = new Promise<void>((resolve) => { open = resolve });
        const first = pi.withFileMutationQueue(path, async () => { order.push('first in'); await gate; order.push('first out'); return 1 });
        const write = pi.createWriteTool(cwd).execute('1', { path: 'shared.txt', content: 'native' }).then(() => order.push('native'));
        const last = pi.withFileMutationQueue('shared.txt' === 'x' ? '' : path, async () => { order.push('last'); throw new Error('kept') }).catch((error) => order.push(error.message));
        const other = await pi.withFileMutationQueue(cwd + '/other.txt', async () => 'free');
        await new Promise((resolve) => setTimeout(resolve, 20));
        order.push('opened'); open();
        await Promise.all([first, write, last]);
        return [other, order.indexOf('native') > order.indexOf('first out'), order.filter((step) => step !== 'native')];").await;
    assert_eq!(
        found,
        json!([
            "free",
            true,
            ["first in", "opened", "first out", "last", "kept"]
        ])
    );
}

#[tokio::test]
async fn long_texts_are_cut_at_lines_and_headers_are_read() {
    let bench = Bench::new().await;
    let found = run(&bench, "
        const lines = Array.from({ length: 2500 }, (_, at) => `line ${at}`).join('\\n');
        const head = pi.truncateHead(lines), tail = pi.truncateTail('é'.repeat(40000));
        return [
          [head.truncated, head.truncatedBy, head.totalLines, head.outputLines], [tail.lastLinePartial, tail.outputBytes], pi.truncateLine('abcdef', 3),
          [pi.formatSize(5), pi.formatSize(51200), pi.formatSize(5e6)], pi.parseFrontmatter('---\\nname: x\\nlist: [a, b]\\n---\\nbody'), pi.stripFrontmatter('plain'),
          pi.convertToLlm([{ role: 'custom', customType: 't', content: 'c', display: true, timestamp: 3 }, { role: 'bashExecution', command: 'x', output: '', excludeFromContext: true }] as any),
          pi.serializeConversation([{ role: 'user', content: 'hi', timestamp: 1 }, { role: 'assistant', content: [{ type: 'toolCall', id: '1', name: 'n', arguments: { a: 1 } }] }] as any),
          pi.isToolCallEventType('bash', { toolName: 'bash' } as any), pi.getLanguageFromPath('a.rs'),
        ];").await;
    assert_eq!(
        found,
        json!([
            [true, "lines", 2500, 2000],
            [true, 51200],
            { "text": "abc... [truncated]", "wasTruncated": true },
            ["5B", "50.0KB", "4.8MB"],
            { "frontmatter": { "name": "x", "list": ["a", "b"] }, "body": "body" },
            "plain",
            [{ "role": "user", "content": [{ "type": "text", "text": "c" }], "timestamp": 3 }],
            "[User]: hi\n\n[Assistant tool calls]: n(a=1)",
            true,
            "rust",
        ])
    );
}

#[tokio::test]
async fn sessions_are_stored_and_found_again() {
    let bench = Bench::new().await;
    let found = run(&bench, "
        const directory = cwd + '/sessions';
        const session = pi.SessionManager.create('/work/project', directory);
        const first = session.appendMessage({ role: 'user', content: 'hello', timestamp: 1 } as any);
        const before = (await pi.SessionManager.list('/work/project', directory)).length;
        session.appendMessage({ role: 'assistant', content: [{ type: 'text', text: 'hi' }], api: 'a', provider: 'p', model: 'm', stopReason: 'stop', timestamp: 2 } as any);
        session.appendLabelChange(first, 'start'); session.appendSessionInfo('  named '); session.appendCustomEntry('kept', { a: 1 });
        const again = pi.SessionManager.open(session.getSessionFile()!);
        again.branch(first);
        const side = again.appendMessage({ role: 'user', content: 'other', timestamp: 3 } as any);
        const recent = pi.SessionManager.continueRecent('/work/project', directory);
        const [listed] = await pi.SessionManager.list('/work/project', directory);
        let unknown; try { again.appendLabelChange('zz', 'x') } catch (error) { unknown = (error as Error).message }
        return [before, again.getSessionId() === session.getSessionId(), again.getLabel(first), again.getSessionName(), recent.getBranch(side).map((entry: any) => entry.message.content),
          recent.buildSessionContext().messages.length, again.getTree()[0].children.length, listed.messageCount, listed.firstMessage, listed.created instanceof Date, unknown,
          pi.SessionManager.inMemory('/w').getSessionFile() ?? null];").await;
    assert_eq!(
        found,
        json!([
            0,
            true,
            "start",
            "named",
            ["hello", "other"],
            2,
            2,
            3,
            "hello",
            true,
            "Entry zz not found",
            null
        ])
    );
}

#[tokio::test]
async fn settings_and_skills_are_read_from_their_directories() {
    let bench = Bench::new().await;
    bench.write(
        "agent/settings.json",
        r#"{ "theme": "light", "retry": { "maxRetries": 7 } }"#,
    );
    bench.write(
        "project/.pi/settings.json",
        r#"{ "retry": { "baseDelayMs": 5 } }"#,
    );
    bench.write(
        "agent/skills/first/SKILL.md",
        "---\nname: first\ndescription: Does <this>\n---\nbody",
    );
    let found = run(&bench, "
        const settings = pi.SettingsManager.create(cwd + '/project', cwd + '/agent');
        settings.setSteeringMode('all');
        const { skills } = pi.loadSkills({ cwd: cwd + '/project', agentDir: cwd + '/agent', skillPaths: [], includeDefaults: true });
        const keys = pi.AuthStorage.inMemory({ here: { type: 'api_key', key: 'k' } });
        return [settings.getTheme(), settings.getRetrySettings(), settings.getCompactionReserveTokens(), pi.SettingsManager.create(cwd + '/project', cwd + '/agent').getSteeringMode(),
          skills.map((skill) => skill.name), pi.formatSkillsForPrompt(skills).includes('<description>Does &lt;this&gt;</description>'), await keys.getApiKey('here'), keys.has('there')];").await;
    assert_eq!(
        found,
        json!(["light", { "enabled": true, "maxRetries": 7, "baseDelayMs": 5 }, 16384, "all", ["first"], true, "k", false])
    );
}
