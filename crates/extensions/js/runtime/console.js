// The console writes to standard error: standard output belongs to the protocol.
import { ops } from "pinion:ops";

let words;
function format(args) {
  words ??= ops.core.load("pinion:node/internal_inspect");
  return words.format(...args);
}

function inspect(value, options) {
  words ??= ops.core.load("pinion:node/internal_inspect");
  return words.inspect(value, options);
}

let indent = "";
const counts = new Map();
const started = new Map();

function write(text) {
  const lines = indent === "" ? text : indent + text.replaceAll("\n", `\n${indent}`);
  ops.core.stderr(`${lines}\n`);
}

function show(...args) {
  write(format(args));
}

function elapsed(label) {
  const milliseconds = performance.now() - started.get(label);
  return milliseconds >= 1000 ? `${(milliseconds / 1000).toFixed(3)}s` : `${milliseconds.toFixed(3)}ms`;
}

function cell(value) {
  return typeof value === "string" ? `'${value}'` : inspect(value, { depth: 0, breakLength: Infinity });
}

function table(data, columns) {
  if (data === null || typeof data !== "object") return show(data);
  const entries = data instanceof Map ? [...data] : data instanceof Set ? [...data].entries() : Object.entries(data);
  const keys = new Set();
  const rows = [];
  let hasValues = false;
  for (const [index, value] of entries) {
    const row = { "(index)": String(index) };
    if (value !== null && typeof value === "object") {
      for (const [key, member] of Object.entries(value)) {
        keys.add(key);
        row[key] = cell(member);
      }
    } else {
      hasValues = true;
      row.Values = cell(value);
    }
    rows.push(row);
  }
  const heads = ["(index)", ...(columns ?? keys), ...(hasValues && !columns ? ["Values"] : [])];
  const widths = heads.map((head) => Math.max(head.length, ...rows.map((row) => (row[head] ?? "").length)) + 2);
  const line = (left, middle, right) => left + widths.map((width) => "─".repeat(width)).join(middle) + right;
  const cells = (row) => `│${heads.map((head, at) => ` ${(row(head) ?? "").padEnd(widths[at] - 1)}`).join("│")}│`;
  write([line("┌", "┬", "┐"), cells((head) => head), line("├", "┼", "┤"), ...rows.map((row) => cells((head) => row[head])), line("└", "┴", "┘")].join("\n"));
}

export const console = {
  log: show,
  info: show,
  debug: show,
  warn: show,
  error: show,
  dirxml: show,
  dir(value, options) {
    write(inspect(value, options));
  },
  trace(...args) {
    const stack = new Error().stack.split("\n").slice(1).join("\n");
    write(`Trace${args.length > 0 ? `: ${format(args)}` : ""}\n${stack.trimEnd()}`);
  },
  assert(condition, ...args) {
    if (!condition) write(args.length > 0 ? `Assertion failed: ${format(args)}` : "Assertion failed");
  },
  table,
  count(label = "default") {
    counts.set(label, (counts.get(label) ?? 0) + 1);
    write(`${label}: ${counts.get(label)}`);
  },
  countReset(label = "default") {
    counts.delete(label);
  },
  time(label = "default") {
    started.set(label, performance.now());
  },
  timeLog(label = "default", ...args) {
    if (started.has(label)) write(`${label}: ${elapsed(label)}${args.length > 0 ? ` ${format(args)}` : ""}`);
  },
  timeEnd(label = "default") {
    if (!started.has(label)) return;
    write(`${label}: ${elapsed(label)}`);
    started.delete(label);
  },
  group(...args) {
    if (args.length > 0) show(...args);
    indent += "  ";
  },
  groupCollapsed(...args) {
    console.group(...args);
  },
  groupEnd() {
    indent = indent.slice(2);
  },
  clear() {},
};
