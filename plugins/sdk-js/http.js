// HTTP requests to services outside of the cluster (`wit/http-v1`), as `fetch`. The description
// must name the service (`http`), and package.json says `"vmhost": {"http": true}`. In native tests
// TestHost of testing.js answers.

import { send } from "#http";
import { optionalText, options, text, u32 } from "./src/check.js";
import { decode, encode } from "./src/utf8.js";

/** Why there is no response: `code` is `denied`, `invalid`, `not-sent`, `no-answer` or `too-large`. */
export class HttpError extends Error {
  constructor({ tag, val: told }) {
    // As in a read: QuickJS' components read a u32 beyond 2^31 as a negative number.
    const detail = typeof told === "number" ? told >>> 0 : told;
    super(`the request has no response (${tag}): ${tag === "too-large" ? `larger than ${detail} bytes` : detail}`);
    this.name = "HttpError";
    this.code = tag;
    this.detail = detail;
  }
}

/** A response, whatever its status. */
class Response {
  #body;

  constructor({ status, headers, body }) {
    this.status = status;
    this.ok = status >= 200 && status < 300;
    this.headers = new Headers(headers);
    this.#body = Uint8Array.from(body);
  }

  async bytes() {
    return this.#body;
  }

  async text() {
    return decode(this.#body);
  }

  async json() {
    return JSON.parse(decode(this.#body));
  }
}

/** The headers of a response. */
class Headers {
  #pairs;

  constructor(headers) {
    this.#pairs = headers.map(({ name, value }) => [name.toLowerCase(), value]);
  }

  /** All values of a header, joined; null if there is none. */
  get(name) {
    const values = this.#pairs.filter(([other]) => other === name.toLowerCase()).map(([, value]) => value);
    return values.length === 0 ? null : values.join(", ");
  }

  has(name) {
    return this.get(name) !== null;
  }

  [Symbol.iterator]() {
    return this.#pairs[Symbol.iterator]();
  }
}

const OPTIONS = ["method", "headers", "body", "timeoutMs"];

/** Sends a request and waits for the whole response. Redirects are not followed. */
export async function fetch(url, init = {}) {
  const { method, headers = {}, body, timeoutMs } = options(init, OPTIONS, "fetch");
  const request = {
    method: optionalText(method, "the method of fetch") ?? "GET",
    url: text(url, "the URL of fetch"),
    headers: Object.entries(headers).map(([name, value]) => ({ name, value: text(value, `the header ${name} of fetch`) })),
    body: bytesOf(body),
    timeoutMs: timeoutMs === undefined || timeoutMs === null ? null : u32(timeoutMs, "timeoutMs of fetch"),
  };
  try {
    return new Response(send(request));
  } catch (error) {
    if (typeof error?.payload?.tag === "string") throw new HttpError(error.payload);
    throw error;
  }
}

function bytesOf(body) {
  if (body === undefined || body === null) return new Uint8Array();
  if (typeof body === "string") return encode(body);
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  if (body instanceof Uint8Array) return body;
  throw new TypeError("the body of fetch must be a string, a Uint8Array or an ArrayBuffer; write JSON with JSON.stringify");
}
