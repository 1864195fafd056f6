/** Returns the path of the pinion binary; the variable PINION_BINARY names another one. */
export function pinionPath(): string;
