import type { Batch, ConvertedObject } from "./batch.js";
import type { Description } from "./description.js";
import type { ObjectName } from "./kind.js";
import type { KubeObject } from "./meta.js";
import type { Outcome } from "./outcome.js";
import type { MapRequest, Request } from "./request.js";
import type { Review, Verdict } from "./review.js";

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
   * Absent in a plugin without controllers.
   */
  reconcile?(request: Request<T>): Outcome | Promise<Outcome>;
  /**
   * For watches with `map: "guest"`: returns the objects of the primary kind to reconcile because
   * of these changes. After an error the changes come again.
   */
  mapChanges?(request: MapRequest): ObjectName[] | Promise<ObjectName[]>;
  /**
   * Answers a review of one of the webhooks. An error is no answer: the webhook's failure policy
   * decides about the request.
   */
  admit?(review: Review<any>): Verdict | Promise<Verdict>;
  /**
   * Returns the objects of the batch in the desired version, in their order. An error fails the
   * client's request with its text.
   */
  convert?(batch: Batch): ConvertedObject[] | Promise<ConvertedObject[]>;
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
