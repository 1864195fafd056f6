// The file tools over an extension's files: the extension reads and writes, and the program computes what is shown and
// changed.

import { ops } from "pinion:ops";
import { bufferOf } from "pinion:packages/coding_bash";
import { DEFAULT_MAX_BYTES, formatSize, truncateHead } from "pinion:packages/coding_text";

const NO_LINE_LIMIT = { maxLines: Number.MAX_SAFE_INTEGER };

function refuseAborted(signal) {
  if (signal?.aborted) throw new Error("Operation aborted");
}

const text = (content, details) => ({ content: [{ type: "text", text: content }], details });
const output = ({ content, details }) => ({ content, details });

async function locked(path, work) {
  const id = await ops.tools.lock(path);
  try { return await work(); } finally { ops.tools.unlock(id); }
}

export function readWith(cwd, { operations, autoResizeImages }) {
  return async (_id, params, signal) => {
    refuseAborted(signal);
    const path = ops.tools.resolveExisting(params.path, cwd);
    await operations.access?.(path);
    refuseAborted(signal);
    const mimeType = await operations.detectImageMimeType?.(path);
    const bytes = bufferOf(await operations.readFile(path));
    refuseAborted(signal);
    if (operations.detectImageMimeType && !mimeType) {
      return output(JSON.parse(ops.tools.showText(bytes, JSON.stringify(params))));
    }
    return output(JSON.parse(ops.tools.show(bytes, JSON.stringify(params), autoResizeImages ?? true)));
  };
}

export function writeWith(cwd, { operations }) {
  return (_id, params, signal) => {
    const path = ops.tools.resolve(params.path, cwd);
    return locked(path, async () => {
      refuseAborted(signal);
      await operations.mkdir(path.slice(0, Math.max(1, path.lastIndexOf("/"))));
      refuseAborted(signal);
      await operations.writeFile(path, params.content);
      return text(`Successfully wrote ${params.content.length} bytes to ${params.path}`, undefined);
    });
  };
}

export function editWith(cwd, { operations }) {
  return (_id, params, signal) => {
    const path = ops.tools.resolve(params.path, cwd);
    return locked(path, async () => {
      refuseAborted(signal);
      try { await operations.access(path); } catch (error) {
        const reason = error?.code ? `Error code: ${error.code}` : String(error?.message ?? error);
        throw new Error(`Could not edit file: ${params.path}. ${reason}.`);
      }
      const bytes = bufferOf(await operations.readFile(path));
      refuseAborted(signal);
      const { after, ...result } = JSON.parse(ops.tools.edited(bytes, JSON.stringify(params)));
      await operations.writeFile(path, after);
      return output(result);
    });
  };
}

/** Formats lines like the built-in tools, with notes about omitted ones. */
function listing(lines, notes) {
  const shown = truncateHead(lines.join("\n"), NO_LINE_LIMIT);
  const details = {};
  const words = [];
  for (const { words: note, name, value } of notes) { words.push(note); details[name] = value; }
  if (shown.truncated) { words.push(`${formatSize(DEFAULT_MAX_BYTES)} limit reached`); details.truncation = shown; }
  const ending = words.length > 0 ? `\n\n[${words.join(". ")}]` : "";
  return text(shown.content + ending, Object.keys(details).length > 0 ? details : undefined);
}

export function listWith(cwd, { operations }) {
  return async (_id, params, signal) => {
    refuseAborted(signal);
    const path = ops.tools.resolve(params.path || ".", cwd);
    const limit = params.limit ?? 500;
    if (!(await operations.exists(path))) throw new Error(`Path not found: ${path}`);
    if (!(await operations.stat(path)).isDirectory()) throw new Error(`Not a directory: ${path}`);
    const names = [...(await operations.readdir(path))].sort((left, right) => (left.toLowerCase() < right.toLowerCase() ? -1 : 1));
    const lines = [];
    for (const name of names.slice(0, limit)) {
      try { lines.push((await operations.stat(`${path}/${name}`)).isDirectory() ? `${name}/` : name); } catch { /* Gone, or a link to nowhere. */ }
    }
    if (lines.length === 0) return text("(empty directory)", undefined);
    const more = names.length > limit ? [{ words: `${limit} entries limit reached. Use limit=${limit * 2} for more`, name: "entryLimitReached", value: limit }] : [];
    return listing(lines, more);
  };
}

export function findWith(cwd, { operations }) {
  return async (_id, params, signal) => {
    refuseAborted(signal);
    const root = ops.tools.resolve(params.path || ".", cwd);
    const limit = params.limit ?? 1000;
    if (!(await operations.exists(root))) throw new Error(`Path not found: ${root}`);
    const found = await operations.glob(params.pattern, root, { ignore: ["**/node_modules/**", "**/.git/**"], limit });
    if (found.length === 0) return text("No files found matching pattern", undefined);
    const lines = found.map((path) => (path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path));
    const more = lines.length >= limit ? [{ words: `${limit} results limit reached. Use limit=${limit * 2} for more, or refine pattern`, name: "resultLimitReached", value: limit }] : [];
    return listing(lines, more);
  };
}

/** The program always searches; the extension only reports whether the path exists. */
export function grepWith(cwd, { operations }, native) {
  return async (toolCallId, params, signal, onUpdate) => {
    const path = ops.tools.resolve(params.path || ".", cwd);
    try { await operations.isDirectory(path); } catch { throw new Error(`Path not found: ${path}`); }
    return native(toolCallId, params, signal, onUpdate);
  };
}
