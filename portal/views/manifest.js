// The manifest of a clip.

import { h, fill, route } from "../dom.js";
import { block } from "../results.js";

export function showManifest({ main, manifest, alias, clip }) {
  const info = clip() ?? {};
  const facts = [
    ["Alias", manifest.name ?? alias],
    ["Package", manifest.package],
    ["Version", manifest.version],
    ["Domain", manifest.domain],
    ["Provider", info.provider],
    ["Owner", info.owner],
    ["Calls require a secret", info.tokenProtected ? "yes" : null],
    ["Price per call", info.pricePerInvoke],
    ["Web UI", manifest.hasWeb ? h("a", { href: `/clips/${encodeURIComponent(alias)}/`, target: "_blank", rel: "noopener" }, `/clips/${alias}/`) : null],
  ].filter(([, value]) => value);
  fill(main,
    manifest.description ? h("p", manifest.description) : null,
    h("dl.facts-list", facts.map(([name, value]) => [h("dt", name), h("dd", value)])),
    section("Commands", manifest.commands, (commands) => h("ul.plain", commands.map((command) =>
      h("li", h("a", { href: route("clip", alias, "run", command.name) }, h("code", command.name)), command.description ? ` — ${command.description}` : "")))),
    section("How to use it", manifest.patterns, (patterns) => h("ul.plain", patterns.map((pattern) => h("li", pattern)))),
    section("Schedules", manifest.schedules, (schedules) => h("ul.plain", schedules.map((schedule) =>
      h("li", h("code", schedule.cron), " ", h("code", schedule.command), schedule.description ? ` — ${schedule.description}` : "")))),
    section("Entities", Object.entries(manifest.entities ?? {}), (entities) => entities.map(([name, schema]) =>
      h("details", h("summary", name), block(pretty(schema), "json")))),
    h("details", h("summary", "Full manifest"), block(JSON.stringify(manifest, null, 2), "json")));
}

function section(title, entries, draw) {
  return entries?.length ? h("section", h("h2", title), draw(entries)) : null;
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
