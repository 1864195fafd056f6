// Truncation of text that is too long for a model, and the frontmatter of Markdown files.

import { ops } from "pinion:ops";

export const DEFAULT_MAX_LINES = 2000;
export const DEFAULT_MAX_BYTES = 50 * 1024;
const MAX_LINE_LENGTH = 500;

/** Returns the length of a text in UTF-8. */
export const size = (text) => ops.display.byteLength(text);

export function formatSize(bytes) {
  if (bytes < 1024) return `${bytes}B`;
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)}KB` : `${(bytes / (1024 * 1024)).toFixed(1)}MB`;
}

/** Takes whole lines in the given order until a limit is reached. */
function keep(lines, maxLines, maxBytes) {
  const kept = [];
  let bytes = 0;
  for (const line of lines) {
    if (kept.length === maxLines) return { kept, by: "lines" };
    const more = size(line) + (kept.length > 0 ? 1 : 0);
    if (bytes + more > maxBytes) return { kept, by: "bytes" };
    kept.push(line);
    bytes += more;
  }
  return { kept, by: "lines" };
}

function result(content, limits, members) {
  const lines = content.split("\n").length;
  return {
    content, truncated: false, truncatedBy: null, ...limits.totals, outputLines: lines, outputBytes: size(content),
    lastLinePartial: false, firstLineExceedsLimit: false, maxLines: limits.maxLines, maxBytes: limits.maxBytes, ...members,
  };
}

function limitsOf(content, options) {
  const totals = { totalLines: content.split("\n").length, totalBytes: size(content) };
  const maxLines = options.maxLines ?? DEFAULT_MAX_LINES;
  const maxBytes = options.maxBytes ?? DEFAULT_MAX_BYTES;
  return { totals, maxLines, maxBytes, fits: totals.totalLines <= maxLines && totals.totalBytes <= maxBytes };
}

/** Truncates a text to its beginning. */
export function truncateHead(content, options = {}) {
  const limits = limitsOf(content, options);
  if (limits.fits) return result(content, limits, {});
  const { kept, by } = keep(content.split("\n"), limits.maxLines, limits.maxBytes);
  const nothing = kept.length === 0 && by === "bytes";
  return result(kept.join("\n"), limits, { truncated: true, truncatedBy: by, outputLines: kept.length, firstLineExceedsLimit: nothing });
}

/** Truncates a text to its end; a last line that is too long is cut at its start. */
export function truncateTail(content, options = {}) {
  const limits = limitsOf(content, options);
  if (limits.fits) return result(content, limits, {});
  const lines = content.split("\n").reverse();
  const { kept, by } = keep(lines, limits.maxLines, limits.maxBytes);
  if (kept.length === 0 && by === "bytes") {
    return result(ops.display.tail(lines[0], limits.maxBytes), limits, { truncated: true, truncatedBy: "bytes", outputLines: 1, lastLinePartial: true });
  }
  return result(kept.reverse().join("\n"), limits, { truncated: true, truncatedBy: by, outputLines: kept.length });
}

export function truncateLine(line, maxChars = MAX_LINE_LENGTH) {
  return line.length <= maxChars ? { text: line, wasTruncated: false } : { text: `${line.slice(0, maxChars)}... [truncated]`, wasTruncated: true };
}

export function parseFrontmatter(content) {
  return JSON.parse(ops.display.frontmatter(content));
}
export const stripFrontmatter = (content) => parseFrontmatter(content).body;

export function parseSkillBlock(text) {
  const found = /^<skill name="([^"]+)" location="([^"]+)">\n([\s\S]*?)\n<\/skill>(?:\n\n([\s\S]+))?$/.exec(text);
  if (!found) return null;
  const [, name, location, content, message] = found;
  return { name, location, content, userMessage: message?.trim() || undefined };
}
