// HTTP/1.1 messages: heads, bodies, and the objects for them.

import { Buffer } from "pinion:node/buffer";
import { coded } from "pinion:node/internal_errors";
import { Readable } from "pinion:node/internal_readable";
import { Writable } from "pinion:node/internal_writable";

export const STATUS_CODES = { 100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints", 200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content", 205: "Reset Content", 206: "Partial Content", 207: "Multi-Status", 208: "Already Reported", 226: "IM Used", 300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified", 305: "Use Proxy", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed", 413: "Payload Too Large", 414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed", 418: "I'm a Teapot", 421: "Misdirected Request", 422: "Unprocessable Entity", 423: "Locked", 424: "Failed Dependency", 425: "Too Early", 426: "Upgrade Required", 428: "Precondition Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large", 451: "Unavailable For Legal Reasons", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported", 506: "Variant Also Negotiates", 507: "Insufficient Storage", 508: "Loop Detected", 509: "Bandwidth Limit Exceeded", 510: "Not Extended", 511: "Network Authentication Required" };
export const METHODS = ["ACL", "BIND", "CHECKOUT", "CONNECT", "COPY", "DELETE", "GET", "HEAD", "LINK", "LOCK", "M-SEARCH", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL", "MOVE", "NOTIFY", "OPTIONS", "PATCH", "POST", "PROPFIND", "PROPPATCH", "PURGE", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH", "SOURCE", "SUBSCRIBE", "TRACE", "UNBIND", "UNLINK", "UNLOCK", "UNSUBSCRIBE"];

// Of these headers the first value counts; the values of all others are joined.
const SINGLE = new Set(["age", "authorization", "content-length", "content-type", "etag", "expires", "from", "host", "if-modified-since", "if-unmodified-since", "last-modified", "location", "max-forwards", "proxy-authorization", "referer", "retry-after", "server", "user-agent"]);

export function headersOf(raw) {
	const headers = {};
	for (let i = 0; i < raw.length; i += 2) {
		const name = raw[i].toLowerCase();
		if (name === "set-cookie") (headers[name] ??= []).push(raw[i + 1]);
		else if (!(name in headers)) headers[name] = raw[i + 1];
		else if (!SINGLE.has(name)) headers[name] += `${name === "cookie" ? "; " : ", "}${raw[i + 1]}`;
	}
	return headers;
}

export class IncomingMessage extends Readable {
	constructor(socket) {
		super({ read() {} });
		Object.assign(this, { socket, connection: socket, httpVersion: "1.1", httpVersionMajor: 1, httpVersionMinor: 1, headers: {}, rawHeaders: [], trailers: {}, rawTrailers: [], method: undefined, url: "", statusCode: undefined, statusMessage: undefined, complete: false, aborted: false });
	}
	get headersDistinct() {
		const found = {};
		for (let i = 0; i < this.rawHeaders.length; i += 2) (found[this.rawHeaders[i].toLowerCase()] ??= []).push(this.rawHeaders[i + 1]);
		return found;
	}
	setTimeout(patience, callback) {
		this.socket?.setTimeout?.(patience, callback);
		return this;
	}
}

/** Names and values of headers, stored as they were written. */
export class OutgoingMessage extends Writable {
	#headers = new Map();
	headersSent = false;
	setHeader(name, value) {
		if (this.headersSent) throw coded(Error, "ERR_HTTP_HEADERS_SENT", "Cannot set headers after they are sent to the client");
		if (typeof name !== "string" || !/^[\^_`a-zA-Z\-0-9!#$%&'*+.|~]+$/.test(name)) throw coded(TypeError, "ERR_INVALID_HTTP_TOKEN", `Header name must be a valid HTTP token ["${name}"]`);
		if (value === undefined) throw coded(TypeError, "ERR_HTTP_INVALID_HEADER_VALUE", `Invalid value "undefined" for header "${name}"`);
		for (const one of [value].flat()) if (/[\r\n\0]/.test(String(one))) throw coded(TypeError, "ERR_INVALID_CHAR", `Invalid character in header content ["${name}"]`);
		this.#headers.set(name.toLowerCase(), [name, value]);
		return this;
	}
	appendHeader(name, value) {
		const before = this.getHeader(name);
		return this.setHeader(name, before === undefined ? value : [before, value].flat());
	}
	setHeaders(headers) {
		for (const [name, value] of headers) this.setHeader(name, value);
		return this;
	}
	getHeader(name) {
		return this.#headers.get(name.toLowerCase())?.[1];
	}
	getHeaders() {
		return Object.fromEntries([...this.#headers].map(([name, [, value]]) => [name, value]));
	}
	getHeaderNames() {
		return [...this.#headers.keys()];
	}
	hasHeader(name) {
		return this.#headers.has(name.toLowerCase());
	}
	removeHeader(name) {
		if (this.headersSent) throw coded(Error, "ERR_HTTP_HEADERS_SENT", "Cannot remove headers after they are sent to the client");
		this.#headers.delete(name.toLowerCase());
	}
	/** Returns the lines for the wire. */
	_headerLines() {
		return [...this.#headers.values()].flatMap(([name, value]) => [value].flat().map((one) => `${name}: ${one}\r\n`)).join("");
	}
	_headerPairs() {
		return [...this.#headers.values()].flatMap(([name, value]) => [value].flat().map((one) => [name, String(one)]));
	}
}

/** Splits the input into heads and bodies. Calls `onHead(lines)`, which returns how the end of the body is found. */
export class Parser {
	#held = Buffer.alloc(0);
	#mode = "head";
	#left = 0;
	constructor({ onHead, onBody, onEnd }) {
		Object.assign(this, { onHead, onBody, onEnd });
	}
	push(bytes) {
		this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
		while (this.#step());
	}
	#line() {
		const end = this.#held.indexOf("\r\n");
		if (end < 0) {
			if (this.#held.length > 65536) throw coded(Error, "HPE_HEADER_OVERFLOW", "Parse Error: Header overflow");
			return undefined;
		}
		const line = this.#held.toString("latin1", 0, end);
		this.#held = this.#held.subarray(end + 2);
		return line;
	}
	#step() {
		switch (this.#mode) {
			case "head": {
				const end = this.#held.indexOf("\r\n\r\n");
				if (end < 0) {
					if (this.#held.length > 65536) throw coded(Error, "HPE_HEADER_OVERFLOW", "Parse Error: Header overflow");
					return false;
				}
				const lines = this.#held.toString("latin1", 0, end).replace(/^(?:\r\n)+/, "").split("\r\n");
				this.#held = this.#held.subarray(end + 4);
				const body = this.onHead(lines);
				if (body === "upgrade") {
					this.#mode = "raw";
					return false;
				}
				this.#mode = body === "chunked" ? "size" : body === "close" ? "close" : "fixed";
				this.#left = typeof body === "number" ? body : 0;
				if (this.#mode === "fixed" && this.#left === 0) this.#finish();
				return true;
			}
			case "size": {
				const line = this.#line();
				if (line === undefined) return false;
				this.#left = Number.parseInt(line, 16);
				if (Number.isNaN(this.#left)) throw coded(Error, "HPE_INVALID_CHUNK_SIZE", "Parse Error: Invalid character in chunk size");
				this.#mode = this.#left === 0 ? "trailer" : "chunk";
				return true;
			}
			case "trailer": {
				const line = this.#line();
				if (line === undefined) return false;
				if (line === "") this.#finish();
				return true;
			}
			case "gap":
				if (this.#held.length < 2) return false;
				this.#held = this.#held.subarray(2);
				this.#mode = "size";
				return true;
			case "close":
				if (this.#held.length > 0) this.onBody(this.#held);
				this.#held = Buffer.alloc(0);
				return false;
			default: {
				if (this.#held.length === 0) return false;
				const piece = this.#held.subarray(0, this.#left);
				this.#held = this.#held.subarray(piece.length);
				this.#left -= piece.length;
				this.onBody(piece);
				if (this.#left > 0) return false;
				if (this.#mode === "chunk") this.#mode = "gap";
				else this.#finish();
				return true;
			}
		}
	}
	#finish() {
		this.#mode = "head";
		this.onEnd();
	}
	/** Returns the bytes after a head that requested another protocol. */
	rest() {
		return this.#held;
	}
}
