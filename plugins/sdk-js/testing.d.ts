/** For a policy's native tests. */
import type { Effect } from "./src/effects.js";
import type { ObjectKey, ObjectName } from "./src/kind.js";
import type { Outcome } from "./src/outcome.js";
import type { Controller } from "./src/plugin.js";
import type { Refusal } from "./src/request.js";

/** A request for a test. Objects are given as values or as JSON text. */
export interface TestRequest {
  /** If absent, the object is gone, and `key` names it. */
  object?: object | string | null;
  /** Default: the key of the object. */
  key?: ObjectKey;
  /** Default: the first controller of the description. */
  controller?: string;
  previous?: object | string | null;
  deleting?: boolean;
  attempt?: number;
  last?: Refusal | null;
}

/** Calls a policy with an empty cluster. Errors of the policy are thrown. */
export function reconcile(controller: Controller<any>, request: TestRequest): Promise<Outcome>;

/** The host of a policy in a test: objects to read, settings, and the logged lines. */
export class TestHost {
  constructor(cluster?: { objects?: (object | string)[]; settings?: Record<string, string> });
  /**
   * The logged lines, as `info: text`. In native tests `console` is the engine's own and is not
   * recorded.
   */
  lines: string[];
  reconcile(controller: Controller<any>, request: TestRequest): Promise<Outcome>;
  mapChanges(
    controller: Controller<any>,
    request: { controller?: string; changes: { old?: object | string | null; new?: object | string | null }[] },
  ): Promise<ObjectName[]>;
  /** Calls a function that reads or logs. */
  run<R>(call: () => R): R;
}

export type { Effect, Outcome };
