import type { Effect, JsonPatch } from "./effects.js";

/** What a turn decided. The effects are carried out first, in their order, whatever comes then. */
export interface Outcome {
  effects: Effect[];
  next: Next;
}

/** What comes after the effects. */
export type Next =
  | { tag: "await-change" }
  | { tag: "requeue-after-ms"; val: number }
  | { tag: "requeue" }
  | { tag: "retry"; val: string }
  | { tag: "fail"; val: string }
  | { tag: "finalized" };

/** An effect, or a list of them. */
export type Effects = Effect | JsonPatch | (Effect | JsonPatch)[];

/** All is done; come back when the object changes. */
export function awaitChange(...effects: Effects[]): Outcome;

/** All is done; come back after so many milliseconds (49 days at most), or when the object changes. */
export function requeueAfter(ms: number, ...effects: Effects[]): Outcome;

/** Come back soon, rate limited; no error. */
export function requeue(...effects: Effects[]): Outcome;

/** Something failed that may pass: tried again, rate limited. As a thrown error, but with effects. */
export function retry(message: string, ...effects: Effects[]): Outcome;

/** Something failed that repeating cannot mend: nothing happens until the object or the plugin changes. */
export function fail(message: string, ...effects: Effects[]): Outcome;

/** The clean-up of an object that is being deleted is done: the host takes the finalizer off when all effects have been carried out. */
export function finalized(...effects: Effects[]): Outcome;
