/** For a policy's native tests. */
import type { ConvertedObject } from "./src/batch.js";
import type { Effect } from "./src/effects.js";
import type { ObjectKey, ObjectName } from "./src/kind.js";
import type { Outcome } from "./src/outcome.js";
import type { Controller } from "./src/plugin.js";
import type { Refusal } from "./src/request.js";
import type { AdmissionResponse } from "./src/review.js";

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

/** An answer to an HTTP request. Equal requests are answered in order; the last answer stays. */
export interface TestResponse {
  /** Default: `GET`. */
  method?: string;
  url: string;
  /** Default: 200. */
  status?: number;
  headers?: Record<string, string>;
  /** A text, or a value that is written as JSON. */
  body?: unknown;
}

/** Calls a policy with an empty cluster. Errors of the policy are thrown. */
export function reconcile(controller: Controller<any>, request: TestRequest): Promise<Outcome>;

/**
 * Asks a policy about a request of an AdmissionReview. Default: the first webhook of the
 * description. Errors of the policy are thrown.
 */
export function admit(controller: Controller<any>, request: object | string, webhook?: string): Promise<AdmissionResponse>;

/** Converts objects with a policy. Default: the first conversion of the description. */
export function convert(controller: Controller<any>, desired: string, objects: object[], conversion?: string): Promise<ConvertedObject[]>;

/** The host of a policy in a test: objects to read, settings, and the logged lines. */
export class TestHost {
  constructor(cluster?: { objects?: (object | string)[]; settings?: Record<string, string>; responses?: TestResponse[] });
  /** The HTTP requests that were sent. */
  requests: { method: string; url: string; headers: Record<string, string>; body: string }[];
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
  admit(controller: Controller<any>, request: object | string, webhook?: string): Promise<AdmissionResponse>;
  convert(controller: Controller<any>, desired: string, objects: object[], conversion?: string): Promise<ConvertedObject[]>;
  /** Calls a function that reads or logs. */
  run<R>(call: () => R): R;
}

export type { Effect, Outcome };
