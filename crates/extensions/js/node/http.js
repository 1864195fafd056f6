// node:http: servers over node:net, requests over fetch.

import { Buffer } from "pinion:node/buffer";
import { EventEmitter } from "pinion:node/events";
import { abortError, coded } from "pinion:node/internal_errors";
import { IncomingMessage, METHODS, OutgoingMessage, Parser, STATUS_CODES, headersOf } from "pinion:node/internal_http_messages";
import net from "pinion:node/net";
import { urlToHttpOptions } from "pinion:node/url";

export { IncomingMessage, METHODS, OutgoingMessage, STATUS_CODES };
export const maxHeaderSize = 16384;

export class ServerResponse extends OutgoingMessage {
	#chunked = false;
	#request;
	#keep;
	statusCode = 200;
	statusMessage = undefined;
	sendDate = true;
	constructor(request, socket, keep) {
		super({});
		this.#request = request;
		this.#keep = keep;
		this.req = request;
		this.socket = this.connection = socket;
		socket?.once("close", () => {
			if (!this.writableFinished) this.destroy();
		});
	}
	writeHead(status, reason, headers) {
		if (this.headersSent) throw coded(Error, "ERR_HTTP_HEADERS_SENT", "Cannot write headers after they are sent to the client");
		if (typeof reason !== "string") [headers, reason] = [reason, undefined];
		this.statusCode = status;
		if (reason !== undefined) this.statusMessage = reason;
		if (Array.isArray(headers)) {
			const flat = headers.flat();
			for (let i = 0; i < flat.length; i += 2) this.appendHeader(flat[i], flat[i + 1]);
		} else for (const [name, value] of headers instanceof Map ? headers : Object.entries(headers ?? {})) if (value !== undefined) this.setHeader(name, value);
		return this;
	}
	get _bodyless() {
		return this.#request.method === "HEAD" || this.statusCode === 204 || this.statusCode === 304 || this.statusCode < 200;
	}
	/** Sends the head; `length` is the length of the whole body, if it is known. */
	_sendHead(length) {
		if (this.headersSent) return;
		if (this.sendDate && !this.hasHeader("date")) this.setHeader("Date", new Date().toUTCString());
		const told = this.hasHeader("content-length") || this.hasHeader("transfer-encoding") || this._bodyless;
		// Without a length and without chunks, the end of the connection ends the body.
		if (!told && length === undefined && this.#request.httpVersion !== "1.1") this.#keep = false;
		if (!this.hasHeader("connection")) this.setHeader("Connection", this.#keep ? "keep-alive" : "close");
		else if (/close/i.test(String(this.getHeader("connection")))) this.#keep = false;
		if (!told && length !== undefined) this.setHeader("Content-Length", length);
		else if (!told && this.#request.httpVersion === "1.1") this.setHeader("Transfer-Encoding", "chunked");
		this.#chunked = /chunked/i.test(String(this.getHeader("transfer-encoding") ?? "")) && !this._bodyless;
		this.headersSent = true;
		this.socket.write(Buffer.from(`HTTP/1.1 ${this.statusCode} ${this.statusMessage ?? STATUS_CODES[this.statusCode] ?? "unknown"}\r\n${this._headerLines()}\r\n`, "latin1"));
	}
	flushHeaders() {
		this._sendHead();
	}
	writeContinue() {
		this.socket.write("HTTP/1.1 100 Continue\r\n\r\n");
	}
	_write(chunk, encoding, callback) {
		// If the end is already known, the length is sent and no chunks are needed.
		const last = this._writableState.ending && this._writableState.queue.length === 0;
		this._sendHead(last ? chunk.length : undefined);
		if (this._bodyless || chunk.length === 0) return callback();
		if (this.#chunked) this.socket.write(Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n")]), callback);
		else this.socket.write(chunk, callback);
	}
	end(chunk, encoding, callback) {
		if (typeof chunk === "function") [callback, chunk, encoding] = [chunk, undefined, undefined];
		else if (typeof encoding === "function") [callback, encoding] = [encoding, undefined];
		if (!this.headersSent && !this.writableLength && !this.writableEnded) {
			const body = chunk === undefined || chunk === null ? Buffer.alloc(0) : typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk;
			this._sendHead(body.length);
			return body.length > 0 ? super.end(body, callback) : super.end(callback);
		}
		return super.end(chunk, encoding, callback);
	}
	_final(callback) {
		this._sendHead(0);
		const done = () => {
			callback();
			if (this.#keep) this.emit("pinion:next");
			else this.socket.end();
		};
		if (this.#chunked) this.socket.write("0\r\n\r\n", done);
		else done();
	}
	_destroy(error, callback) {
		if (!this.writableFinished) this.socket?.destroy(error ?? undefined);
		callback(error);
	}
	setTimeout(patience, callback) {
		this.socket.setTimeout(patience, callback);
		return this;
	}
}

function serve(server, socket) {
	let request;
	let busy = false;
	let ended = false;
	const ready = [];
	const next = () => {
		busy = ready.length > 0;
		socket.idle = !busy;
		if (busy) answer(ready.shift());
		else if (ended) socket.end();
	};
	const answer = ([incoming, keep]) => {
		const response = new ServerResponse(incoming, socket, keep);
		response.once("pinion:next", next);
		if (/100-continue/i.test(incoming.headers.expect ?? "")) {
			if (server.listenerCount("checkContinue") > 0) return void server.emit("checkContinue", incoming, response);
			response.writeContinue();
		}
		server.emit("request", incoming, response);
	};
	const parser = new Parser({
		onHead([first, ...lines]) {
			const found = /^([A-Z-]+) (\S+) HTTP\/(\d)\.(\d)$/.exec(first);
			if (!found) throw coded(Error, "HPE_INVALID_CONSTANT", "Parse Error: Expected HTTP/");
			request = new IncomingMessage(socket);
			const [, method, url, major, minor] = found;
			const raw = lines.flatMap((line) => {
				const colon = line.indexOf(":");
				return [line.slice(0, colon), line.slice(colon + 1).trim()];
			});
			Object.assign(request, { method, url, httpVersion: `${major}.${minor}`, httpVersionMajor: Number(major), httpVersionMinor: Number(minor), rawHeaders: raw, headers: headersOf(raw) });
			const { headers } = request;
			if (headers.upgrade && /upgrade/i.test(headers.connection ?? "") && server.listenerCount("upgrade") > 0) return "upgrade";
			const keep = minor === "1" ? !/close/i.test(headers.connection ?? "") : /keep-alive/i.test(headers.connection ?? "");
			if (busy) ready.push([request, keep]);
			else {
				busy = true;
				socket.idle = false;
				answer([request, keep]);
			}
			if (/chunked/i.test(headers["transfer-encoding"] ?? "")) return "chunked";
			return Number(headers["content-length"] ?? 0) || 0;
		},
		onBody: (piece) => request.push(Buffer.from(piece)),
		onEnd() {
			request.complete = true;
			request.push(null);
		},
	});
	const onData = (piece) => {
		try {
			parser.push(piece);
		} catch (error) {
			if (server.listenerCount("clientError") > 0) server.emit("clientError", error, socket);
			else socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
			return;
		}
		if (request?.headers.upgrade && !busy && server.listenerCount("upgrade") > 0 && !request.complete) {
			socket.removeListener("data", onData);
			server.emit("upgrade", request, socket, parser.rest());
		}
	};
	socket.idle = true;
	socket.on("data", onData);
	// A client that has ended its side still gets its answers.
	socket.on("end", () => {
		ended = true;
		if (!busy) socket.end();
	});
	socket.on("error", (error) => {
		if (server.listenerCount("clientError") > 0) server.emit("clientError", error, socket);
	});
	socket.on("close", () => {
		if (request && !request.complete) {
			request.aborted = true;
			request.emit("aborted");
			request.destroy();
		}
	});
}

export class Server extends net.Server {
	timeout = 0;
	keepAliveTimeout = 5000;
	headersTimeout = 60000;
	requestTimeout = 300000;
	constructor(options, listener) {
		if (typeof options === "function") [listener, options] = [options, {}];
		super({ ...options, allowHalfOpen: true });
		if (listener) this.on("request", listener);
		this.on("connection", (socket) => serve(this, socket));
	}
	setTimeout(patience) {
		this.timeout = patience;
		return this;
	}
	close(callback) {
		const result = super.close(callback);
		this.closeIdleConnections();
		return result;
	}
}
export const createServer = (options, listener) => new Server(options, listener);

export class Agent extends EventEmitter {
	constructor(options = {}) {
		super();
		Object.assign(this, { options, requests: {}, sockets: {}, freeSockets: {}, maxSockets: options.maxSockets ?? Number.POSITIVE_INFINITY, keepAlive: options.keepAlive ?? false, protocol: "http:" });
	}
	destroy() {}
	getName() {
		return "localhost::";
	}
}
export const globalAgent = new Agent({ keepAlive: true });

export class ClientRequest extends OutgoingMessage {
	#chunks = [];
	#abort = new AbortController();
	#timer;
	constructor(options, callback, protocol) {
		// The end of the request body is not the end of the exchange.
		super({ autoDestroy: false });
		this.protocol = options.protocol ?? protocol;
		this.method = (options.method ?? "GET").toUpperCase();
		this.path = options.path ?? "/";
		this.host = options.hostname ?? options.host ?? "localhost";
		this.port = options.port;
		this.aborted = false;
		this.reusedSocket = false;
		this.socket = this.connection = Object.assign(new EventEmitter(), { setTimeout: (ms, done) => this.setTimeout(ms, done), setNoDelay() {}, setKeepAlive() {}, ref() {}, unref() {}, destroy: (error) => this.destroy(error), connecting: true, encrypted: protocol === "https:" });
		for (const [name, value] of options.headers instanceof Headers ? options.headers : Object.entries(options.headers ?? {})) if (value !== undefined) this.setHeader(name, value);
		if (options.auth && !this.hasHeader("authorization")) this.setHeader("Authorization", `Basic ${Buffer.from(options.auth).toString("base64")}`);
		if (callback) this.once("response", callback);
		if (options.timeout) this.setTimeout(options.timeout);
		if (options.signal?.aborted) setImmediate(() => this.destroy(abortError(options.signal.reason)));
		else options.signal?.addEventListener("abort", () => this.destroy(abortError(options.signal.reason)), { once: true });
		setImmediate(() => this.emit("socket", this.socket));
	}
	_write(chunk, _encoding, callback) {
		this.#chunks.push(chunk);
		callback();
	}
	_final(callback) {
		this.headersSent = true;
		this.#send();
		callback();
	}
	async #send() {
		const name = this.host.includes(":") && !this.host.startsWith("[") ? `[${this.host}]` : this.host;
		const url = `${this.protocol}//${name}${this.port ? `:${this.port}` : ""}${this.path}`;
		const headers = this._headerPairs().filter(([key]) => !/^(host|content-length|connection|transfer-encoding)$/i.test(key));
		const body = this.#chunks.length > 0 ? Buffer.concat(this.#chunks) : undefined;
		try {
			const answer = await fetch(url, { method: this.method, headers, body: body && this.method !== "GET" && this.method !== "HEAD" ? body : undefined, redirect: "manual", signal: this.#abort.signal });
			clearTimeout(this.#timer);
			const incoming = new IncomingMessage(this.socket);
			const raw = [...answer.headers].flatMap(([key, value]) => [key, value]);
			Object.assign(incoming, { statusCode: answer.status, statusMessage: answer.statusText || STATUS_CODES[answer.status], rawHeaders: raw, headers: headersOf(raw), req: this });
			const cookies = answer.headers.getSetCookie?.();
			if (cookies?.length > 0) incoming.headers["set-cookie"] = cookies;
			this.res = incoming;
			incoming.once("end", () => this.destroy());
			incoming._destroy = (error, done) => {
				if (!incoming.complete) this.#abort.abort();
				done(error);
			};
			setImmediate(() => {
				if (!this.emit("response", incoming)) incoming.resume();
				this.#stream(answer, incoming);
			});
		} catch (error) {
			if (this.destroyed) return;
			const cause = error?.cause ?? error;
			if (cause?.code === "ECONNREFUSED") this.destroy(this.#refused());
			else this.destroy(cause instanceof Error ? cause : new Error(String(cause)));
		}
	}
	#refused() {
		const port = Number(this.port || (this.protocol === "https:" ? 443 : 80));
		const error = new Error(`connect ECONNREFUSED ${this.host}:${port}`);
		return Object.assign(error, { errno: -111, code: "ECONNREFUSED", syscall: "connect", address: this.host, port });
	}
	async #stream(answer, incoming) {
		try {
			if (answer.body) {
				const reader = answer.body.getReader();
				for (;;) {
					const { value, done } = await reader.read();
					if (done) break;
					if (!incoming.push(Buffer.from(value)) && !incoming.destroyed) await new Promise((resolve) => {
						incoming._read = () => resolve();
						incoming.once("close", resolve);
					});
					if (incoming.destroyed) return void reader.cancel();
				}
			}
			incoming.complete = true;
			incoming.push(null);
		} catch (error) {
			incoming.destroy(error);
		}
	}
	_destroy(error, callback) {
		clearTimeout(this.#timer);
		if (!this.res) {
			this.#abort.abort();
			return callback(error ?? (this.aborted ? Object.assign(new Error("socket hang up"), { code: "ECONNRESET" }) : null));
		}
		if (!this.res.complete) this.res.destroy(error ?? undefined);
		callback(error);
	}
	abort() {
		this.aborted = true;
		this.emit("abort");
		this.destroy();
	}
	setTimeout(patience, callback) {
		if (callback) this.once("timeout", callback);
		clearTimeout(this.#timer);
		if (patience > 0) this.#timer = setTimeout(() => this.emit("timeout"), patience);
		return this;
	}
	setNoDelay() {}
	setSocketKeepAlive() {}
	flushHeaders() {}
}

/** Creates `request` and `get` for one protocol. */
export function requester(protocol) {
	const request = (target, options, callback) => {
		if (typeof options === "function") [callback, options] = [options, undefined];
		let settings = options ?? {};
		if (typeof target === "string" || target instanceof URL) settings = { ...urlToHttpOptions(new URL(target)), ...options };
		else settings = { ...target, ...options };
		if (settings.socketPath) throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", "http.request with socketPath is not available to extensions in pinion");
		return new ClientRequest(settings, callback, protocol);
	};
	const get = (target, options, callback) => {
		const made = request(target, options, callback);
		made.end();
		return made;
	};
	return { request, get };
}

export const { request, get } = requester("http:");
export const validateHeaderName = () => {};
export const validateHeaderValue = () => {};
export const setMaxIdleHTTPParsers = () => {};
export const { WebSocket } = globalThis;
export default { Agent, ClientRequest, IncomingMessage, METHODS, OutgoingMessage, STATUS_CODES, Server, ServerResponse, createServer, get, globalAgent, maxHeaderSize, request, setMaxIdleHTTPParsers, validateHeaderName, validateHeaderValue };
