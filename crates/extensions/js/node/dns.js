// node:dns: lookups use the system's resolver.

import { ops } from "pinion:ops";
import { missing } from "pinion:node/internal_errors";

export const ADDRCONFIG = 32;
export const V4MAPPED = 8;
export const ALL = 16;
export const NODATA = "ENODATA";
export const NOTFOUND = "ENOTFOUND";

const familyOf = (address) => (address.includes(":") ? 6 : 4);

async function find(name, options) {
	const wanted = typeof options === "number" ? options : options?.family === "IPv4" ? 4 : options?.family === "IPv6" ? 6 : options?.family ?? 0;
	let found;
	try {
		found = await ops.net.lookup(name);
	} catch {
		found = [];
	}
	const list = [...new Set(found)].map((address) => ({ address, family: familyOf(address) })).filter(({ family }) => wanted === 0 || family === wanted);
	if (list.length === 0) throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { errno: -3008, code: "ENOTFOUND", syscall: "getaddrinfo", hostname: name });
	return list;
}

const listed = (family) => async (name) => (await find(name, family)).map(({ address }) => address);
const absent = (name) => missing("dns", name);

export const promises = {
	lookup: async (name, options) => {
		const list = await find(name, options);
		return options?.all ? list : list[0];
	},
	resolve: listed(4),
	resolve4: listed(4),
	resolve6: listed(6),
	reverse: absent("reverse"),
	resolveTxt: absent("resolveTxt"),
	resolveMx: absent("resolveMx"),
	resolveSrv: absent("resolveSrv"),
	setServers() {},
	getServers: () => [],
};

export function lookup(name, options, callback) {
	if (typeof options === "function") [callback, options] = [options, {}];
	find(name, options).then(
		(list) => setImmediate(() => (options?.all ? callback(null, list) : callback(null, list[0].address, list[0].family))),
		(error) => setImmediate(() => callback(error)),
	);
}
lookup[Symbol.for("nodejs.util.promisify.custom")] = promises.lookup;

const called = (work) => (name, ...rest) => {
	const callback = rest.pop();
	work(name).then((list) => setImmediate(() => callback(null, list)), (error) => setImmediate(() => callback(error)));
};
export const resolve = called(promises.resolve);
export const resolve4 = called(promises.resolve4);
export const resolve6 = called(promises.resolve6);
export const reverse = absent("reverse");
export const resolveTxt = absent("resolveTxt");
export const resolveMx = absent("resolveMx");
export const resolveSrv = absent("resolveSrv");
export const setServers = () => {};
export const getServers = () => [];
export const setDefaultResultOrder = () => {};
export const getDefaultResultOrder = () => "verbatim";
export default { ADDRCONFIG, V4MAPPED, ALL, NODATA, NOTFOUND, promises, lookup, resolve, resolve4, resolve6, reverse, resolveTxt, resolveMx, resolveSrv, setServers, getServers, setDefaultResultOrder, getDefaultResultOrder };
