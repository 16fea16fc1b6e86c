import type { KubeObject } from "./meta.js";
import type { ObjectKey } from "./kind.js";

/** One turn's input: a key and the newest snapshot of its object. It never says which event woke the policy. */
export interface Request<T extends object = KubeObject> {
  /** Which of the plugin's controllers this turn is for. */
  readonly controller: string;
  /** The object that is to be looked at. */
  readonly key: ObjectKey;
  /** The object, less what `wantedFields` leave out; null: it is gone. Parsed when first looked at; whole numbers beyond 2^53 are bigints. */
  readonly object: T | null;
  /** The object's JSON text, exactly as the API server wrote it. */
  readonly objectText: string | null;
  /** Only if the description says `previous`: the object as of this key's last turn that succeeded. */
  readonly previous: T | null;
  readonly previousText: string | null;
  /** Only with a `finalizer`: the object is being deleted. Clean up, and return `finalized()`. */
  readonly deleting: boolean;
  /** How often this key has failed since its last success. */
  readonly attempt: number;
  /** The effect of this key's last turn that was refused, if one was. */
  readonly last: Refusal | null;
}

/** Why an effect of this key's last turn was refused. */
export interface Refusal {
  /** Position of the effect, from 0. Effects behind it were not tried. */
  effect: number;
  /** HTTP status code. */
  code: number;
  /** Such as `Conflict`. */
  reason: string;
  /** For people. */
  message: string;
}

/** A change of an object that a watch with `"map": "guest"` saw. */
export interface Change {
  /** The object before; null: it is new. */
  readonly old: KubeObject | null;
  readonly oldText: string | null;
  /** The object now; null: it is gone. */
  readonly new: KubeObject | null;
  readonly newText: string | null;
}

/** Changes that are to be mapped to keys. Several may be of one object, in their order. */
export interface MapRequest {
  /** Which of the plugin's controllers the keys are for. */
  readonly controller: string;
  readonly changes: readonly Change[];
}
