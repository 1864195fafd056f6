// The object that an extension's factory receives.

import { home, isBound, later, now, requireBound, requireFresh } from "pinion:api/bridge";
import { events } from "pinion:api/bus";
import { getFlag, registerFlag } from "pinion:api/flags";
import { mcpServers, registerMcpServer, unregisterMcpServer } from "pinion:api/mcp_servers";
import { note, noteRenderer } from "pinion:api/notices";
import { whole, withLater } from "pinion:api/program";
import { asConfig, registerProvider, unregisterProvider } from "pinion:api/providers";
import { addHandler, commandList, findTool, toolCard } from "pinion:api/registry";
import { checkVirtualModel, registerVirtualModel, unregisterVirtualModel } from "pinion:api/virtual_models";
import { lazy } from "pinion:runtime/lazy";

/** Creates the `pi` of one extension. */
export function makePi(extension) {
  const fresh = (method) => (...values) => {
    requireFresh(home);
    return method(...values);
  };
  const act = (method) =>
    fresh((...values) => {
      requireBound();
      return method(...values);
    });
  const bus = events();
  const pi = {
    on: fresh((event, handler) => addHandler(extension, event, handler)),
    registerTool: fresh((tool) => registerTool(extension, tool)),
    registerCommand: fresh((name, command) => registerCommand(extension, name, command)),
    registerShortcut: fresh((key, shortcut) => void extension.shortcuts.set(key, shortcut)),
    registerFlag: fresh((name, flag) => registerFlag(extension, name, flag)),
    getFlag: fresh((name) => getFlag(extension, name)),
    registerMessageRenderer: fresh((type, renderer) => void extension.messageRenderers.set(type, renderer)),
    sendMessage: act((message, options) => lazy("api/saying").sendMessage(message, options)),
    sendUserMessage: act((content, options) => lazy("api/saying").sendUserMessage(content, options)),
    appendEntry: act((customType, data) => {
      // `null` is stored, `undefined` is not.
      const given = data === undefined ? [] : [data];
      now(home, "append", "custom", customType, ...given);
    }),
    setSessionName: act((name) => now(home, "append", "name", name)),
    getSessionName: act(() => now(home, "session", "name") ?? undefined),
    setLabel: act((id, label) => void now(home, "append", "label", id, label)),
    exec: fresh((command, words, options) => lazy("api/exec").exec(home, command, words, options)),
    getActiveTools: act(() => now(home, "activeTools")),
    getAllTools: act(() => now(home, "allTools").map(withHints)),
    setActiveTools: act((names) => now(home, "setActiveTools", names)),
    getCommands: act(() => now(home, "commands")),
    setModel: fresh(async (model) => {
      if (!isBound()) throw new Error("Extension runtime not initialized");
      return later(home, "setModel", { provider: model?.provider, id: model?.id });
    }),
    getThinkingLevel: act(() => now(home, "thinkingLevel")),
    setThinkingLevel: act((level) => now(home, "append", "level", level)),
    registerProvider: fresh((given, settings) => {
      const { name, config } = asConfig(given, settings);
      if (isBound()) {
        registerProvider(name, config);
      } else {
        extension.providers.push({ name, config });
      }
    }),
    unregisterProvider: fresh((name) => {
      extension.providers = extension.providers.filter((provider) => provider.name !== name);
      if (isBound()) unregisterProvider(name);
    }),
    events: bus,
  };
  withLater(pi, {
    getSettings: act(() => now(home, "settings")),
    registerEntryRenderer: fresh((type, renderer) => {
      extension.entryRenderers.set(type, renderer);
      noteRenderer(extension, "registerEntryRenderer");
    }),
    registerToolRenderer: fresh(() => noteRenderer(extension, "registerToolRenderer")),
    registerMarkdownTransformer: fresh(() => noteRenderer(extension, "registerMarkdownTransformer")),
    registerMcpServer: fresh((name, config) => registerMcpServer(extension, name, config)),
    unregisterMcpServer: fresh((name) => unregisterMcpServer(extension, name)),
    getMcpServers: fresh(mcpServers),
    registerVirtualModel: fresh((model) => {
      checkVirtualModel(model);
      if (isBound()) {
        registerVirtualModel(extension, model);
      } else {
        extension.virtualModels.push(model);
      }
    }),
    unregisterVirtualModel: fresh((provider, id) => {
      const other = (model) => model.provider !== provider || model.id !== id;
      extension.virtualModels = extension.virtualModels.filter(other);
      if (isBound()) unregisterVirtualModel(provider, id);
    }),
  });
  return new Proxy(pi, { get: (known, name) => (name in known ? known[name] : unknown(extension, name)) });
}

// Adds what only the definition of an extension's tool says.
function withHints(summary) {
  const { annotations, reachesTools } = findTool(summary.name)?.tool ?? {};
  const hints = Object.entries({ annotations, reachesTools }).filter(([, hint]) => hint !== undefined);
  return withLater(whole(summary), Object.fromEntries(hints));
}

// Later releases let extensions register more. Such registrations have no effect here, and must not prevent an
// extension from loading.
const REGISTERS = /^(un)?register[A-Z]/;

function unknown(extension, name) {
  if (typeof name !== "string" || !REGISTERS.test(name)) return undefined;
  return () => note(extension, name, "pinion does not know it");
}

function registerTool(extension, tool) {
  extension.tools.set(tool.name, tool);
  if (isBound()) now(home, "addTool", toolCard(extension, tool));
}

function registerCommand(extension, name, command) {
  const known = String(name);
  extension.commands.set(known, { ...command, name: known });
  if (isBound()) now(home, "setCommands", commandList());
}
