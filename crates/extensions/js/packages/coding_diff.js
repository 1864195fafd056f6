// Differences of two texts by lines.

const linesOf = (text) => { const lines = text.split("\n"); if (lines.at(-1) === "") lines.pop(); return lines; };

/** Lines beyond which the middle of two texts is treated as replaced as a whole. */
const MOST_LINES = 3000;

/** Returns the steps from `before` to `after`: `[kind, line]` with the kinds " ", "-" and "+". */
function stepsOf(before, after) {
  let [start, end] = [0, 0];
  const least = Math.min(before.length, after.length);
  while (start < least && before[start] === after[start]) start++;
  while (end < least - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const [old, fresh] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  const same = (lines) => lines.map((line) => [" ", line]);
  return [...same(before.slice(0, start)), ...middle(old, fresh), ...same(before.slice(before.length - end))];
}
function middle(old, fresh) {
  const replaced = [...old.map((line) => ["-", line]), ...fresh.map((line) => ["+", line])];
  if (old.length === 0 || fresh.length === 0 || old.length + fresh.length > MOST_LINES) return replaced;
  const width = fresh.length + 1;
  const common = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = fresh.length - 1; j >= 0; j--) {
      common[i * width + j] = old[i] === fresh[j] ? common[(i + 1) * width + j + 1] + 1 : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const steps = [];
  for (let i = 0, j = 0; i < old.length || j < fresh.length;) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) { steps.push([" ", old[i]]); i++; j++; }
    else if (j >= fresh.length || (i < old.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) steps.push(["-", old[i++]]);
    else steps.push(["+", fresh[j++]]);
  }
  return steps;
}

/** Returns the steps with their line numbers, in hunks with `context` unchanged lines around each change. */
function hunksOf(oldText, newText, context) {
  let [old, fresh] = [1, 1];
  const steps = stepsOf(linesOf(oldText), linesOf(newText)).map(([kind, line]) => {
    const step = { kind, line, old, fresh };
    if (kind !== "+") old++;
    if (kind !== "-") fresh++;
    return step;
  });
  const hunks = [];
  let last = -Infinity;
  for (const [at, { kind }] of steps.entries()) {
    if (kind === " ") continue;
    if (at - last > 2 * context + 1) hunks.push({ from: Math.max(0, at - context), to: at });
    hunks.at(-1).to = Math.min(steps.length, at + context + 1);
    last = at;
  }
  return hunks.map(({ from, to }) => steps.slice(from, to));
}

/** Returns a unified diff of a file. */
export function generateUnifiedPatch(path, oldContent, newContent, contextLines = 4) {
  const hunks = hunksOf(oldContent, newContent, contextLines).map((steps) => {
    const count = (but) => steps.filter(({ kind }) => kind !== but).length;
    const range = (start, length) => (length === 1 ? `${start}` : `${length === 0 ? start - 1 : start},${length}`);
    const [first] = steps;
    return `@@ -${range(first.old, count("+"))} +${range(first.fresh, count("-"))} @@\n${steps.map(({ kind, line }) => `${kind}${line}`).join("\n")}\n`;
  });
  return `--- ${path}\n+++ ${path}\n${hunks.join("")}`;
}

/** Returns a diff with line numbers for people, and the first changed line of the new text. */
export function generateDiffString(oldContent, newContent, contextLines = 4) {
  const hunks = hunksOf(oldContent, newContent, contextLines);
  const width = String(Math.max(linesOf(oldContent).length, linesOf(newContent).length)).length;
  const shown = hunks.map((steps) => steps.map(({ kind, line, old, fresh }) => `${kind}${String(kind === "+" ? fresh : old).padStart(width)} ${line}`).join("\n"));
  const first = hunks[0]?.find(({ kind }) => kind !== " ");
  return { diff: shown.join(`\n ${" ".repeat(width)} ...\n`), firstChangedLine: first?.fresh };
}
