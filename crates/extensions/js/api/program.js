// The program as extensions see it: its mode, and the release of pi whose API it follows.

/** The mode, whether a client can answer dialogs, and whether the API is that of pi 1.x. */
export const program = { hasUi: false, mode: "print", modern: false };

/** Stores the description of the program. */
export function describeProgram({ hasUi, mode, modern }) {
  Object.assign(program, { hasUi, mode, modern });
}

/**
 * Adds members that pi 0.73 does not have. Its extensions may list the members of an object, so they are hidden from
 * lists unless the API is that of pi 1.x.
 */
export function withLater(target, members) {
  for (const [name, member] of Object.entries(Object.getOwnPropertyDescriptors(members ?? {}))) {
    Object.defineProperty(target, name, { ...member, enumerable: program.modern });
  }
  return target;
}

/** Moves the members of `event.later` into the event, see `withLater`. */
export function whole(event) {
  const { later } = event;
  if (later === undefined) return event;
  delete event.later;
  return withLater(event, later);
}
