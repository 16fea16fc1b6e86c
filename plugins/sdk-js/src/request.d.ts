import type { KubeObject } from "./meta.js";
import type { ObjectKey } from "./kind.js";

/**
 * The input of one turn: a key and the newest snapshot of its object. It never says which event
 * woke the policy.
 */
export interface Request<T extends object = KubeObject> {
  /** The name of the controller in the description that this turn is for. */
  readonly controller: string;
  /** The object to reconcile. */
  readonly key: ObjectKey;
  /**
   * The object, limited to `wantedFields`; null if it is gone. Parsed on first access; integers
   * beyond 2^53 are bigints.
   */
  readonly object: T | null;
  /** The object's JSON text, exactly as the API server wrote it. */
  readonly objectText: string | null;
  /**
   * The object as of this key's last turn that succeeded; only if the description sets `previous`.
   */
  readonly previous: T | null;
  readonly previousText: string | null;
  /**
   * Whether the object is being deleted; only with a `finalizer`. Clean up, and return
   * `finalized()`.
   */
  readonly deleting: boolean;
  /** The number of failures of this key since its last success. */
  readonly attempt: number;
  /** The refused effect of this key's last turn, or null. */
  readonly last: Refusal | null;
}

/** Why an effect of this key's last turn was refused. */
export interface Refusal {
  /** The index of the effect, from 0. Later effects were not tried. */
  effect: number;
  /** The HTTP status code. */
  code: number;
  /** For example `Conflict`. */
  reason: string;
  /** The human-readable text. */
  message: string;
}

/** A change of an object that a watch with `"map": "guest"` saw. */
export interface Change {
  /** The previous object; null for a new object. */
  readonly old: KubeObject | null;
  readonly oldText: string | null;
  /** The current object; null for a deleted object. */
  readonly new: KubeObject | null;
  readonly newText: string | null;
}

/** The changes to map to keys. Several may be of one object, in order. */
export interface MapRequest {
  /** The name of the controller that the keys are for. */
  readonly controller: string;
  readonly changes: readonly Change[];
}
