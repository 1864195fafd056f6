// node:sqlite: databases whose statements run at once.

import { ops } from "pinion:ops";
import { coded, invalidArgType, missing, unsupported } from "pinion:node/internal_errors";
import { pathOf } from "pinion:node/internal_fs";

const native = ops.sqlite;
const INT64 = [-(2n ** 63n), 2n ** 63n - 1n];
const invalid = (message) => coded(Error, "ERR_INVALID_STATE", message);

/** Checks one option; returns its value or the default. */
function option(options, name, otherwise) {
	const value = options[name];
	if (value === undefined) return otherwise;
	if (typeof value !== typeof otherwise) throw invalidArgType(`options.${name}`, typeof otherwise, value);
	return value;
}

/** Converts a parameter to a form that the connection binds: bytes of any view, a BigInt of 64 bits. */
function bound(value, position) {
	if (typeof value === "bigint") {
		if (value < INT64[0] || value > INT64[1]) throw coded(TypeError, "ERR_INVALID_ARG_VALUE", `BigInt value is too large to bind.`);
		return value;
	}
	if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
	if (value === null || typeof value === "number" || typeof value === "string") return value;
	throw coded(TypeError, "ERR_INVALID_ARG_TYPE", `Provided value cannot be bound to SQLite parameter ${position}.`);
}

const isNamed = (value) => value !== null && typeof value === "object" && !ArrayBuffer.isView(value);

export class StatementSync {
	#database; #sql; #names; #columns; #big; #arrays; #bare; #unknown;

	/** Only `DatabaseSync.prepare` creates statements. */
	constructor(database, sql, options) {
		if (!(database instanceof DatabaseSync)) throw coded(TypeError, "ERR_ILLEGAL_CONSTRUCTOR", "Illegal constructor");
		const { parameters, columns } = JSON.parse(native.describe(database._id(), sql));
		[this.#database, this.#sql, this.#names, this.#columns] = [database, sql, parameters, columns];
		[this.#big, this.#arrays, this.#bare, this.#unknown] = [options.big, options.arrays, options.bare, options.unknown];
	}

	get sourceSQL() { return this.#sql; }
	get expandedSQL() { return native.expanded(this.#database._id(), this.#sql, new Array(this.#names.length).fill(null)); }
	columns() { return this.#columns.map(({ name, type }) => ({ __proto__: null, column: null, database: null, name, table: null, type })); }
	setReadBigInts(enabled) { this.#big = Boolean(enabled); }
	setReturnArrays(enabled) { this.#arrays = Boolean(enabled); }
	setAllowBareNamedParameters(enabled) { this.#bare = Boolean(enabled); }
	setAllowUnknownNamedParameters(enabled) { this.#unknown = Boolean(enabled); }

	#positionOf(name) {
		const exact = this.#names.indexOf(name);
		if (exact >= 0 || !this.#bare || /^[$:@]/.test(name)) return exact;
		return this.#names.findIndex((known) => known !== null && known.slice(1) === name);
	}
	/** Returns the values of all parameters; those that are not given are null. */
	#values(given) {
		const values = new Array(this.#names.length).fill(null);
		let rest = given;
		if (isNamed(given[0])) {
			rest = given.slice(1);
			for (const [name, value] of Object.entries(given[0])) {
				const at = this.#positionOf(name);
				if (at >= 0) values[at] = bound(value, at + 1);
				else if (!this.#unknown) throw invalid(`Unknown named parameter '${name}'`);
			}
		}
		let at = 0;
		for (const value of rest) {
			// Positional values go to the parameters without a name, and to numbered ones.
			while (at < values.length && this.#names[at] !== null && !this.#names[at].startsWith("?")) at++;
			if (at >= values.length) throw coded(Error, "ERR_SQLITE_ERROR", "column index out of range");
			values[at] = bound(value, at + 1);
			at++;
		}
		return values;
	}
	#query(given, most) {
		const rows = native.query(this.#database._id(), this.#sql, this.#values(given), most, this.#big);
		if (this.#arrays) return rows;
		return rows.map((row) => {
			const object = { __proto__: null };
			for (const [at, { name }] of this.#columns.entries()) object[name] = row[at];
			return object;
		});
	}

	all(...given) { return this.#query(given, 0xffffffff); }
	get(...given) { return this.#query(given, 1)[0]; }
	*#each(rows) { yield* rows; }
	iterate(...given) { return this.#each(this.all(...given)); }
	run(...given) {
		this.#query(given, 0);
		const [changes, lastInsertRowid] = native.changes(this.#database._id(), this.#big);
		return { changes, lastInsertRowid };
	}
}

export class DatabaseSync {
	#path; #options; #statements; #id;

	constructor(path, options = {}) {
		if (typeof path !== "string" && !(path instanceof Uint8Array) && !(path instanceof URL)) throw coded(TypeError, "ERR_INVALID_ARG_TYPE", 'The "path" argument must be a string, Uint8Array, or URL without null bytes.');
		if (options === null || typeof options !== "object") throw invalidArgType("options", "object", options);
		if (option(options, "allowExtension", false)) throw unsupported("sqlite", "DatabaseSync with allowExtension");
		this.#path = path === ":memory:" || path === "" ? path : pathOf(path, "path");
		this.#options = {
			readOnly: option(options, "readOnly", false), foreignKeys: option(options, "enableForeignKeyConstraints", true),
			quotedStrings: option(options, "enableDoubleQuotedStringLiterals", false), timeout: option(options, "timeout", 0),
		};
		this.#statements = {
			big: option(options, "readBigInts", false), arrays: option(options, "returnArrays", false),
			bare: option(options, "allowBareNamedParameters", true), unknown: option(options, "allowUnknownNamedParameters", false),
		};
		if (option(options, "open", true)) this.open();
	}

	_id() {
		if (this.#id === undefined) throw invalid("database is not open");
		return this.#id;
	}
	get isOpen() { return this.#id !== undefined; }
	get isTransaction() { return native.inTransaction(this._id()); }
	open() {
		if (this.#id !== undefined) throw invalid("database is already open");
		this.#id = native.open(this.#path, JSON.stringify(this.#options));
	}
	close() {
		native.close(this._id());
		this.#id = undefined;
	}
	[Symbol.dispose ?? Symbol.for("Symbol.dispose")]() {
		if (this.#id !== undefined) this.close();
	}
	exec(sql) {
		const id = this._id();
		if (typeof sql !== "string") throw invalidArgType("sql", "string", sql);
		native.exec(id, sql);
	}
	prepare(sql, options = {}) {
		this._id();
		if (typeof sql !== "string") throw invalidArgType("sql", "string", sql);
		const { readBigInts: big, returnArrays: arrays, allowBareNamedParameters: bare, allowUnknownNamedParameters: unknown } = options;
		const given = Object.entries({ big, arrays, bare, unknown }).filter(([, value]) => value !== undefined);
		return new StatementSync(this, sql, { ...this.#statements, ...Object.fromEntries(given) });
	}
	location(name = "main") { return native.location(this._id(), name) ?? null; }
	enableLoadExtension(enabled) {
		if (enabled) throw unsupported("sqlite", "DatabaseSync.enableLoadExtension");
	}
	loadExtension() { throw unsupported("sqlite", "DatabaseSync.loadExtension"); }
	function() { throw unsupported("sqlite", "DatabaseSync.function"); }
	aggregate() { throw unsupported("sqlite", "DatabaseSync.aggregate"); }
	createSession() { throw unsupported("sqlite", "DatabaseSync.createSession"); }
	applyChangeset() { throw unsupported("sqlite", "DatabaseSync.applyChangeset"); }
}

export const backup = missing("sqlite", "backup");
export const constants = { SQLITE_CHANGESET_OMIT: 0, SQLITE_CHANGESET_REPLACE: 1, SQLITE_CHANGESET_ABORT: 2 };
export default { backup, DatabaseSync, StatementSync, constants };
