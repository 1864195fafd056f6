// One clip: its head, the tabs, and the tab that is open.

import { h, fill, route, openDialog, problem } from "../dom.js";
import { statusOf } from "../words.js";
import { hub } from "../hub.js";
import { isAbort } from "../connect.js";
import { showCommands } from "./commands.js";
import { showManifest } from "./manifest.js";
import { showBindings } from "./bindings.js";
import { showData } from "./data.js";
import { showClipLogs } from "./logs.js";

const TABS = {
  run: { title: "Commands", show: showCommands },
  manifest: { title: "Manifest", show: showManifest },
  bindings: { title: "Bindings", show: showBindings },
  data: { title: "Data", show: showData },
  logs: { title: "Logs", show: showClipLogs },
};

export async function showClip(page) {
  const { main, rest, signal, clips } = page;
  const [alias, tab = "run", ...inside] = rest;
  if (!alias) return page.go("clips");
  page.title(inside.length && tab === "run" ? `${alias} ${inside[0]}` : alias);
  const head = h("div.clip-head");
  const body = h("div.tab", { id: "tab" });
  const tabs = Object.entries(TABS).map(([name, { title }]) =>
    h("a", { href: name === "run" ? route("clip", alias) : route("clip", alias, name), "aria-current": name === tab ? "page" : null }, title));
  fill(main,
    h("nav.crumbs", { "aria-label": "Where you are" }, h("a", { href: route("clips") }, "Clips"), h("span", { "aria-current": "page" }, alias)),
    head,
    h("nav.tabs", { "aria-label": `Parts of ${alias}` }, tabs),
    body);
  drawHead(head, alias, undefined, page);
  clips.watch((list) => list && drawHead(head, alias, clips.find(alias) ?? null, page), signal);
  const manifest = await hub.manifest(alias, { signal });
  const open = TABS[tab] ?? TABS.run;
  await open.show({ ...page, main: body, alias, inside, manifest, clip: () => clips.find(alias) });
}

function drawHead(head, alias, clip, page) {
  const [status, word] = statusOf(clip);
  const mayManage = page.session.kind === "super" || page.session.manage;
  const facts = clip ? [clip.package, clip.version ? `v${clip.version}` : null, clip.provider ? `on ${clip.provider}` : null].filter(Boolean) : [];
  const hadFocus = head.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
  fill(head,
    h("div.title-line",
      h("h1", alias),
      clip ? h("span.status", { data: { status } }, word) : null,
      clip === null ? h("span.status", { data: { status: "failed" } }, "Not on this hub") : null),
    h("p.facts", facts.join(" · ")),
    clip?.description ? h("p.description", clip.description) : null,
    clip?.statusMessage ? h(status === "failed" ? "p.field-error" : "p.hint", clip.statusMessage) : null,
    h("div.actions",
      clip?.hasWeb ? h("a.button.small", { href: `/clips/${encodeURIComponent(alias)}/`, target: "_blank", rel: "noopener", data: { focus: "web" } }, "Open web UI") : null,
      mayManage && clip && clip.provider !== "builtin" ? h("button.small.quiet", { type: "button", data: { focus: "remove" }, on: { click: () => removeClip(alias, page) } }, "Remove…") : null));
  if (hadFocus) head.querySelector(`[data-focus="${hadFocus}"]`)?.focus({ preventScroll: true });
}

async function removeClip(alias, page) {
  const removed = await openDialog(`Remove ${alias}?`, (close) => {
    const purge = h("input", { type: "checkbox", id: "purge" });
    const failed = h("div");
    const button = h("button.danger", { type: "submit" }, `Remove ${alias}`);
    const submit = async (event) => {
      event.preventDefault();
      button.disabled = true;
      try {
        await hub.remove(alias, purge.checked, { signal: page.signal });
        close(true);
      } catch (error) {
        if (isAbort(error) || error.code === "unauthenticated") {
          close(null);
          page.fail(error);
        } else {
          fill(failed, problem(error));
        }
      } finally {
        button.disabled = false;
      }
    };
    return h("form", { on: { submit } },
      h("p", "The hub stops the clip and deletes its files. Its data stays for the next clip of this name, unless you delete it too."),
      h("label.check", { for: "purge" }, purge, h("span", "Delete its data too")),
      failed,
      h("div.actions", h("button.quiet", { type: "button", autofocus: true, on: { click: () => close(null) } }, "Cancel"), button));
  });
  if (!removed) return;
  page.notify(`${alias} was removed.`);
  page.go("clips");
  page.clips.refresh();
}
