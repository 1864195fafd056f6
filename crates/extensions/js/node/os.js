// node:os

import { ops } from "pinion:ops";
import { Buffer } from "pinion:node/buffer";
import { signals } from "pinion:node/internal_signals";
import process from "pinion:node/process";

const read = (path) => {
	try {
		return Buffer.from(ops.fs.readFile(path, 0)).toString().trim();
	} catch {
		return "";
	}
};
const kilobytes = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(read("/proc/meminfo"))?.[1] ?? 0) * 1024;

export const EOL = "\n";
export const devNull = "/dev/null";
export const arch = () => process.arch;
export const platform = () => process.platform;
export const type = () => (process.platform === "darwin" ? "Darwin" : "Linux");
export const hostname = () => read("/proc/sys/kernel/hostname") || "localhost";
export const release = () => read("/proc/sys/kernel/osrelease");
export const version = () => read("/proc/sys/kernel/version");
export const machine = () => ops.process.arch;
export const endianness = () => (new Uint8Array(new Uint16Array([1]).buffer)[0] === 1 ? "LE" : "BE");
export const uptime = () => Number(read("/proc/uptime").split(" ")[0]);
export const loadavg = () => read("/proc/loadavg").split(" ").slice(0, 3).map(Number);
export const totalmem = () => kilobytes("MemTotal");
export const freemem = () => kilobytes("MemAvailable");
export const homedir = () => process.env.HOME || (ops.process.user()?.[1] ?? "/");
export const tmpdir = () => {
	const found = process.env.TMPDIR || process.env.TMP || process.env.TEMP || "/tmp";
	return found.length > 1 && found.endsWith("/") ? found.slice(0, -1) : found;
};
export const userInfo = () => {
	const [username, home, shell] = ops.process.user() ?? [process.env.USER ?? "", homedir(), null];
	return { uid: ops.process.uid(), gid: ops.process.gid(), username, homedir: home, shell };
};
export const cpus = () => {
	const times = read("/proc/stat").split("\n").filter((line) => /^cpu\d/.test(line)).map((line) => line.split(/\s+/).slice(1).map((ticks) => Number(ticks) * 10));
	const info = read("/proc/cpuinfo");
	const models = [...info.matchAll(/^model name\s*:\s*(.*)$/gm)].map(([, model]) => model);
	const speeds = [...info.matchAll(/^cpu MHz\s*:\s*(.*)$/gm)].map(([, speed]) => Math.round(Number(speed)));
	return times.map(([user, nice, sys, idle, , irq], i) => ({ model: models[i] ?? "unknown", speed: speeds[i] ?? 0, times: { user, nice, sys, idle, irq } }));
};
export const availableParallelism = () => Math.max(1, ops.os.parallelism());
export const networkInterfaces = () => {
	const found = {};
	for (const [name, address, netmask, family, internal] of JSON.parse(ops.os.interfaces())) (found[name] ??= []).push({ address, netmask, family, mac: "00:00:00:00:00:00", internal, cidr: `${address}/${prefix(netmask)}` });
	return found;
};
const prefix = (mask) => (mask.includes(":") ? mask.split(":").reduce((sum, part) => sum + (Number.parseInt(part || "0", 16).toString(2).match(/1/g)?.length ?? 0), 0) : mask.split(".").reduce((sum, part) => sum + (Number(part).toString(2).match(/1/g)?.length ?? 0), 0));
export const getPriority = () => 0;
export const setPriority = () => {};
export const constants = { UV_UDP_REUSEADDR: 4, dlopen: { RTLD_LAZY: 1, RTLD_NOW: 2, RTLD_GLOBAL: 256, RTLD_LOCAL: 0 }, errno: {}, signals, priority: { PRIORITY_LOW: 19, PRIORITY_BELOW_NORMAL: 10, PRIORITY_NORMAL: 0, PRIORITY_ABOVE_NORMAL: -7, PRIORITY_HIGH: -14, PRIORITY_HIGHEST: -20 } };
for (const number of Array.from({ length: 133 }, (_, i) => i + 1)) {
	const name = ops.os.errorName(number);
	if (/^E[A-Z0-9]+$/.test(name)) constants.errno[name] = number;
}

const os = { EOL, devNull, arch, platform, type, hostname, release, version, machine, endianness, uptime, loadavg, totalmem, freemem, homedir, tmpdir, userInfo, cpus, availableParallelism, networkInterfaces, getPriority, setPriority, constants };
export default os;
