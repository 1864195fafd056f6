// Names of later releases: entries as context, images, trust, and paths of the program's own pages.

import { ops } from "pinion:ops";
import { messageOf } from "pinion:packages/coding_compaction";
import { buildSessionContext } from "pinion:packages/coding_session";
import { getImageDimensions } from "pinion:packages/tui_terminal";

export const VIRTUAL_MODEL_STATE_ENTRY = "pi.virtual-model-state";
export const getReadmePath = () => `${ops.tools.programDirectory()}/README.md`;
export const getDocsPath = () => `${ops.tools.programDirectory()}/docs`;
export const getExamplesPath = () => `${ops.tools.programDirectory()}/examples`;
export const isPowerShellToolResult = ({ toolName }) => toolName === "powershell";

export function sessionEntryToContextMessages(entry) {
  const message = messageOf(entry);
  return message === undefined ? [] : [message];
}

/** Returns the entries that the context of a leaf is made of. */
export function buildContextEntries(entries, leafId, byId = new Map(entries.map((entry) => [entry.id, entry]))) {
  const path = [];
  for (let entry = leafId === null ? undefined : byId.get(leafId ?? entries.at(-1)?.id); entry; entry = byId.get(entry.parentId)) path.unshift(entry);
  const at = path.findLastIndex(({ type }) => type === "compaction");
  if (at < 0) return path;
  const kept = path.findIndex(({ id }) => id === path[at].firstKeptEntryId);
  return [path[at], ...(kept < 0 ? [] : path.slice(kept, at).filter(({ type }) => type !== "compaction")), ...path.slice(at + 1)];
}
export function buildSessionProjection(entries, leafId, byId) {
  const context = buildSessionContext(entries, leafId, byId);
  return { ...context, entries: buildContextEntries(entries, leafId, byId) };
}

export function formatReadLineRange(offset, limit) {
  if (offset === undefined && limit === undefined) return "";
  const start = offset ?? 1;
  return limit === undefined ? `:${start}` : `:${start}-${start + limit - 1}`;
}

const MAGIC = [["image/png", [0x89, 0x50, 0x4e, 0x47]], ["image/jpeg", [0xff, 0xd8, 0xff]], ["image/gif", [0x47, 0x49, 0x46, 0x38]], ["image/webp", [0x52, 0x49, 0x46, 0x46]]];
export async function detectSupportedImageMimeTypeFromFile(path) {
  const fd = ops.fs.open(ops.tools.resolve(path, ops.tools.workingDirectory()), 0, 0);
  try {
    const head = ops.fs.read(fd, 16, 0);
    return MAGIC.find(([, bytes]) => bytes.every((byte, at) => head[at] === byte))?.[0] ?? null;
  } finally {
    ops.fs.close(fd);
  }
}

/** Returns the image in the size and the format that a model gets; null if it cannot be read. */
export async function resizeImage(bytes, mimeType) {
  try {
    const { content } = JSON.parse(ops.tools.show(new Uint8Array(bytes), JSON.stringify({ path: `image.${mimeType.split("/")[1]}` }), true));
    const image = content.find(({ type }) => type === "image");
    const before = getImageDimensions(globalThis.Buffer.from(bytes).toString("base64"), mimeType);
    const after = getImageDimensions(image.data, image.mimeType);
    const [original, size] = [before ?? after, after ?? before];
    return {
      data: image.data, mimeType: image.mimeType, originalWidth: original.widthPx, originalHeight: original.heightPx,
      width: size.widthPx, height: size.heightPx, wasResized: original.widthPx !== size.widthPx || original.heightPx !== size.heightPx,
    };
  } catch { return null; }
}
export function formatDimensionNote({ wasResized, originalWidth, originalHeight, width, height }) {
  if (!wasResized) return undefined;
  return `[Image: original ${originalWidth}x${originalHeight}, displayed at ${width}x${height}. Multiply coordinates by ${(originalWidth / width).toFixed(2)} to map to original image.]`;
}

const RESOURCES = ["settings.json", "extensions", "skills", "prompts", "themes", "SYSTEM.md", "APPEND_SYSTEM.md", "mcp.json"];
export function hasTrustRequiringProjectResources(cwd) {
  const names = JSON.parse(ops.tools.listDirectory(`${cwd}/.pi`)).map(({ name }) => name);
  return RESOURCES.some((name) => names.includes(name)) || JSON.parse(ops.tools.listDirectory(`${cwd}/.agents/skills`)).length > 0;
}

/** The decisions about projects, as the program stores them. */
export class ProjectTrustStore {
  #path;
  constructor(agentDir) { this.#path = `${agentDir}/trust.json`; }
  #all() { try { return JSON.parse(ops.tools.readText(this.#path) ?? "{}"); } catch { return {}; } }
  getEntry(cwd) {
    const all = this.#all();
    for (let path = cwd; path !== ""; path = path.slice(0, path.lastIndexOf("/"))) {
      if (typeof all[path] === "boolean") return { path, decision: all[path] };
    }
    return null;
  }
  get(cwd) { return this.getEntry(cwd)?.decision ?? null; }
  set() { throw new Error("set of ProjectTrustStore is not available in this host: trust the project with the program itself"); }
  setMany() { this.set(); }
}
