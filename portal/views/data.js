// The data files of a clip.

import { h, fill, route, download, confirmDialog, problem } from "../dom.js";
import { block } from "../results.js";
import { base64ToBytes, RpcError } from "../connect.js";
import { hub } from "../hub.js";
import { size, moment, count } from "../words.js";

const LONGEST_TEXT = 512 * 1024;
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export async function showData(page) {
  const { main, alias, inside } = page;
  const path = inside.join("/");
  const crumbs = inside.map((name, index) => (index === inside.length - 1
    ? h("span", { "aria-current": "page" }, name)
    : h("a", { href: route("clip", alias, "data", ...inside.slice(0, index + 1)) }, name)));
  const body = h("div");
  fill(main, h("nav.crumbs", { "aria-label": "Folders" }, h("a", { href: route("clip", alias, "data") }, "data"), crumbs), body);
  const stat = path ? await unwrap(hub.read(alias, "stat", path, page)).catch((error) => (error.code === "not_found" || error.code === "invalid_argument" ? null : Promise.reject(error))) : null;
  const entries = (await unwrap(hub.read(alias, "list", path, page)).catch((error) => (stat && error.code !== "resource_exhausted" ? null : Promise.reject(error))))?.entries ?? [];
  if (path && stat?.stat && !entries.length && (await isFile(page, path))) showFile(page, body, path, stat.stat);
  else listing(page, body, inside, entries);
}

/** Throws the error that a file operation returns inside its answer. */
async function unwrap(answer) {
  const response = await answer;
  if (response.error) throw new RpcError(response.error.code || "internal", response.error.message);
  return response;
}

async function isFile(page, path) {
  const parent = path.split("/").slice(0, -1).join("/");
  const name = path.split("/").at(-1);
  const { entries = [] } = await unwrap(hub.read(page.alias, "list", parent, page));
  return entries.some((entry) => entry.name === name && entry.type !== "directory");
}

function listing(page, body, inside, entries) {
  const sorted = [...entries].sort((left, right) => (left.type === "directory" ? 0 : 1) - (right.type === "directory" ? 0 : 1) || left.name.localeCompare(right.name));
  if (!sorted.length) {
    fill(body, h("p.empty", inside.length ? "This folder is empty." : "This clip has no data yet."));
    return;
  }
  const failed = h("div");
  const row = (entry) => {
    const isFolder = entry.type === "directory";
    const path = [...inside, entry.name];
    return h("li.file-row",
      h("a.file-name", { href: route("clip", page.alias, "data", ...path), data: { kind: isFolder ? "folder" : "file" } }, isFolder ? `${entry.name}/` : entry.name),
      h("span.facts", isFolder ? "folder" : [size(entry.size), entry.mime].filter(Boolean).join(" · ")),
      h("span.file-actions",
        isFolder ? null : h("button.small.quiet", { type: "button", "aria-label": `Download ${entry.name}`, on: { click: () => save(page, path.join("/"), failed) } }, "Download"),
        h("button.small.quiet", { type: "button", "aria-label": `Delete ${entry.name}`, on: { click: () => remove(page, path.join("/"), isFolder, failed) } }, "Delete")));
  };
  fill(body, h("p.hint", count(sorted.length, "entry").replace("entrys", "entries")), failed, h("ul.rows", sorted.map(row)));
}

function showFile(page, body, path, stat) {
  const name = path.split("/").at(-1);
  const failed = h("div");
  const content = h("div", h("p.hint", "Reading…"));
  fill(body,
    h("p.facts", [size(stat.size), stat.mime, stat.modified ? `changed ${moment(Date.parse(stat.modified))}` : null].filter(Boolean).join(" · ")),
    h("div.actions",
      h("button.small", { type: "button", on: { click: () => save(page, path, failed) } }, "Download"),
      h("button.small.quiet", { type: "button", on: { click: () => remove(page, path, false, failed) } }, "Delete")),
    failed, content);
  if (Number(stat.size ?? 0) > LONGEST_TEXT && !PICTURES.includes(stat.mime)) {
    fill(content, h("p.empty", `${name} is too large to show. Download it to open it.`));
    return;
  }
  unwrap(hub.read(page.alias, "read", path, page)).then(
    ({ content: base64 = "" }) => fill(content, view(base64, stat.mime, name)),
    (error) => (fill(content), page.fail(error, failed)));
}

function view(base64, mime, name) {
  if (PICTURES.includes(mime)) return h("img.preview", { src: `data:${mime};base64,${base64}`, alt: name });
  const bytes = base64ToBytes(base64);
  if (!bytes.length) return h("p.empty", "This file is empty.");
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\0")) return block(text, mime?.includes("json") ? "json" : "text");
  } catch {
    // Not text.
  }
  return h("p.empty", "This file is not text. Download it to open it.");
}

async function save(page, path, failed) {
  fill(failed);
  try {
    const { content = "" } = await unwrap(hub.read(page.alias, "read", path, page));
    download(path.split("/").at(-1), base64ToBytes(content));
  } catch (error) {
    page.fail(error, failed);
  }
}

async function remove(page, path, isFolder, failed) {
  const sure = await confirmDialog(`Delete ${path}?`, isFolder ? "Only an empty folder can be deleted." : `This deletes the file from the data of ${page.alias} and cannot be undone.`, "Delete");
  if (!sure) return;
  fill(failed);
  try {
    await unwrap(hub.deleteFile(page.alias, path, page));
    page.notify(`${path} was deleted.`);
  } catch (error) {
    if (error.code === "unauthenticated") page.fail(error);
    else fill(failed, problem(error));
    return;
  }
  const folder = path.split("/").slice(0, -1);
  if (folder.join("/") === page.inside.join("/")) await showData(page).catch((error) => page.fail(error, page.main));
  else page.go("clip", page.alias, "data", ...folder);
}
