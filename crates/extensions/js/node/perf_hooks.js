// node:perf_hooks

import { missing, missingClass } from "pinion:node/internal_errors";

export const performance = globalThis.performance;
if (performance) {
	const entries = [];
	const list = (keep) => entries.filter(keep);
	performance.mark ??= (name, options) => {
		const entry = { name, entryType: "mark", startTime: options?.startTime ?? performance.now(), duration: 0, detail: options?.detail ?? null };
		entries.push(entry);
		return entry;
	};
	performance.measure ??= (name, start, end) => {
		const at = (mark, otherwise) => (typeof mark === "string" ? entries.findLast((entry) => entry.name === mark)?.startTime ?? otherwise : mark ?? otherwise);
		const startTime = at(typeof start === "object" ? start?.start : start, 0);
		const entry = { name, entryType: "measure", startTime, duration: at(typeof start === "object" ? start?.end : end, performance.now()) - startTime, detail: null };
		entries.push(entry);
		return entry;
	};
	performance.getEntries ??= () => [...entries];
	performance.getEntriesByName ??= (name) => list((entry) => entry.name === name);
	performance.getEntriesByType ??= (type) => list((entry) => entry.entryType === type);
	const clear = (type) => (name) => {
		for (let i = entries.length - 1; i >= 0; i--) if (entries[i].entryType === type && (name === undefined || entries[i].name === name)) entries.splice(i, 1);
	};
	performance.clearMarks ??= clear("mark");
	performance.clearMeasures ??= clear("measure");
	performance.timerify ??= (work) => work;
	performance.eventLoopUtilization ??= () => ({ idle: 0, active: 0, utilization: 0 });
	performance.toJSON ??= () => ({ timeOrigin: performance.timeOrigin });
}

export class PerformanceObserver {
	static supportedEntryTypes = [];
	observe() {}
	disconnect() {}
	takeRecords() {
		return [];
	}
}
export const PerformanceEntry = missingClass("perf_hooks", "PerformanceEntry");
export const monitorEventLoopDelay = () => ({ enable: () => true, disable: () => true, reset() {}, percentile: () => 0, min: 0, max: 0, mean: 0, stddev: 0, exceeds: 0 });
export const createHistogram = missing("perf_hooks", "createHistogram");
export const constants = {};
export default { performance, PerformanceObserver, PerformanceEntry, monitorEventLoopDelay, createHistogram, constants };
