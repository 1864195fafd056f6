// Uses the gateway as an MCP client does, with the official packages from npm: `client.mjs DIRECTORY sdk|client stdio COMMAND…`, or
// `… http URL TOKEN`. DIRECTORY has the packages; `sdk` is the one that begins with initialize, `client` the one that need not.
import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [directory, generation, way, ...where] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(directory, "node_modules/@modelcontextprotocol", path)));

async function packages() {
  if (generation === "client") {
    const { Client, StreamableHTTPClientTransport } = await load("client/dist/index.mjs");
    const { StdioClientTransport } = await load("client/dist/stdio.mjs");
    return { Client, StreamableHTTPClientTransport, StdioClientTransport };
  }
  const { Client } = await load("sdk/dist/esm/client/index.js");
  const { StreamableHTTPClientTransport } = await load("sdk/dist/esm/client/streamableHttp.js");
  const { StdioClientTransport } = await load("sdk/dist/esm/client/stdio.js");
  return { Client, StreamableHTTPClientTransport, StdioClientTransport };
}

const { Client, StreamableHTTPClientTransport, StdioClientTransport } = await packages();
const transport =
  way === "stdio"
    ? new StdioClientTransport({ command: where[0], args: where.slice(1) })
    : new StreamableHTTPClientTransport(new URL(where[0]), {
        requestInit: { headers: { Authorization: `Bearer ${where[1]}` } },
      });
const client = new Client({ name: "test", version: "1" }, generation === "client" ? { versionNegotiation: { mode: "auto" } } : {});
const errors = [];
client.onerror = (error) => errors.push(error);
await client.connect(transport);
assert.equal(client.getServerVersion().name, "pinix");
if (generation === "client") assert.equal(client.getNegotiatedProtocolVersion(), "2026-07-28");

/** Calls a tool; `options` as the package has them. */
const call = (name, args, options) =>
  generation === "client" ? client.callTool({ name, arguments: args }, options) : client.callTool({ name, arguments: args }, undefined, options);
const invoke = (command, input) => call("invoke", { clip: "todo", command, input });

const { tools } = await client.listTools();
assert.deepEqual(tools.map((tool) => tool.name), ["list", "info", "invoke", "invoke_stream"]);

const listed = await call("list", {});
assert.deepEqual(listed.structuredContent.items.map((item) => item.name), ["quiet", "todo"]);
const told = await call("info", { clip: "todo" });
assert.deepEqual(told.structuredContent.commands[0].inputSchema.required, ["title"]);

const added = await invoke("add", { title: "milk" });
assert.deepEqual(added.structuredContent, { kind: "clip", clip: "todo", command: "add", result: { added: "milk" } });
assert.equal(added.content[0].text, '{"added":"milk"}');
const failed = await invoke("fail", {});
assert.equal(failed.isError, true);
assert.equal(failed.structuredContent.error, "it rained");
await assert.rejects(call("steal", {}), /unknown tool/);

// The packages forget who is told of progress once they have the result, so the parts come one by one.
const parts = [];
const counted = await call(
  "invoke_stream",
  { clip: "todo", command: "count", input: { to: 5, pause: 30 } },
  { onprogress: (progress) => parts.push(progress.message) },
);
assert.equal(counted.content[0].text, "1 2 3 4 5 ");
assert.deepEqual(parts, ["1 ", "2 ", "3 ", "4 ", "5 "]);

// Taking a call back ends it, while others go on.
const controller = new AbortController();
const wait = { clip: "todo", command: "wait" };
const waiting = assert.rejects(call("invoke_stream", wait, { signal: controller.signal, onprogress: () => controller.abort("enough") }));
const many = await Promise.all(Array.from({ length: 50 }, (_, n) => invoke("echo", { n })));
many.forEach((answer, n) => assert.deepEqual(answer.structuredContent.result, { n }));
await waiting;
for (;;) {
  const { result } = (await invoke("live", {})).structuredContent;
  if (result === 0) break;
  await new Promise((resolve) => setTimeout(resolve, 10));
}
assert.deepEqual(errors.map(String).filter((error) => !/abort|enough/i.test(error)), []);

const pid = transport.pid;
await client.close();
if (way === "stdio") {
  for (let waited = 0; ; waited++) {
    try {
      process.kill(pid, 0);
    } catch {
      break;
    }
    assert.ok(waited < 500, "the program ends with its input");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
console.log("done");
