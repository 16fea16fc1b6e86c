import type { Description } from "./description.js";
import type { ObjectName } from "./kind.js";
import type { KubeObject } from "./meta.js";
import type { Outcome } from "./outcome.js";
import type { MapRequest, Request } from "./request.js";

/**
 * The definition of a plugin. `T` is the type of the primary's objects, with only the fields that
 * the policy needs.
 */
export interface Policy<T extends object = KubeObject> {
  /** The kinds that wake it, and what it may do. */
  description: Description;
  /**
   * Runs one turn: reads the snapshot, returns what the host must do. An error is a transient
   * failure: the host retries the key, rate limited. It must not rely on memory of earlier calls.
   */
  reconcile(request: Request<T>): Outcome | Promise<Outcome>;
  /**
   * For watches with `map: "guest"`: returns the objects of the primary kind to reconcile because
   * of these changes. After an error the changes come again.
   */
  mapChanges?(request: MapRequest): ObjectName[] | Promise<ObjectName[]>;
}

/** The export of a component. */
export interface Controller<T extends object = KubeObject> {
  describe(): string;
  reconcile(record: any): Outcome;
  mapChanges(record: any): { namespace: string | null; name: string }[];
  /** Only in the type: the policy's objects. */
  readonly object?: T;
}

/** Returns the plugin's one export, under this name: `export const controller = plugin({...})`. */
export function plugin<T extends object = KubeObject>(policy: Policy<T>): Controller<T>;
