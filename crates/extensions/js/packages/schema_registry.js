// Formats of strings, and kinds of schema that extensions register.

const date = (text) => {
  const parts = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text);
  if (parts === null) return false;
  const [year, month, day] = parts.slice(1).map(Number);
  return month >= 1 && month <= 12 && day >= 1 && day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
};
const time = (text) => {
  const parts = /^(\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:z|[+-]\d{2}:\d{2})$/i.exec(text);
  return parts !== null && Number(parts[1]) < 24 && Number(parts[2]) < 60 && Number(parts[3]) <= 60;
};
const hostname = (text) => text.length <= 253 && /^(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))*$/i.test(text);
const ipv4 = (text) => /^\d{1,3}(?:\.\d{1,3}){3}$/.test(text) && text.split(".").every((part) => Number(part) < 256 && String(Number(part)) === part);
const ipv6 = (text) => {
  const [head, tail, ...more] = text.split("::");
  if (more.length > 0 || !/^[0-9a-f:.]*$/i.test(text)) return false;
  const groups = (part) => (part === undefined || part === "" ? [] : part.split(":"));
  const all = [...groups(head), ...groups(tail)];
  const last = all.at(-1) ?? "";
  const size = all.length + (last.includes(".") ? 1 : 0);
  const good = all.every((group, at) => (at === all.length - 1 && group.includes(".") ? ipv4(group) : /^[0-9a-f]{1,4}$/i.test(group)));
  return good && (tail === undefined ? size === 8 : size < 8);
};
const email = (text) => {
  const at = text.lastIndexOf("@");
  return at > 0 && /^[^\s@"(),:;<>[\\\]]+$/.test(text.slice(0, at)) && !/^\.|\.\.|\.$/.test(text.slice(0, at)) && hostname(text.slice(at + 1));
};
const regex = (text) => { try { new RegExp(text, "u"); return true; } catch { return false; } };
const uri = (text) => /^[a-z][a-z0-9+.-]*:[^\s<>"{}|\\^`]+$/i.test(text);
const reference = (text) => !/[\s<>"{}|\\^`]/.test(text);
const pointer = (text) => /^(?:\/(?:[^~/]|~0|~1)*)*$/.test(text);

const BUILT_IN = {
  "date-time": (text) => { const at = text.search(/[tT ]/); return at > 0 && date(text.slice(0, at)) && time(text.slice(at + 1)); },
  date, duration: (text) => /^P(?!$)(?:\d+W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?!$)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?)$/.test(text),
  email, hostname,
  "idn-email": (text) => /^[^\s@]+@[^\s@]+$/u.test(text),
  "idn-hostname": (text) => text.length > 0 && !/[\s/]/u.test(text),
  ipv4, ipv6,
  "iri-reference": (text) => !/[\s<>"{}|\\^`]/u.test(text),
  iri: (text) => /^[a-z][a-z0-9+.-]*:[^\s<>"{}|\\^`]+$/iu.test(text),
  "json-pointer-uri-fragment": (text) => text.startsWith("#") && pointer(text.slice(1)),
  "json-pointer": pointer, regex,
  "relative-json-pointer": (text) => { const parts = /^(?:0|[1-9]\d*)(#|.*)$/.exec(text); return parts !== null && (parts[1] === "#" || pointer(parts[1])); },
  time, "uri-reference": reference,
  "uri-template": (text) => /^(?:[^\s<>"{}|\\^`]|\{[^{}\s]+\})*$/.test(text),
  uri, url: (text) => /^(?:https?|ftp):\/\/[^\s/$.?#][^\s]*$/i.test(text),
  uuid: (text) => /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(text),
};

const formats = new Map(Object.entries(BUILT_IN));

/** Formats by name; an unknown one accepts every string. */
export const FormatRegistry = {
  Entries: () => [...formats],
  Get: (name) => formats.get(name),
  Has: (name) => formats.has(name),
  Set: (name, check) => void formats.set(name, check),
  Delete: (name) => formats.delete(name),
  Clear: () => formats.clear(),
  Reset: () => { formats.clear(); for (const [name, check] of Object.entries(BUILT_IN)) formats.set(name, check); },
  Test: (name, text) => formats.get(name)?.(text) ?? true,
};

const kinds = new Map();

/** Checks of kinds that are not part of JSON Schema. */
export const TypeRegistry = {
  Entries: () => new Map(kinds),
  Get: (name) => kinds.get(name),
  Has: (name) => kinds.has(name),
  Set: (name, check) => void kinds.set(name, check),
  Delete: (name) => kinds.delete(name),
  Clear: () => kinds.clear(),
};
