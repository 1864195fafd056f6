// An MCP server made with the official package from npm, to be mounted: `server.mjs DIRECTORY`, which has the package.
import { join } from "node:path";
import { createRequire } from "node:module";

const require = createRequire(join(process.argv[2], "package.json"));
const { McpServer } = require("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
const { z } = require("zod");

const server = new McpServer({ name: "lab", version: "3.1" }, { instructions: "Add what you like." });
server.registerTool(
  "add",
  { description: "Adds two numbers.", inputSchema: { a: z.number(), b: z.number() }, outputSchema: { result: z.number() } },
  async ({ a, b }) => {
    console.error(`adding ${a} and ${b}`);
    return { content: [], structuredContent: { result: a + b } };
  },
);
server.registerTool("greet", { description: "Greets somebody.", inputSchema: { name: z.string() } }, async ({ name }) => ({
  content: [{ type: "text", text: `Hello ${name}` }],
}));
server.registerTool("picture", { description: "Shows something." }, async () => ({
  content: [{ type: "image", mimeType: "image/png", data: Buffer.from("hi").toString("base64") }],
}));
server.registerTool("fail", { description: "Fails." }, async () => {
  throw new Error("it rained");
});
await server.connect(new StdioServerTransport());
