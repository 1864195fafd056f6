// Stock Connect clients against a hub: every transport of connect-node and connect-web, with the schema read from a descriptor set.
// node connect.mjs DESCRIPTORS URL TOKEN, run where the packages are installed. Prints one line per transport; fails loudly.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(`${process.cwd()}/`));
const load = async (name) => import(pathToFileURL(require.resolve(name)));
const { createFileRegistry, fromBinary } = await load("@bufbuild/protobuf");
const { FileDescriptorSetSchema } = await load("@bufbuild/protobuf/wkt");
const { Code, ConnectError, createClient } = await load("@connectrpc/connect");
const node = await load("@connectrpc/connect-node");
const web = await load("@connectrpc/connect-web");

const [descriptors, baseUrl, token] = process.argv.slice(2);
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(descriptors)));
const service = registry.getService("pinix.v2.HubService");
const encode = (value) => new TextEncoder().encode(JSON.stringify(value));
const decode = (bytes) => JSON.parse(new TextDecoder().decode(bytes));
const authorize = (next) => (request) => {
  request.header.set("authorization", `Bearer ${token}`);
  return next(request);
};

const transports = [];
const add = (name, duplex, transport) => transports.push({ name, duplex, transport });
for (const useBinaryFormat of [true, false]) {
  const options = { baseUrl, useBinaryFormat, interceptors: [authorize] };
  const codec = useBinaryFormat ? "protobuf" : "JSON";
  for (const httpVersion of ["1.1", "2"]) {
    const transport = node.createConnectTransport({ ...options, httpVersion });
    add(`connect-node, Connect ${codec}, HTTP/${httpVersion}`, httpVersion === "2", transport);
  }
  add(`connect-node, gRPC ${codec}`, true, node.createGrpcTransport(options));
  add(`connect-node, gRPC-Web ${codec}`, false, node.createGrpcWebTransport({ ...options, httpVersion: "1.1" }));
  add(`connect-web, Connect ${codec}`, false, web.createConnectTransport(options));
  add(`connect-web, gRPC-Web ${codec}`, false, web.createGrpcWebTransport(options));
}

async function fails(code, work) {
  try {
    await work();
  } catch (error) {
    const failure = ConnectError.from(error);
    assert.equal(Code[failure.code], Code[code], failure.message);
    return;
  }
  assert.fail(`no ${Code[code]}`);
}

async function outputs(answers) {
  const all = [];
  for await (const answer of answers) {
    assert.equal(answer.error, undefined, answer.error?.message);
    all.push(decode(answer.output));
  }
  return all;
}

async function check({ name, duplex, transport }) {
  const hub = createClient(service, transport);

  const info = await hub.hubInfo({});
  assert.equal(info.protocol, "pinix.v2");
  const { clips } = await hub.listClips({});
  assert.ok(clips.some((clip) => clip.name === "todo"), "todo is listed");
  const { manifest } = await hub.getClipManifest({ clipName: "todo" });
  assert.ok(manifest.commands.some((command) => command.name === "monitor"));
  await fails(Code.NotFound, () => hub.getManifest({ clipName: "ghost" }));

  const title = "Grüße, 世界 🐢";
  const added = await outputs(hub.invoke({ clipName: "todo", command: "add", input: encode({ title }) }));
  assert.deepEqual(added, [{ id: "t1", title }]);
  const ticks = await outputs(hub.invoke({ clipName: "todo", command: "monitor" }));
  assert.deepEqual(ticks, [{ tick: 1 }, { tick: 2 }]);
  await fails(Code.NotFound, () => outputs(hub.invoke({ clipName: "ghost", command: "add" })));
  await fails(Code.DeadlineExceeded, () =>
    outputs(hub.invoke({ clipName: "todo", command: "slow" }, { timeoutMs: 200 })));
  for await (const answer of hub.invoke({ clipName: "todo", command: "boom" })) {
    assert.equal(answer.error.code, "internal");
    assert.equal(answer.error.message, "boom: handler failed");
  }

  const leave = new AbortController();
  await fails(Code.Canceled, async () => {
    for await (const _ of hub.invoke({ clipName: "todo", command: "ever" }, { signal: leave.signal })) {
      leave.abort();
    }
  });

  await hub.dataWrite({ clipName: "todo", path: "a/b.txt", content: encode("kept") });
  const read = await hub.dataRead({ clipName: "todo", path: "a/b.txt" });
  assert.equal(decode(read.content), "kept");
  const missing = await hub.data({ clipName: "todo", operation: "stat", path: "gone" });
  assert.equal(missing.error.code, "not_found");

  const lines = [];
  for await (const line of hub.getLogs({ clipName: "todo", tail: 5 })) lines.push(line.message);
  assert.ok(lines.length > 0, "there are log lines");

  if (duplex) {
    const parts = async function* () {
      yield { payload: { case: "start", value: { clipName: "todo", command: "add" } } };
      yield { payload: { case: "chunk", value: { data: encode({ title: "in " }).slice(0, 5) } } };
      yield { payload: { case: "chunk", value: { data: encode({ title: "in " }).slice(5), done: true } } };
    };
    assert.deepEqual(await outputs(hub.invokeStream(parts())), [{ id: "t1", title: "in " }]);
    if (process.argv.includes("provider")) await provide(hub, name);
  }
}

// The client is a provider itself: it registers a clip, and is called through the same hub.
async function provide(hub, name) {
  const alias = `edge-${transports.findIndex((it) => it.name === name)}`;
  const outbox = [];
  let wake = () => {};
  const say = (payload) => {
    outbox.push({ payload });
    wake();
  };
  let open = true;
  const messages = async function* () {
    while (open || outbox.length > 0) {
      if (outbox.length > 0) yield outbox.shift();
      else await new Promise((resolve) => (wake = resolve));
    }
  };
  say({
    case: "register",
    value: { providerName: `provider-${alias}`, clips: [{ alias, package: "edge", commands: [{ name: "double" }] }] },
  });
  const registered = Promise.withResolvers?.() ?? deferred();
  const served = (async () => {
    for await (const { payload } of hub.providerStream(messages())) {
      if (payload.case === "registerResponse") {
        assert.ok(payload.value.accepted, payload.value.message);
        registered.resolve();
      } else if (payload.case === "invokeCommand") {
        const { requestId, input } = payload.value;
        const { number } = decode(input);
        say({ case: "invokeResult", value: { requestId, output: encode(number), done: false } });
        say({ case: "invokeResult", value: { requestId, output: encode(number * 2), done: true } });
      }
    }
  })();
  await registered.promise;
  const doubled = await outputs(hub.invoke({ clipName: alias, command: "double", input: encode({ number: 21 }) }));
  assert.deepEqual(doubled, [21, 42]);
  open = false;
  wake();
  await served;
}

function deferred() {
  const it = {};
  it.promise = new Promise((resolve, reject) => Object.assign(it, { resolve, reject }));
  return it;
}

for (const transport of transports) {
  try {
    await check(transport);
  } catch (error) {
    console.error(`${transport.name}:`, error);
    process.exit(1);
  }
  console.log(`ok ${transport.name}`);
}

// Who is refused while its request is still on the way gets the answer, not a broken connection.
for (const create of [node.createConnectTransport, node.createGrpcWebTransport]) {
  for (let round = 0; round < 30; round += 1) {
    const stranger = createClient(service, create({ baseUrl, httpVersion: "1.1" }));
    await fails(Code.Unauthenticated, () => stranger.listClips({}));
    await fails(Code.Unauthenticated, () => outputs(stranger.invoke({ clipName: "todo", command: "list" })));
  }
}
process.exit(0);
