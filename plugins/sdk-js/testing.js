// A stand-in for the host in a policy's native tests: objects to read, settings, and the logged
// lines. It carries out no effects: a test checks the effects of the outcome.

import { Batch, checkedObjects } from "./src/batch.js";
import { current } from "./src/host.node.js";
import { parse, stringify } from "./src/json.js";
import { checkedKey } from "./src/kind.js";
import { keyOf } from "./src/meta.js";
import { checkedOutcome } from "./src/outcome.js";
import { POLICY } from "./src/plugin.js";
import { MapRequest, Request } from "./src/request.js";
import { checkedVerdict, Review } from "./src/review.js";
import { decode, encode } from "./src/utf8.js";

/** Calls a policy with an empty cluster. */
export function reconcile(controller, request) {
  return new TestHost().reconcile(controller, request);
}

/** Asks a policy about a request of an AdmissionReview, with an empty cluster. */
export function admit(controller, request, webhook) {
  return new TestHost().admit(controller, request, webhook);
}

/** Converts objects with a policy, with an empty cluster. */
export function convert(controller, desired, objects, conversion) {
  return new TestHost().convert(controller, desired, objects, conversion);
}

/** The host of a policy in a test. */
export class TestHost {
  #objects;
  #settings;
  #responses;
  lines = [];
  requests = [];

  constructor({ objects = [], settings = {}, responses = [] } = {}) {
    this.#responses = [...responses];
    this.#objects = objects.map((object) => ({ text: textOf(object), object: typeof object === "string" ? parse(object) : object }));
    this.#settings = settings;
  }

  async reconcile(controller, { object, previous, key, deleting = false, attempt = 0, last = null, controller: name } = {}) {
    const policy = policyOf(controller);
    const text = textOf(object);
    if (key === undefined && text === null) throw new TypeError("a request needs an object or a key");
    const record = {
      controller: name ?? policy.description.controllers[0].name,
      key: key === undefined ? keyOf(parse(text)) : checkedKey(key),
      object: text,
      previous: textOf(previous),
      deleting,
      attempt,
      last,
    };
    return this.run(async () => checkedOutcome(await policy.reconcile(new Request(record))));
  }

  async mapChanges(controller, { changes, controller: name }) {
    const policy = policyOf(controller);
    const record = {
      controller: name ?? policy.description.controllers[0].name,
      changes: changes.map((change) => ({ old: textOf(change.old), new: textOf(change.new) })),
    };
    return this.run(() => policy.mapChanges(new MapRequest(record)));
  }

  async admit(controller, request, webhook) {
    const policy = policyOf(controller);
    const review = new Review(webhook ?? policy.description.webhooks[0].name, textOf(request));
    return this.run(async () => checkedVerdict(await policy.admit(review)).response);
  }

  async convert(controller, desired, objects, conversion) {
    const policy = policyOf(controller);
    const batch = new Batch(conversion ?? policy.description.conversions[0].name, stringify({ desiredAPIVersion: desired, objects }));
    return this.run(async () => checkedObjects(await policy.convert(batch)));
  }

  /** Calls a function that reads or logs. */
  run(call) {
    return current.run(this, call);
  }

  // host.node.js calls the remaining methods.

  log(level, message) {
    this.lines.push(`${level}: ${message}`);
  }

  setting(name) {
    return Object.hasOwn(this.#settings, name) ? this.#settings[name] : null;
  }

  get(key) {
    const wanted = JSON.stringify(key);
    return this.#objects.find(({ object }) => JSON.stringify(keyOf(object)) === wanted)?.text ?? null;
  }

  send({ method, url, headers, body }) {
    this.requests.push({ method, url, headers: Object.fromEntries(headers.map(({ name, value }) => [name, value])), body: decode(body) });
    const isIt = (response) => (response.method ?? "GET") === method && response.url === url;
    const found = this.#responses.filter(isIt);
    if (found.length === 0) throw { payload: { tag: "not-sent", val: `the test gives no answer to ${method} ${url}` } };
    if (found.length > 1) this.#responses.splice(this.#responses.indexOf(found[0]), 1);
    const { status = 200, headers: given = {}, body: answer = "" } = found[0];
    const named = Object.entries(given).map(([name, value]) => ({ name: name.toLowerCase(), value }));
    return { status, headers: named, body: encode(typeof answer === "string" ? answer : stringify(answer)) };
  }

  getMany(keys) {
    return keys.map((key) => this.get(key));
  }

  list({ kind, namespace, labelSelector, index, owner, metadataOnly, limit, continue: token }) {
    if (index !== null) throw invalid("the test host has no indexes");
    const found = this.#objects.filter(({ object }) => {
      const key = keyOf(object);
      const isOfKind = JSON.stringify(key.kind) === JSON.stringify(kind);
      const isOwned = owner === null || object.metadata.ownerReferences?.some(({ uid }) => uid === owner);
      return isOfKind && (namespace === null || key.namespace === namespace) && isOwned && hasLabels(object, labelSelector);
    });
    const order = ({ object: { metadata } }) => `${metadata.namespace ?? ""}/${metadata.name}`;
    found.sort((a, b) => (order(a) < order(b) ? -1 : 1));
    const start = Number(token ?? 0);
    const end = start + (limit || 500);
    const only = ({ apiVersion, kind, metadata }) => stringify({ apiVersion, kind, metadata });
    const objects = found.slice(start, end).map(({ text, object }) => (metadataOnly ? only(object) : text));
    return { objects, continue: end < found.length ? String(end) : null };
  }
}

/** Supports `a=b,c`, which is enough for tests. */
function hasLabels(object, selector) {
  return (selector ?? "").split(",").every((term) => {
    if (term === "") return true;
    if (/[!()]/.test(term)) throw invalid(`the test host knows a=b and a only, not ${term}`);
    const [label, value] = term.split("=");
    const have = object.metadata.labels?.[label];
    return have !== undefined && (value === undefined || have === value);
  });
}

const invalid = (reason) => ({ payload: { tag: "invalid", val: reason } });

const textOf = (object) => (object === undefined || object === null ? null : typeof object === "string" ? object : stringify(object));

function policyOf(controller) {
  if (controller?.[POLICY] === undefined) throw new TypeError("the first argument must be what plugin() made");
  return controller[POLICY];
}
