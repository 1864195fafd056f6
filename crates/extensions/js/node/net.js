// node:net: streams over TCP and over sockets in the file system.

import { ops } from "pinion:ops";
import { Buffer } from "pinion:node/buffer";
import { EventEmitter } from "pinion:node/events";
import { BlockList, SocketAddress } from "pinion:node/internal_block_list";
import { coded } from "pinion:node/internal_errors";
import { Duplex } from "pinion:node/internal_writable";

const native = ops.net;
const V4 = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/;

export const isIPv4 = (text) => V4.test(String(text));
export const isIPv6 = (text) => {
	const [address] = String(text).split("%");
	const halves = address.split("::");
	if (!/^[0-9a-f:.]+$/i.test(address) || halves.length > 2) return false;
	let words = halves.flatMap((half) => (half === "" ? [] : half.split(":")));
	const last = words.at(-1);
	if (last?.includes(".")) {
		if (!isIPv4(last)) return false;
		words = [...words.slice(0, -1), "0", "0"];
	}
	return words.every((word) => /^[0-9a-f]{1,4}$/i.test(word)) && (halves.length === 2 ? words.length < 8 : words.length === 8);
};
export const isIP = (text) => (isIPv4(text) ? 4 : isIPv6(text) ? 6 : 0);
const family = (address) => (address.includes(":") ? "IPv6" : "IPv4");

/** Converts a failure to the caller's form: `connect ECONNREFUSED 127.0.0.1:1`. */
function connectionError(error, call, address, port) {
	const target = port === undefined ? address : `${address}:${port}`;
	const unknown = error.code === "EIO";
	const code = unknown ? "ENOTFOUND" : error.code;
	const told = new Error(unknown ? `getaddrinfo ENOTFOUND ${address}` : `${call} ${code}${call === "listen" ? `: ${error.message.split(": ")[1]?.split(",")[0]} ${target}` : ` ${target}`}`);
	Object.assign(told, { errno: unknown ? -3008 : error.errno, code, syscall: unknown ? "getaddrinfo" : call });
	return Object.assign(told, unknown ? { hostname: address } : port === undefined ? { path: address, address } : { address, port });
}

/** Normalises the arguments (options), (port, host), (path). */
function normalize(args) {
	const list = [...args];
	const callback = typeof list.at(-1) === "function" ? list.pop() : undefined;
	const [first, second, third] = list;
	if (first !== null && typeof first === "object") return [first, callback];
	if (typeof first === "string" && !/^\d+$/.test(first)) return [{ path: first }, callback];
	return [{ port: first === undefined ? undefined : Number(first), host: typeof second === "string" ? second : undefined, backlog: typeof second === "number" ? second : third }, callback];
}

export class Socket extends Duplex {
	#id;
	#timer;
	#patience = 0;
	constructor(options = {}) {
		super({ allowHalfOpen: options.allowHalfOpen ?? false, highWaterMark: options.highWaterMark });
		Object.assign(this, { connecting: false, bytesRead: 0, bytesWritten: 0, remoteAddress: undefined, remotePort: undefined, localAddress: undefined, localPort: undefined });
		if (options.signal) options.signal.addEventListener("abort", () => this.destroy(options.signal.reason), { once: true });
	}
	/** Takes over an established connection. */
	_attach(json) {
		const [id, local, remote] = JSON.parse(json);
		this.#id = id;
		this.connecting = false;
		if (local) [this.localAddress, this.localPort] = local;
		if (remote) {
			[this.remoteAddress, this.remotePort] = remote;
			this.remoteFamily = family(this.remoteAddress);
		}
		return this;
	}
	connect(...args) {
		const [options, callback] = normalize(args[0] instanceof Array ? args[0] : args);
		if (callback) this.once("connect", callback);
		this.connecting = true;
		const { path, port } = options;
		const name = options.host ?? "localhost";
		const opening = path === undefined ? native.connect(name, Number(port)) : native.connectPath(path);
		opening.then(
			(json) => {
				const [id] = JSON.parse(json);
				if (this.destroyed) return void native.close(id);
				this._attach(json);
				setImmediate(() => {
					this.emit("connect");
					this.emit("ready");
					this.emit("pinion:open");
				});
			},
			(error) => {
				this.connecting = false;
				this.destroy(path === undefined ? connectionError(error, "connect", name === "localhost" ? "127.0.0.1" : name, port) : connectionError(error, "connect", path));
			},
		);
		return this;
	}
	_read() {
		if (this.#id === undefined) return void this.once("pinion:open", () => this._read());
		native.read(this.#id).then(
			(piece) => {
				this.#touch();
				if (piece === null || piece === undefined) return void this.push(null);
				this.bytesRead += piece.length;
				this.push(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength));
			},
			(error) => this.destroy(error),
		);
	}
	_write(chunk, encoding, callback) {
		if (this.#id === undefined) return void this.once("pinion:open", () => this._write(chunk, encoding, callback));
		const bytes = typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk;
		this.bytesWritten += bytes.length;
		this.#touch();
		native.write(this.#id, bytes).then(() => callback(), callback);
	}
	_writev(parts, callback) {
		this._write(Buffer.concat(parts.map(({ chunk }) => chunk)), "buffer", callback);
	}
	_final(callback) {
		if (this.#id === undefined) {
			if (!this.connecting) return callback();
			return void this.once("pinion:open", () => this._final(callback));
		}
		native.shutdown(this.#id).then(() => callback(), callback);
	}
	_destroy(error, callback) {
		clearTimeout(this.#timer);
		if (this.#id !== undefined) native.close(this.#id);
		this.#id = undefined;
		callback(error);
	}
	#touch() {
		if (this.#patience > 0) {
			clearTimeout(this.#timer);
			this.#timer = setTimeout(() => this.emit("timeout"), this.#patience);
		}
	}
	setTimeout(patience, callback) {
		clearTimeout(this.#timer);
		this.#patience = patience;
		if (callback) {
			if (patience > 0) this.once("timeout", callback);
			else this.removeListener("timeout", callback);
		}
		this.#touch();
		return this;
	}
	setNoDelay() {
		return this;
	}
	setKeepAlive() {
		return this;
	}
	ref() {
		return this;
	}
	unref() {
		return this;
	}
	address() {
		return this.localAddress === undefined ? {} : { address: this.localAddress, family: family(this.localAddress), port: this.localPort };
	}
	destroySoon() {
		if (this.writableFinished) this.destroy();
		else this.end(() => this.destroy());
	}
	resetAndDestroy() {
		return this.destroy();
	}
	get pending() {
		return this.#id === undefined;
	}
	get readyState() {
		if (this.connecting) return "opening";
		return this.readable && this.writable ? "open" : this.readable ? "readOnly" : this.writable ? "writeOnly" : "closed";
	}
}
export const Stream = Socket;

export class Server extends EventEmitter {
	#id;
	#address = null;
	#connections = new Set();
	#closing = false;
	constructor(options, listener) {
		super();
		if (typeof options === "function") [listener, options] = [options, {}];
		this.options = options ?? {};
		this.listening = false;
		if (listener) this.on("connection", listener);
	}
	listen(...args) {
		const [options, callback] = normalize(args);
		if (callback) this.once("listening", callback);
		const { path } = options;
		const name = options.host ?? "::";
		const port = Number(options.port ?? 0);
		// Without IPv6, the server listens on all IPv4 addresses.
		const open = () => (options.host === undefined ? native.listen(name, port).catch((error) => (error.code === "EADDRINUSE" ? Promise.reject(error) : native.listen("0.0.0.0", port))) : native.listen(name, port));
		(path === undefined ? open() : native.listenPath(path)).then(
			(json) => {
				const [id, local] = JSON.parse(json);
				if (this.#closing) return native.closeServer(id);
				this.#id = id;
				this.#address = local ? { address: local[0], family: family(local[0]), port: local[1] } : path;
				this.listening = true;
				this.#accept(id);
				setImmediate(() => this.emit("listening"));
			},
			(error) => setImmediate(() => this.emit("error", path === undefined ? connectionError(error, "listen", name, port) : connectionError(error, "listen", path))),
		);
		options.signal?.addEventListener("abort", () => this.close(), { once: true });
		return this;
	}
	async #accept(id) {
		for (;;) {
			let json;
			try {
				json = await native.accept(id);
			} catch (error) {
				setImmediate(() => this.emit("error", error));
				return;
			}
			if (json === null || json === undefined) return;
			const socket = new Socket({ allowHalfOpen: this.options.allowHalfOpen })._attach(json);
			socket.server = this;
			this.#connections.add(socket);
			socket.once("close", () => {
				this.#connections.delete(socket);
				this.#closed();
			});
			setImmediate(() => {
				this.emit("connection", socket);
				if (!this.options.pauseOnConnect) socket.read(0);
			});
		}
	}
	#closed() {
		if (!this.#closing || this.#connections.size > 0) return;
		this.#closing = false;
		setImmediate(() => this.emit("close"));
	}
	close(callback) {
		if (!this.listening) {
			this.#closing = true;
			const error = coded(Error, "ERR_SERVER_NOT_RUNNING", "Server is not running.");
			if (callback) setImmediate(() => callback(error));
			return this;
		}
		if (callback) this.once("close", callback);
		this.listening = false;
		this.#closing = true;
		native.closeServer(this.#id);
		this.#address = null;
		this.#closed();
		return this;
	}
	closeAllConnections() {
		for (const socket of this.#connections) socket.destroy();
	}
	closeIdleConnections() {
		for (const socket of this.#connections) if (socket.idle) socket.destroy();
	}
	address() {
		return this.#address;
	}
	getConnections(callback) {
		setImmediate(() => callback(null, this.#connections.size));
	}
	ref() {
		return this;
	}
	unref() {
		return this;
	}
	[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
		return new Promise((resolve) => this.close(resolve));
	}
}

export const createServer = (options, listener) => new Server(options, listener);
export const connect = (...args) => new Socket(typeof args[0] === "object" ? args[0] : {}).connect(...args);
export const createConnection = connect;
export const getDefaultAutoSelectFamily = () => true;
export const setDefaultAutoSelectFamily = () => {};
let attemptTimeout = 250;
export const getDefaultAutoSelectFamilyAttemptTimeout = () => attemptTimeout;
export function setDefaultAutoSelectFamilyAttemptTimeout(milliseconds) {
	if (!Number.isInteger(milliseconds) || milliseconds < 1) throw coded(RangeError, "ERR_OUT_OF_RANGE", `The value of "value" is out of range. It must be >= 1. Received ${milliseconds}`);
	attemptTimeout = Math.max(10, milliseconds);
}
export { BlockList, SocketAddress };
export default {
	BlockList, SocketAddress, getDefaultAutoSelectFamilyAttemptTimeout, setDefaultAutoSelectFamilyAttemptTimeout, Socket, Stream, Server, createServer, connect, createConnection, isIP, isIPv4, isIPv6, getDefaultAutoSelectFamily, setDefaultAutoSelectFamily };
