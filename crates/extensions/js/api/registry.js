// The registrations of this instance's extensions.

import { home, isBound, now } from "pinion:api/bridge";
import { note, noteEvent } from "pinion:api/notices";
import { program } from "pinion:api/program";

/** Every extension that was loaded, in load order. */
export const extensions = [];

/** Creates the record of one extension's registrations. */
export function newExtension(path, sourceInfo) {
  return {
    path,
    sourceInfo,
    handlers: new Map(),
    tools: new Map(),
    commands: new Map(),
    flags: new Map(),
    shortcuts: new Map(),
    messageRenderers: new Map(),
    entryRenderers: new Map(),
    providers: [],
    virtualModels: [],
    pauses: 0,
    pausedUntil: 0,
  };
}

/** Appends a handler and returns a function that removes this registration of it. */
export function addHandler(extension, event, handler) {
  const handlers = extension.handlers.get(event) ?? [];
  extension.handlers.set(event, handlers);
  // The same function may be registered several times, so each registration is an object of its own.
  const registration = { handler };
  handlers.push(registration);
  noteEvent(extension, event);
  if (isBound()) now(home, "listens", event);
  return () => {
    const at = handlers.indexOf(registration);
    if (at >= 0) handlers.splice(at, 1);
    if (handlers.length === 0 && extension.handlers.get(event) === handlers) extension.handlers.delete(event);
  };
}

/** Reports whether a handler of `event` exists. */
export function hasHandlers(event) {
  return extensions.some((extension) => extension.handlers.has(event));
}

/** Returns the tool of this name; the first extension that registered it wins. */
export function findTool(name) {
  for (const extension of extensions) {
    const tool = extension.tools.get(name);
    if (tool) return { extension, tool };
  }
  return undefined;
}

/** Returns every command with the name it is called by: conflicting names get numbers. */
export function namedCommands() {
  const counts = new Map();
  for (const extension of extensions) {
    for (const name of extension.commands.keys()) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const used = new Map();
  const taken = new Set();
  const named = [];
  for (const extension of extensions) {
    for (const [name, command] of extension.commands) {
      const number = (used.get(name) ?? 0) + 1;
      used.set(name, number);
      const called = freeName(counts.get(name) > 1 ? `${name}:${number}` : name, name, number, taken);
      taken.add(called);
      named.push({ called, extension, command });
    }
  }
  return named;
}

// Another command may already have the numbered name.
function freeName(wanted, name, number, taken) {
  let called = wanted;
  for (let next = number; taken.has(called); next += 1) called = `${name}:${next}`;
  return called;
}

/** Returns the commands in the form that the program lists. */
export function commandList() {
  return namedCommands().map(({ called, extension, command }) => ({
    name: called,
    ...(command.description === undefined ? {} : { description: String(command.description) }),
    source: "extension",
    ...(program.modern ? {} : { path: extension.path }),
    sourceInfo: extension.sourceInfo,
  }));
}

const EXPOSURES = ["direct", "model-only", "codemode", "deferred", "hidden"];
// Members of definitions that have no effect here.
const UNUSED = ["constrainedSampling", "prepareLoadout"];

/** Describes a tool for the program. */
export function toolCard(extension, tool) {
  for (const member of UNUSED) {
    if (tool[member]) note(extension, `${member} of tools`, "pinion does not use it");
  }
  const { name, aliases, description, instructions } = tool.namespace ?? {};
  return {
    exposure: EXPOSURES.find((known) => known === tool.exposure) ?? "direct",
    namespace: name === undefined ? undefined : {
      name: String(name),
      alias: String(aliases?.[0] ?? name),
      description: String(description ?? ""),
      instructions: String(instructions ?? ""),
    },
    outputSchema: tool.outputSchema,
    name: String(tool.name),
    label: tool.label === undefined ? undefined : String(tool.label),
    description: tool.description === undefined ? "" : String(tool.description),
    parameters: tool.parameters ?? { type: "object", properties: {} },
    snippet: typeof tool.promptSnippet === "string" ? tool.promptSnippet : undefined,
    guidelines: Array.isArray(tool.promptGuidelines) ? tool.promptGuidelines.map(String) : [],
    sequential: tool.executionMode === "sequential",
    defaultActive: tool.defaultActive !== false,
    prepares: typeof tool.prepareArguments === "function",
    typebox: Boolean(tool.parameters?.["~kind"]),
    sourceInfo: extension.sourceInfo,
  };
}

/** Returns the registrations of an extension, for people and for the program. */
export function extensionCard(extension) {
  return {
    path: extension.path,
    events: [...extension.handlers.keys()],
    tools: [...extension.tools.values()].map((tool) => toolCard(extension, tool)),
    commands: [...extension.commands.keys()],
    flags: [...extension.flags].map(([name, flag]) => ({
      name,
      type: flag.type,
      description: flag.description,
      default: flag.default,
    })),
    shortcuts: [...extension.shortcuts.keys()],
    messageRenderers: [...extension.messageRenderers.keys()],
    entryRenderers: [...extension.entryRenderers.keys()],
    providers: [
      ...extension.providers.map((provider) => provider.name),
      ...extension.virtualModels.map(({ provider, id }) => `${provider}/${id}`),
    ],
  };
}
