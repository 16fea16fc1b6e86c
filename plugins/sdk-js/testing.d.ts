/** For a policy's native tests. */
import type { Effect } from "./src/effects.js";
import type { ObjectKey, ObjectName } from "./src/kind.js";
import type { Outcome } from "./src/outcome.js";
import type { Controller } from "./src/plugin.js";
import type { Refusal } from "./src/request.js";

/** A request as the host would make it. Objects are given as they are, or as JSON text. */
export interface TestRequest {
  /** Left out: it is gone, and `key` says which it was. */
  object?: object | string | null;
  /** Left out: that of the object. */
  key?: ObjectKey;
  /** Left out: the description's first. */
  controller?: string;
  previous?: object | string | null;
  deleting?: boolean;
  attempt?: number;
  last?: Refusal | null;
}

/** Calls a policy with an empty cluster. What it throws is thrown. */
export function reconcile(controller: Controller<any>, request: TestRequest): Promise<Outcome>;

/** What the policy finds when a test calls it: objects to read, settings, and a place for what it logs. */
export class TestHost {
  constructor(cluster?: { objects?: (object | string)[]; settings?: Record<string, string> });
  /** What was logged, as `info: text`. In native tests `console` is the engine's own and is not kept. */
  lines: string[];
  reconcile(controller: Controller<any>, request: TestRequest): Promise<Outcome>;
  mapChanges(
    controller: Controller<any>,
    request: { controller?: string; changes: { old?: object | string | null; new?: object | string | null }[] },
  ): Promise<ObjectName[]>;
  /** Calls a function of yours that reads or logs. */
  run<R>(call: () => R): R;
}

export type { Effect, Outcome };
