// All clips, by provider.

import { h, fill, route, problem } from "../dom.js";
import { statusOf, count } from "../words.js";

let lastSearch = "";

export function showClips({ main, clips, signal, session }) {
  const search = h("input", { type: "search", placeholder: "Search names, packages, commands", "aria-label": "Search clips", value: lastSearch, autocomplete: "off", spellcheck: "false" });
  const summary = h("p.hint", { role: "status" });
  const list = h("div.groups", h("p.empty", "Loading…"));
  const mayManage = session.kind === "super" || session.manage;
  fill(main,
    h("div.page-head", h("h1", "Clips"), h("div.tools", h("div.search", search, h("kbd", { "aria-hidden": "true" }, "/")),
      mayManage ? h("a.button.primary", { href: route("install") }, "Install…") : null)),
    summary,
    list);
  const draw = (all, error) => {
    if (!all) {
      if (error) fill(list, problem(error));
      return;
    }
    lastSearch = search.value;
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = all.filter((clip) => words.every((word) => searchable(clip).includes(word)));
    summary.textContent = words.length ? `${shown.length} of ${count(all.length, "clip")}` : count(all.length, "clip");
    keepFocus(list, () => fill(list, error ? problem(error) : null, groups(shown), shown.length ? null : nothing(all, mayManage)));
  };
  search.addEventListener("input", () => draw(clips.list, clips.error));
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && search.value) {
      event.preventDefault();
      search.value = "";
      draw(clips.list, clips.error);
    } else if (event.key === "Enter") {
      list.querySelector("a.clip-name")?.click();
    }
  });
  clips.watch(draw, signal);
  clips.refresh();
}

function searchable(clip) {
  const commands = (clip.commands ?? []).map((command) => command.name);
  return [clip.name, clip.package, clip.description, clip.domain, clip.provider, clip.owner, ...commands].join("\n").toLowerCase();
}

function groups(clips) {
  const byProvider = Map.groupBy ? Map.groupBy(clips, (clip) => clip.provider || "unknown") : groupBy(clips);
  return [...byProvider].sort(([left], [right]) => left.localeCompare(right)).map(([provider, members]) =>
    h("section.group", { "aria-label": `Provider ${provider}` },
      h("h2", provider, h("span.count", members.length)),
      h("ul.rows", members.map(row))));
}

function groupBy(clips) {
  const groups = new Map();
  for (const clip of clips) {
    const provider = clip.provider || "unknown";
    groups.set(provider, [...(groups.get(provider) ?? []), clip]);
  }
  return groups;
}

function row(clip) {
  const [status, word] = statusOf(clip);
  const facts = [clip.package !== clip.name ? clip.package : null, clip.version ? `v${clip.version}` : null, count((clip.commands ?? []).length, "command"),
    clip.source === "shared" && clip.owner ? `shared by ${clip.owner}` : null].filter(Boolean);
  return h("li.clip-row", { data: { alias: clip.name } },
    h("span.status", { data: { status }, title: clip.statusMessage || word }, word),
    h("div.clip-main",
      h("a.clip-name", { href: route("clip", clip.name), data: { focus: clip.name } }, clip.name),
      clip.tokenProtected ? h("span.badge", { title: "Calls require this clip's secret" }, "secret") : null,
      clip.domain ? h("span.badge", clip.domain) : null,
      h("p.description", clip.description || ""),
      status === "failed" && clip.statusMessage ? h("p.field-error", clip.statusMessage) : null),
    h("span.facts", facts.join(" · ")),
    h("span.clip-links", clip.hasWeb ? h("a.button.small", { href: `/clips/${encodeURIComponent(clip.name)}/`, target: "_blank", rel: "noopener" }, "Open web UI") : null));
}

function nothing(all, mayManage) {
  if (all.length) return h("p.empty", "No clip matches.");
  return h("div.empty", h("p", "This hub has no clips yet."),
    mayManage ? h("p", h("a.button.primary", { href: route("install") }, "Install a clip")) : null);
}

/** Redraws without moving the focus from its row. */
function keepFocus(list, draw) {
  const key = list.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
  draw();
  if (key) list.querySelector(`[data-focus="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}
