// MCP servers that extensions register, for the extensions that connect such servers.

import { isBound } from "pinion:api/bridge";
import { each } from "pinion:api/handlers";
import { note } from "pinion:api/notices";
import { hasHandlers } from "pinion:api/registry";

const EVENT = "mcp_servers_change";
const servers = new Map();

/** Returns copies of the registered servers. */
export function mcpServers() {
  return [...servers.values()].map(({ server }) => structuredClone(server));
}

/** Registers a server; the same extension may replace its own registration. */
export function registerMcpServer(extension, name, config) {
  check(extension, name, config);
  const server = { name, config: structuredClone(config), extensionPath: extension.path };
  servers.set(name, { extension, server });
  if (isBound()) noteUnconnected();
  announce();
}

/** Records servers that no extension connects. */
export function noteUnconnected() {
  if (hasHandlers(EVENT)) return;
  for (const { extension } of servers.values()) {
    note(extension, "registerMcpServer", "no extension handles mcp_servers_change");
  }
}

function check(extension, name, config) {
  if (typeof name !== "string" || !/^[A-Za-z0-9_-]+$/.test(name)) {
    throw new Error(`Invalid MCP server name "${name}". Use letters, digits, "-" and "_"`);
  }
  const starts = typeof config?.command === "string";
  const connects = typeof config?.url === "string";
  if (starts === connects) throw new Error(`MCP server "${name}" needs either "command" or "url"`);
  const owner = servers.get(name)?.server.extensionPath ?? extension.path;
  if (owner !== extension.path) throw new Error(`MCP server "${name}" is already registered by ${owner}`);
}

/** Removes a server that this extension registered. */
export function unregisterMcpServer(extension, name) {
  if (servers.get(name)?.server.extensionPath === extension.path && servers.delete(name)) announce();
}

// Servers that are registered during loading are read with getMcpServers() on session_start.
function announce() {
  if (isBound() && hasHandlers(EVENT)) each("mcp_servers", EVENT, () => ({ type: EVENT, servers: mcpServers() }));
}
