import type { KubeObject } from "./meta.js";

/** A change that somebody asked for: the request of an AdmissionReview. */
export interface Review<T extends object = KubeObject> {
  /** The name of the webhook in the description that this review is for. */
  readonly webhook: string;
  /** Identifies the review. */
  readonly uid: string;
  /** The kind of the object, in the version that the webhook's rules name. */
  readonly kind: { group: string; version: string; kind: string };
  /** The resource of the request, in the version that the webhook's rules name. */
  readonly resource: { group: string; version: string; resource: string };
  /** For example `status`, `exec`; empty for the object itself. */
  readonly subResource: string;
  /** Empty for a new object with a `generateName`. */
  readonly name: string;
  /** Null for a cluster-scoped object. */
  readonly namespace: string | null;
  readonly operation: ReviewOperation;
  /** Who asks. */
  readonly userInfo: { username?: string; uid?: string; groups?: string[]; extra?: Record<string, string[]> };
  /** The object as it would be stored; null for a deletion. */
  readonly object: T | null;
  /** The object as it is stored; null for a new object. */
  readonly oldObject: T | null;
  /** The options of the request: `CreateOptions` and so on. */
  readonly options: Record<string, unknown> | null;
  /** Whether nothing will be stored. The verdict must be the same. */
  readonly dryRun: boolean;
  /**
   * Allows the request with the object changed to `object`, which must be whole: what it lacks is
   * removed. The patch is the smallest one that is found; without a difference there is none.
   */
  changedTo(object: T): Verdict;
  /**
   * Allows the request with what `change` does to a copy of the object. A request without an object
   * is allowed as it is.
   */
  mutate(change: (object: T) => void): Verdict;
}

export type ReviewOperation = "CREATE" | "UPDATE" | "DELETE" | "CONNECT";

/** Whether a request may go on, and how. Each step returns a new verdict. */
export interface Verdict {
  /** The contract's AdmissionResponse without uid. */
  readonly response: AdmissionResponse;
  /** Adds a warning for the user. At most 120 characters are shown by all clients. */
  warning(message: string): Verdict;
  /** Adds an annotation to the request's audit event. */
  auditAnnotation(key: string, value: string): Verdict;
  /** Requires that `path` has this value; otherwise the request fails. */
  test(path: string, value: unknown): Verdict;
  /** Sets `path` (a JSON pointer) of the object, whether or not it exists. */
  add(path: string, value: unknown): Verdict;
  /** Sets `path`, which must exist. */
  replace(path: string, value: unknown): Verdict;
  /** Removes `path`, which must exist. */
  remove(path: string): Verdict;
}

export interface AdmissionResponse {
  allowed: boolean;
  status?: { message: string; reason?: string; code: number };
  patch?: { op: string; path: string; value?: unknown }[];
  warnings?: string[];
  auditAnnotations?: Record<string, string>;
}

/** Allows the request. */
export function allow(): Verdict;

/**
 * Refuses the request with this text, which the user sees: 403 Forbidden, or another HTTP status
 * (400 to 599) and its reason.
 */
export function deny(message: string, options?: { code?: number; reason?: string }): Verdict;
