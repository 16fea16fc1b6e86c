// Reads a request. Objects are parsed once, on first access.

import { parse } from "./json.js";

/** The input of one turn. */
export class Request {
  #object;
  #previous;

  constructor(record) {
    this.controller = record.controller;
    this.key = { ...record.key, namespace: record.key.namespace ?? null };
    this.objectText = record.object ?? null;
    this.previousText = record.previous ?? null;
    this.deleting = record.deleting;
    // QuickJS' components read a u32 beyond 2^31 as a negative number (componentize-qjs 0.4.5).
    this.attempt = record.attempt >>> 0;
    this.last = record.last ? { ...record.last, effect: record.last.effect >>> 0 } : null;
  }

  get object() {
    this.#object ??= parsed(this.objectText);
    return this.#object;
  }

  get previous() {
    this.#previous ??= parsed(this.previousText);
    return this.#previous;
  }
}

/** A change of an object that a watch with `"map": "guest"` saw. */
export class Change {
  #old;
  #new;

  constructor(record) {
    this.oldText = record.old ?? null;
    this.newText = record.new ?? null;
  }

  get old() {
    this.#old ??= parsed(this.oldText);
    return this.#old;
  }

  get new() {
    this.#new ??= parsed(this.newText);
    return this.#new;
  }
}

/** The changes of one call of mapChanges. */
export class MapRequest {
  constructor(record) {
    this.controller = record.controller;
    this.changes = record.changes.map((change) => new Change(change));
  }
}

function parsed(text) {
  return text === null ? null : parse(text);
}
