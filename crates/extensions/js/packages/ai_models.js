// Models by name, their prices and their thinking levels.

import { ops } from "pinion:ops";

const LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh"];

export function getModel(provider, id) {
  const found = ops.llm.model(String(provider), String(id));
  return found === undefined ? undefined : JSON.parse(found);
}
export const getModels = (provider) => JSON.parse(ops.llm.models(String(provider)));
export const getProviders = () => JSON.parse(ops.llm.providers());

/** Returns the prices for a prompt of this length: some models have higher prices for long prompts. */
function ratesFor({ cost }, prompt) {
  const tiers = (cost.tiers ?? []).filter((tier) => prompt > tier.inputTokensAbove);
  return tiers.sort((left, right) => right.inputTokensAbove - left.inputTokensAbove)[0] ?? cost;
}

/** Sets the cost of `usage` by the prices of `model`, and returns it. */
export function calculateCost(model, usage) {
  const rates = ratesFor(model, usage.input + usage.cacheRead + usage.cacheWrite);
  for (const kind of ["input", "output", "cacheRead", "cacheWrite"]) {
    usage.cost[kind] = (rates[kind] / 1000000) * usage[kind];
  }
  usage.cost.total = usage.cost.input + usage.cost.output + usage.cost.cacheRead + usage.cost.cacheWrite;
  return usage.cost;
}

export function getSupportedThinkingLevels(model) {
  if (!model.reasoning) return ["off"];
  return LEVELS.filter((level) => {
    const mapped = model.thinkingLevelMap?.[level];
    return mapped === undefined ? level !== "xhigh" : mapped !== null;
  });
}

export function clampThinkingLevel(model, level) {
  const levels = getSupportedThinkingLevels(model);
  const wanted = LEVELS.indexOf(level);
  return levels.find((supported) => LEVELS.indexOf(supported) >= wanted) ?? levels.at(-1) ?? "off";
}

export const supportsXhigh = (model) => getSupportedThinkingLevels(model).includes("xhigh");

export const modelsAreEqual = (left, right) =>
  Boolean(left) && Boolean(right) && left.id === right.id && left.provider === right.provider;

export const ANTHROPIC_API_KEY_ENV = "ANTHROPIC_API_KEY";
export const ANTHROPIC_AUTH_TOKEN_ENV = "ANTHROPIC_AUTH_TOKEN";
export const ANTHROPIC_OAUTH_TOKEN_ENV = "ANTHROPIC_OAUTH_TOKEN";

export function findEnvKeys(provider) {
  const names = JSON.parse(ops.llm.environmentKeys(String(provider)));
  return names.length > 0 ? names : undefined;
}
export function getEnvApiKey(provider) {
  const [name] = findEnvKeys(provider) ?? [];
  return name === undefined ? undefined : ops.llm.environmentKey(name);
}
