// Notices about registrations that have no effect here. They go to standard error, one line per extension.

import { isBound } from "pinion:api/bridge";
import { program } from "pinion:api/program";

/** Events that never happen here, and the reason. */
const NEVER = {
  cache_warming_decision: "pinion does not refresh prompt caches",
  project_trust: "pinion decides about trust before it loads extensions",
};

const noted = new Map();

/** Records that a registration of `extension` has no effect, because of `reason`. */
export function note(extension, what, reason) {
  const notes = noted.get(extension) ?? new Map();
  noted.set(extension, notes);
  if (notes.has(what)) return;
  notes.set(what, reason);
  if (isBound()) print(extension.path, [[what, reason]]);
}

/** Records that something drawn by an extension is not shown. */
export function noteRenderer(extension, what) {
  const reason = program.mode === "tui" ? "pinion's screen draws it itself" : "this mode has no screen";
  note(extension, what, reason);
}

/** Records that an event never happens here, if that is so. */
export function noteEvent(extension, event) {
  if (Object.hasOwn(NEVER, event)) note(extension, `on("${event}")`, NEVER[event]);
}

/** Prints the notices of registrations that were made during loading. */
export function printNotices() {
  for (const [extension, notes] of noted) print(extension.path, [...notes]);
}

function print(path, notes) {
  const reasons = new Map();
  for (const [what, reason] of notes) reasons.set(reason, [...(reasons.get(reason) ?? []), what]);
  const parts = [...reasons].map(([reason, whats]) => `${whats.join(", ")} (${reason})`);
  console.error(`Notice: extension "${path}" uses what has no effect here: ${parts.join("; ")}`);
}
