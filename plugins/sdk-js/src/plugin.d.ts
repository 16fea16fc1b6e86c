import type { Description } from "./description.js";
import type { ObjectName } from "./kind.js";
import type { KubeObject } from "./meta.js";
import type { Outcome } from "./outcome.js";
import type { MapRequest, Request } from "./request.js";

/** What a plugin is. `T` is the type of the primary's objects, which names only the fields that the policy needs. */
export interface Policy<T extends object = KubeObject> {
  /** Which kinds wake it, and what it may do. */
  description: Description;
  /**
   * One turn: look at the snapshot, return what is to be done. An error is a transient failure: the key is tried again, rate limited.
   * It must not count on memory of earlier calls.
   */
  reconcile(request: Request<T>): Outcome | Promise<Outcome>;
  /** For watches with `map: "guest"`: which objects of the primary kind have to be looked at because of these changes. After an error they come again. */
  mapChanges?(request: MapRequest): ObjectName[] | Promise<ObjectName[]>;
}

/** The export of a component. */
export interface Controller<T extends object = KubeObject> {
  describe(): string;
  reconcile(record: any): Outcome;
  mapChanges(record: any): { namespace: string | null; name: string }[];
  /** Only a type: the policy's objects. */
  readonly object?: T;
}

/** The plugin's one export, under this name: `export const controller = plugin({...})`. */
export function plugin<T extends object = KubeObject>(policy: Policy<T>): Controller<T>;
