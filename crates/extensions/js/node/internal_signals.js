// Signals by name and number, as on Linux.

export const signals = {
	SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGILL: 4, SIGTRAP: 5, SIGABRT: 6, SIGIOT: 6, SIGBUS: 7, SIGFPE: 8, SIGKILL: 9, SIGUSR1: 10, SIGSEGV: 11, SIGUSR2: 12, SIGPIPE: 13, SIGALRM: 14, SIGTERM: 15, SIGCHLD: 17, SIGSTKFLT: 16, SIGCONT: 18, SIGSTOP: 19, SIGTSTP: 20, SIGTTIN: 21, SIGTTOU: 22, SIGURG: 23, SIGXCPU: 24, SIGXFSZ: 25, SIGVTALRM: 26, SIGPROF: 27, SIGWINCH: 28, SIGIO: 29, SIGPOLL: 29, SIGPWR: 30, SIGSYS: 31,
};

import { coded } from "pinion:node/internal_errors";

/** Returns the number of a signal given by name or number. */
export function signalNumber(signal, fallback = "SIGTERM") {
	if (signal === undefined || signal === null) return signals[fallback];
	if (typeof signal === "number") return signal;
	const found = signals[String(signal).toUpperCase()];
	if (found === undefined) throw coded(TypeError, "ERR_UNKNOWN_SIGNAL", `Unknown signal: ${signal}`);
	return found;
}

/** Returns the name of a signal; null for none. */
export function signalName(number) {
	if (number === null || number === undefined) return null;
	return Object.keys(signals).find((name) => signals[name] === number) ?? `SIG${number}`;
}
