// The identity that requests carry: user agent and attribution of the client.

export const PI_AI_VERSION = "1.5.0";
export const PI_ATTRIBUTION = { name: "pi", url: "https://pi.dev", categories: ["cli-agent"] };

export function mergeClientIdentity(...sources) {
  let merged;
  for (const source of sources.filter(Boolean)) {
    merged = { ...merged };
    for (const name of ["userAgent", "attribution", "version"]) if (source[name] !== undefined) merged[name] = source[name];
  }
  return merged;
}

export const getClientVersion = (identity) => identity?.version ?? PI_AI_VERSION;

export function formatUserAgent(identity) {
  const { userAgent = "detailed" } = identity ?? {};
  if (typeof userAgent === "object") return userAgent.custom;
  if (userAgent === "short") return "pi";
  const { platform, arch, version, versions } = process;
  return `pi/${getClientVersion(identity)} (${platform}; ${versions.bun ? `bun/${versions.bun}` : `node/${version}`}; ${arch})`;
}

function hostOf(url) {
  try { return new URL(url).hostname; } catch { return ""; }
}
const isOpenCode = ({ provider, baseUrl }) => ["opencode", "opencode-go"].includes(provider) || hostOf(baseUrl) === "opencode.ai";

export function getAttributionHeaders(target, identity) {
  const attribution = identity?.attribution;
  if (!attribution) return {};
  const { name, url, categories = [] } = attribution;
  if (target.provider === "openrouter" || target.baseUrl.includes("openrouter.ai")) {
    const headers = { "HTTP-Referer": url, "X-OpenRouter-Title": name };
    return categories.length === 0 ? headers : { ...headers, "X-OpenRouter-Categories": categories.join(",") };
  }
  if (target.provider === "nvidia" || hostOf(target.baseUrl) === "integrate.api.nvidia.com") {
    return { "X-BILLING-INVOKE-ORIGIN": name.charAt(0).toUpperCase() + name.slice(1) };
  }
  return isOpenCode(target) ? { "x-opencode-client": name } : {};
}
export const getOpenCodeSessionHeaders = (target, sessionId) => (sessionId && isOpenCode(target) ? { "x-opencode-session": sessionId } : undefined);
export const getIdentityHeaders = (target, identity) => ({ "User-Agent": formatUserAgent(identity), ...getAttributionHeaders(target, identity) });

/** Wraps a collection of models so that its requests carry `identity`. */
export function withClientIdentity(models, identity) {
  const requests = { stream: 2, complete: 2, streamSimple: 2, completeSimple: 2, streamDeferred: 2, fetchDeferred: 2, cancelDeferred: 2, generateImages: 2, classify: 2 };
  return new Proxy(models, {
    get(target, key) {
      const member = Reflect.get(target, key);
      if (typeof member !== "function") return member;
      const at = requests[key];
      if (at === undefined) return member.bind(target);
      return (...given) => {
        given[at] = { ...given[at], identity: mergeClientIdentity(identity, given[at]?.identity) };
        return member.apply(target, given);
      };
    },
  });
}
