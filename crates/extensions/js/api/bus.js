// The event bus between extensions.
//
// A reload passes it on with all listeners; another session gets a new one.

import { ops } from "pinion:ops";
import { describe } from "pinion:api/errors";

class Bus {
  #channels = new Map();

  on(channel, listener) {
    const listeners = this.#channels.get(channel) ?? [];
    listeners.push(listener);
    this.#channels.set(channel, listeners);
    return () => {
      const at = listeners.indexOf(listener);
      if (at >= 0) listeners.splice(at, 1);
    };
  }

  emit(channel, data) {
    for (const listener of [...(this.#channels.get(channel) ?? [])]) {
      try {
        const result = listener(data);
        if (typeof result?.then === "function") result.then(undefined, (error) => report(channel, error));
      } catch (error) {
        report(channel, error);
      }
    }
  }
}

function report(channel, error) {
  console.error(`Event handler error (${channel}):`, error?.stack ?? describe(error));
}

let bus;

/** Opens the bus of this instance: a new one, or with `keep` the one of the instance before. */
export function openBus(keep) {
  bus = (keep && ops.api.keptBus()) || new Bus();
  ops.api.keepBus(bus);
}

/** Returns the object `pi.events`. */
export function events() {
  return {
    on: (channel, listener) => bus.on(channel, listener),
    emit: (channel, data) => bus.emit(channel, data),
  };
}
