// Admission: what an API server asks before it stores a change, and the policy's verdict.

import { isObject, options, shape, text } from "./check.js";
import { diff } from "./diff.js";
import { parse, stringify } from "./json.js";

/** The request of an AdmissionReview. Objects are read once, on first access. */
export class Review {
  #object;

  constructor(webhook, requestText) {
    const request = parse(requestText);
    if (!isObject(request)) throw new TypeError(`the review is ${shape(request)}, and must be an object`);
    this.webhook = webhook;
    this.uid = request.uid ?? "";
    this.kind = request.kind;
    this.resource = request.resource;
    this.subResource = request.subResource ?? "";
    this.name = request.name ?? "";
    this.namespace = request.namespace ?? null;
    this.operation = request.operation ?? "";
    this.userInfo = request.userInfo ?? {};
    this.oldObject = request.oldObject ?? null;
    this.options = request.options ?? null;
    this.dryRun = request.dryRun ?? false;
    this.#object = request.object ?? null;
  }

  get object() {
    return this.#object;
  }

  /** Allows the request with the object changed to `object`. */
  changedTo(object) {
    if (this.#object === null) throw new TypeError("a request without an object cannot be changed");
    // What JSON does not write, such as undefined, must not be a difference.
    return allow().with(...diff(this.#object, parse(stringify(object))));
  }

  /** Allows the request with what `change` does to a copy of the object. */
  mutate(change) {
    if (this.#object === null) return allow();
    const object = parse(stringify(this.#object));
    const result = change(object);
    if (result !== undefined) throw new TypeError(`the function of mutate changes the object and returns nothing, but it returned ${shape(result)}`);
    return this.changedTo(object);
  }
}

/** Whether a request may go on, and how. Each step returns a new verdict. */
export class Verdict {
  #response;

  constructor(response) {
    this.#response = response;
  }

  /** The contract's AdmissionResponse without uid. */
  get response() {
    return this.#response;
  }

  warning(message) {
    return this.#and({ warnings: [...(this.#response.warnings ?? []), text(message, "a warning")] });
  }

  auditAnnotation(key, value) {
    const annotation = { [text(key, "the key of an audit annotation")]: text(value, "an audit annotation") };
    return this.#and({ auditAnnotations: { ...this.#response.auditAnnotations, ...annotation } });
  }

  test(path, value) {
    return this.#withValue("test", path, value);
  }

  add(path, value) {
    return this.#withValue("add", path, value);
  }

  replace(path, value) {
    return this.#withValue("replace", path, value);
  }

  remove(path) {
    return this.with({ op: "remove", path: text(path, "the path of remove") });
  }

  /** Adds operations of a JSON patch. */
  with(...operations) {
    return operations.length === 0 ? this : this.#and({ patch: [...(this.#response.patch ?? []), ...operations] });
  }

  #withValue(op, path, value) {
    if (value === undefined) throw new TypeError(`${op} of ${shape(path)} has no value`);
    return this.with({ op, path: text(path, `the path of ${op}`), value });
  }

  #and(more) {
    return new Verdict({ ...this.#response, ...more });
  }
}

/** Allows the request. */
export function allow() {
  return new Verdict({ allowed: true });
}

/** Refuses the request: 403 Forbidden, or another code and reason. */
export function deny(message, settings = {}) {
  const { code = 403, reason = code === 403 ? "Forbidden" : "" } = options(settings, ["code", "reason"], "the options of deny");
  if (!Number.isInteger(code) || code < 400 || code > 599) throw new RangeError(`the code of deny must be 400 to 599, not ${shape(code)}`);
  const status = { message: text(message, "the message of deny"), code };
  if (text(reason, "the reason of deny") !== "") status.reason = reason;
  return new Verdict({ allowed: false, status });
}

/** Returns the value from a policy, if it is a verdict; otherwise throws. */
export function checkedVerdict(value) {
  if (value instanceof Verdict) return value;
  throw new TypeError(`admit returned ${shape(value)} and no verdict, such as allow()`);
}
