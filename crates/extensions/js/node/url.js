// node:url

import { ops } from "pinion:ops";
import { coded, invalidArgType } from "pinion:node/internal_errors";
import { resolve as resolvePath } from "pinion:node/path";
import querystring from "pinion:node/querystring";
import { toASCII, toUnicode } from "pinion:node/punycode";

export const URL = globalThis.URL;
export const URLSearchParams = globalThis.URLSearchParams;

export function fileURLToPath(value) {
	const url = typeof value === "string" ? new URL(value) : value;
	if (typeof url?.href !== "string") throw invalidArgType("path", ["string", "an instance of URL"], value);
	if (url.protocol !== "file:") throw coded(TypeError, "ERR_INVALID_URL_SCHEME", "The URL must be of scheme file");
	if (url.hostname !== "" && url.hostname !== "localhost") throw coded(TypeError, "ERR_INVALID_FILE_URL_HOST", `File URL host must be "localhost" or empty on ${ops.process.system}`);
	if (/%2f/i.test(url.pathname)) throw coded(TypeError, "ERR_INVALID_FILE_URL_PATH", "File URL path must not include encoded / characters");
	return decodeURIComponent(url.pathname);
}

export function pathToFileURL(path) {
	if (typeof path !== "string") throw invalidArgType("path", "string", path);
	let whole = resolvePath(path);
	if (path.endsWith("/") && !whole.endsWith("/")) whole += "/";
	const escaped = whole.replace(/[%\\\n\r\t?#]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
	return new URL(`file://${escaped}`);
}

export function urlToHttpOptions(url) {
	const { hostname } = url;
	const options = { __proto__: null, ...url, protocol: url.protocol, hostname: hostname.startsWith("[") ? hostname.slice(1, -1) : hostname, hash: url.hash, search: url.search, pathname: url.pathname, path: `${url.pathname}${url.search}`, href: url.href };
	if (url.port !== "") options.port = Number(url.port);
	if (url.username || url.password) options.auth = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
	return options;
}

const SLASHED = new Set(["http:", "https:", "ftp:", "gopher:", "file:", "ws:", "wss:"]);
const HOSTLESS = /^javascript:$/i;

export function Url() {
	Object.assign(this, { protocol: null, slashes: null, auth: null, host: null, port: null, hostname: null, hash: null, search: null, query: null, pathname: null, path: null, href: null });
}

Url.prototype.parse = function (text, parseQuery, slashesDenoteHost) {
	if (typeof text !== "string") throw invalidArgType("url", "string", text);
	let rest = text.trim();
	const hash = rest.indexOf("#");
	if (hash >= 0) {
		this.hash = rest.slice(hash);
		rest = rest.slice(0, hash);
	}
	const search = rest.indexOf("?");
	if (search >= 0) {
		this.search = rest.slice(search);
		this.query = this.search.slice(1);
		rest = rest.slice(0, search);
	}
	if (parseQuery) {
		this.search ??= "";
		this.query = querystring.parse(this.query ?? "");
	}
	rest = rest.replaceAll("\\", "/");
	const scheme = /^[a-z][a-z0-9.+-]*:/i.exec(rest)?.[0];
	if (scheme) {
		this.protocol = scheme.toLowerCase();
		rest = rest.slice(scheme.length);
	}
	if ((scheme || slashesDenoteHost || /^\/\/[^@/]+@[^@/]+/.test(rest)) && rest.startsWith("//") && !(scheme && HOSTLESS.test(scheme))) {
		this.slashes = true;
		rest = rest.slice(2);
		const end = rest.search(/[/?#]/);
		let host = end < 0 ? rest : rest.slice(0, end);
		rest = end < 0 ? "" : rest.slice(end);
		const at = host.lastIndexOf("@");
		if (at >= 0) {
			this.auth = decodeURIComponent(host.slice(0, at));
			host = host.slice(at + 1);
		}
		const port = /:([0-9]*)$/.exec(host);
		if (port) {
			if (port[1] !== "") this.port = port[1];
			host = host.slice(0, port.index);
		}
		this.hostname = (host.startsWith("[") ? host.slice(1, -1) : host).toLowerCase();
		this.host = host.toLowerCase() + (this.port ? `:${this.port}` : "");
	} else if (scheme && SLASHED.has(this.protocol) && !rest.startsWith("/")) {
		this.slashes = null;
	}
	if (rest !== "") this.pathname = escapePath(rest);
	else if (this.hostname && SLASHED.has(this.protocol)) this.pathname = "/";
	if (this.pathname || this.search) this.path = (this.pathname ?? "") + (this.search ?? "");
	this.href = this.format();
	return this;
};

const escapePath = (path) => path.replace(/[\s"<>`{}|^'\\]/g, (c) => encodeURIComponent(c).replace("'", "%27"));

Url.prototype.format = function () {
	let protocol = this.protocol ?? "";
	if (protocol && !protocol.endsWith(":")) protocol += ":";
	const auth = this.auth ? `${encodeURIComponent(this.auth).replace(/%3A/i, ":")}@` : "";
	let host = "";
	if (this.host) host = auth + this.host;
	else if (this.hostname) host = auth + (this.hostname.includes(":") ? `[${this.hostname}]` : this.hostname) + (this.port ? `:${this.port}` : "");
	const query = this.query !== null && typeof this.query === "object" ? querystring.stringify(this.query) : "";
	let search = this.search ?? (query && `?${query}`) ?? "";
	let pathname = (this.pathname ?? "").replace(/[?#]/g, encodeURIComponent);
	if (this.slashes || SLASHED.has(protocol)) {
		if (this.slashes || host) {
			if (pathname && !pathname.startsWith("/")) pathname = `/${pathname}`;
			host = `//${host}`;
		} else if (protocol === "file:" && pathname.startsWith("/")) host = "//";
	}
	let hash = this.hash ?? "";
	if (hash && !hash.startsWith("#")) hash = `#${hash}`;
	if (search && !search.startsWith("?")) search = `?${search}`;
	return protocol + host + pathname + search.replaceAll("#", "%23") + hash;
};
Url.prototype.resolve = function (relative) {
	return resolve(this.href, relative);
};

export const parse = (text, parseQuery, slashesDenoteHost) => (text instanceof Url ? text : new Url().parse(text, parseQuery, slashesDenoteHost));

export function format(value, options) {
	if (typeof value === "string") return parse(value).format();
	if (value === null || typeof value !== "object") throw invalidArgType("urlObject", ["object", "string"], value);
	if (value instanceof URL) {
		const copy = new URL(value.href);
		if (options?.fragment === false) copy.hash = "";
		if (options?.search === false) copy.search = "";
		if (options?.auth === false) copy.username = copy.password = "";
		return copy.href;
	}
	return Url.prototype.format.call(value);
}

export function resolve(from, to) {
	const base = new URL(from, "resolve://base");
	const found = new URL(to, base);
	if (found.protocol !== "resolve:") return found.href;
	const text = found.href.slice("resolve://base".length);
	return from.startsWith("/") || to.startsWith("/") ? text : text.replace(/^\//, "");
}
export const resolveObject = (from, to) => parse(resolve(from, to));
export const domainToASCII = (domain) => toASCII(domain);
export const domainToUnicode = (domain) => toUnicode(domain);

const url = { URL, URLSearchParams, Url, fileURLToPath, pathToFileURL, urlToHttpOptions, parse, format, resolve, resolveObject, domainToASCII, domainToUnicode };
export default url;
