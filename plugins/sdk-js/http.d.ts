/** HTTP requests to services outside of the cluster. */

/** A request besides its URL. */
export interface FetchOptions {
  /** Default: `GET`. */
  method?: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array | ArrayBuffer | null;
  /** How long the answer may take. Default: what is left of the call's time. */
  timeoutMs?: number;
}

/** A response, whatever its status. */
export interface Response {
  readonly status: number;
  /** Whether the status is 2xx. */
  readonly ok: boolean;
  readonly headers: Headers;
  bytes(): Promise<Uint8Array>;
  text(): Promise<string>;
  json(): Promise<any>;
}

/** The headers of a response. */
export interface Headers extends Iterable<[string, string]> {
  /** All values of a header, joined; null if there is none. */
  get(name: string): string | null;
  has(name: string): boolean;
}

/** There is no response. After `no-answer` the request may have been carried out. */
export class HttpError extends Error {
  code: "denied" | "invalid" | "not-sent" | "no-answer" | "too-large";
  detail: string | number;
}

/** Sends a request and waits for the whole response. Redirects are not followed. */
export function fetch(url: string, init?: FetchOptions): Promise<Response>;
