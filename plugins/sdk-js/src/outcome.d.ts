import type { Effect, JsonPatch } from "./effects.js";

/** The result of a turn. The effects are carried out in order, whatever the next step is. */
export interface Outcome {
  effects: Effect[];
  next: Next;
}

/** The step after the effects. */
export type Next =
  | { tag: "await-change" }
  | { tag: "requeue-after-ms"; val: number }
  | { tag: "requeue" }
  | { tag: "retry"; val: string }
  | { tag: "fail"; val: string }
  | { tag: "finalized" };

/** An effect, or a list of them. */
export type Effects = Effect | JsonPatch | (Effect | JsonPatch)[];

/** Complete: the next turn is after the object changes. */
export function awaitChange(...effects: Effects[]): Outcome;

/**
 * Complete: the next turn is after this many milliseconds (49 days at most), or after the object
 * changes.
 */
export function requeueAfter(ms: number, ...effects: Effects[]): Outcome;

/** Another turn soon, rate limited, without an error. */
export function requeue(...effects: Effects[]): Outcome;

/** A temporary failure: retried, rate limited. Like a thrown error, but with effects. */
export function retry(message: string, ...effects: Effects[]): Outcome;

/** A permanent failure: the next turn is after the object or the plugin changes. */
export function fail(message: string, ...effects: Effects[]): Outcome;

/**
 * The clean-up of an object that is being deleted is complete: the host removes the finalizer after
 * all effects.
 */
export function finalized(...effects: Effects[]): Outcome;
