// `createAgentSession`: a session that a script starts in the program.

import { ops } from "pinion:ops";
import { home, now } from "pinion:api/bridge";
import { SessionManager } from "pinion:packages/coding_session";
import { ModelRegistry, SettingsManager } from "pinion:packages/coding_settings";
import { DefaultResourceLoader } from "pinion:packages/sdk_loader";
import { ModelRuntime, levelFor } from "pinion:packages/sdk_models";
import { AgentSession } from "pinion:packages/sdk_session";
import { BUILT_IN } from "pinion:packages/sdk_tools";

/** Creates a session inside this one. It has at most the tools, limits and approvals of this one, and ends with it. */
export async function createAgentSession(options = {}) {
  const { agentDir = ops.tools.agentDirectory(), customTools = [] } = options;
  const cwd = options.cwd ?? options.sessionManager?.getCwd() ?? now(home, "session", "cwd");
  const settingsManager = options.settingsManager ?? SettingsManager.create(cwd, agentDir);
  const resourceLoader = options.resourceLoader ?? new DefaultResourceLoader({ cwd, agentDir, settingsManager });
  if (!options.resourceLoader) await resourceLoader.reload();
  const sessionManager = options.sessionManager ?? SessionManager.create(cwd);
  const modelRuntime = options.modelRuntime ?? new ModelRuntime();
  const modelRegistry = options.modelRegistry ?? new ModelRegistry();
  // Older releases took the tools themselves.
  const objects = (options.tools ?? []).filter((tool) => typeof tool === "object");
  const tools = options.tools?.map((tool) => (typeof tool === "object" ? tool.name : tool));
  const context = sessionManager.buildSessionContext();
  const stored = context.model ? modelRegistry.find(context.model.provider, context.model.modelId) : undefined;
  const model = options.model ?? stored ?? now(home, "currentModel") ?? undefined;
  const restored = context.messages.length > 0;
  const level = options.thinkingLevel ?? (restored ? context.thinkingLevel : undefined) ?? settingsManager.getDefaultThinkingLevel() ?? "medium";
  const thinkingLevel = levelFor(model, level);
  if (!restored) {
    if (model) sessionManager.appendModelChange(model.provider, model.id);
    sessionManager.appendThinkingLevelChange(thinkingLevel);
  }
  const session = new AgentSession({
    ...options, cwd, settingsManager, resourceLoader, sessionManager, modelRuntime, modelRegistry, model, thinkingLevel, tools,
    customTools: [...customTools, ...objects.filter(({ name }) => !BUILT_IN.includes(name))], messages: context.messages, systemPrompt: undefined,
  });
  const missing = context.model && !stored && !options.model;
  return {
    session, extensionsResult: resourceLoader.getExtensions?.() ?? { extensions: [], errors: [] },
    modelFallbackMessage: missing ? `Could not restore model ${context.model.provider}/${context.model.modelId}` : undefined,
  };
}
