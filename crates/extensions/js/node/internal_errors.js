// Errors with the codes that extensions check.

const described = (value) => {
	if (value == null) return String(value);
	if (typeof value === "function") return `function ${value.name}`;
	if (typeof value === "object") return value.constructor?.name ? `an instance of ${value.constructor.name}` : "object";
	let text = typeof value === "string" ? `'${value}'` : String(value);
	if (text.length > 28) text = `${text.slice(0, 25)}...`;
	return `type ${typeof value} (${text})`;
};

/** Creates an error of class `Base` with `code`, which is part of its name. */
export function coded(Base, code, message) {
	const error = new Base(message);
	Object.defineProperty(error, "name", { value: `${error.name} [${code}]`, configurable: true, writable: true, enumerable: false });
	error.stack;
	delete error.name;
	error.code = code;
	return error;
}

export function invalidArgType(name, expected, actual) {
	const kind = name.includes(".") ? "property" : "argument";
	const wanted = Array.isArray(expected) ? `one of type ${expected.join(" or ")}` : /^[a-z]/.test(expected) ? `of type ${expected}` : `an instance of ${expected}`;
	return coded(TypeError, "ERR_INVALID_ARG_TYPE", `The "${name}" ${kind} must be ${wanted}. Received ${described(actual)}`);
}

export function outOfRange(name, range, actual) {
	return coded(RangeError, "ERR_OUT_OF_RANGE", `The value of "${name}" is out of range. It must be ${range}. Received ${String(actual)}`);
}

/** Creates the error for a feature that this host does not provide. */
export function unsupported(module, member) {
	return coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", `${module}.${member} is not available to extensions in pinion`);
}

/** Returns a function that throws this error when it is called. */
export function missing(module, member) {
	return function () {
		throw unsupported(module, member);
	};
}

/** Returns a class that throws this error when it is constructed. */
export function missingClass(module, member) {
	const made = {
		[member]: class {
			constructor() {
				throw unsupported(module, member);
			}
		},
	};
	return made[member];
}

export function abortError(reason) {
	const error = new Error("The operation was aborted", reason === undefined ? undefined : { cause: reason });
	error.name = "AbortError";
	error.code = "ABORT_ERR";
	return error;
}
