// `pi-ai/oauth`: providers that use a login. Extensions may register their own; the built-in logins belong to the
// program, and using one here throws.

import { absent, allAbsent } from "pinion:packages/absent";

const MODULE = "pi-ai/oauth";

export const {
  getGitHubCopilotBaseUrl, loginAnthropic, loginGitHubCopilot, loginOpenAICodex, refreshAnthropicToken, refreshGitHubCopilotToken,
  refreshOpenAICodexToken,
} = allAbsent(MODULE, [
  "getGitHubCopilotBaseUrl", "loginAnthropic", "loginGitHubCopilot", "loginOpenAICodex", "refreshAnthropicToken",
  "refreshGitHubCopilotToken", "refreshOpenAICodexToken",
]);

function builtIn(id, name) {
  const of = (member) => absent(MODULE, `${member} of ${id}`);
  return { id, name, login: of("login"), refreshToken: of("refreshToken"), getApiKey: (credentials) => credentials.access };
}
export const anthropicOAuthProvider = builtIn("anthropic", "Anthropic (Claude Pro/Max)");
export const githubCopilotOAuthProvider = builtIn("github-copilot", "GitHub Copilot");
export const openaiCodexOAuthProvider = builtIn("openai-codex", "ChatGPT Plus/Pro (Codex Subscription)");

const BUILT_IN = [anthropicOAuthProvider, githubCopilotOAuthProvider, openaiCodexOAuthProvider];
const providers = new Map();
export function resetOAuthProviders() {
  providers.clear();
  for (const provider of BUILT_IN) providers.set(provider.id, provider);
}
resetOAuthProviders();

export const getOAuthProvider = (id) => providers.get(id);
export const getOAuthProviders = () => [...providers.values()];
export const getOAuthProviderInfoList = () => getOAuthProviders().map(({ id, name }) => ({ id, name, available: true }));
export const registerOAuthProvider = (provider) => void providers.set(provider.id, provider);
export function unregisterOAuthProvider(id) {
  const original = BUILT_IN.find((provider) => provider.id === id);
  if (original) providers.set(id, original); else providers.delete(id);
}

function known(id) {
  const provider = providers.get(id);
  if (!provider) throw new Error(`Unknown OAuth provider: ${id}`);
  return provider;
}
export const refreshOAuthToken = async (id, credentials) => known(id).refreshToken(credentials);
export async function getOAuthApiKey(id, credentials) {
  const provider = known(id);
  let found = credentials[id];
  if (!found) return null;
  if (Date.now() >= found.expires) found = await provider.refreshToken(found);
  return { newCredentials: found, apiKey: provider.getApiKey(found) };
}

/** Returns the host name of a URL or of a host name; null if it is neither. */
export function normalizeDomain(text) {
  const host = /^(?:https?:\/\/)?([a-z0-9.-]+\.[a-z]{2,}|localhost)(?::\d+)?(?:\/.*)?$/i.exec(text.trim())?.[1];
  return host === undefined ? null : host.toLowerCase();
}
