// The conformance guest in JavaScript. ../README.md describes each case.

import {
  apply,
  awaitChange,
  cluster,
  create,
  deleteObject,
  event,
  fail,
  finalized,
  inCluster,
  log,
  objectKey,
  other,
  patch,
  plugin,
  ReadError,
  requeue,
  requeueAfter,
  retry,
  setting,
} from "@vmhost/plugin";
import { fetch, HttpError } from "@vmhost/plugin/http";
import { CONFIG_MAP, DEPLOYMENT, description, NAMESPACE, POD } from "./description.js";
import { admit, convert } from "./reviews.js";

const configMap = (name) => objectKey(CONFIG_MAP, "default", name);
const answer = ({ key }, value) => awaitChange(patch.merge(key, { answer: value }));

/** Global variables live as long as the instance. */
const taken = [];
let calls = 0;

const CASES = {
  echo(request) {
    const { controller, key, objectText, previousText, deleting, attempt, last } = request;
    const { kind, namespace, name } = key;
    return answer(request, { controller, key: { ...kind, namespace, name }, object: objectText, previous: previousText, deleting, attempt, last });
  },

  effects() {
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "default" }, data: { k: "v" } };
    return awaitChange(
      apply(object, { subresource: "status", force: false, createIfAbsent: false, ifVersion: "7" }),
      apply(object),
      patch.merge(configMap("a"), { data: { k: null } }, { subresource: "status", ifVersion: "8" }),
      patch
        .json(objectKey(NAMESPACE, null, "n"))
        .test("/a", 1)
        .add("/b/-", "x")
        .replace("/c~1d", null)
        .remove("/e"),
      create({ apiVersion: "v1", kind: "ConfigMap", metadata: { generateName: "a-", namespace: "default" } }),
      deleteObject(configMap("a"), { uid: "u-1", ifVersion: "9", propagation: "foreground" }),
      deleteObject(configMap("b")),
      event.warning("Broken", "it broke: ☃", { action: "Mending", related: configMap("a") }),
      event.normal("Fine"),
      other("future", { x: 1 }),
    );
  },

  "in-cluster"() {
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "default" }, data: { k: "v" } };
    return awaitChange(
      inCluster("east", apply(object)),
      inCluster(null, patch.merge(configMap("a"), { data: { k: "v" } }, { subresource: "status", ifVersion: "8" })),
      inCluster("east", create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c", namespace: "default" } })),
      inCluster("east", deleteObject(objectKey(DEPLOYMENT, "default", "d"), { uid: "u-1", propagation: "orphan" })),
    );
  },

  "next-await-change": () => awaitChange(),
  "next-requeue-after": () => requeueAfter(4294967295),
  "next-requeue": () => requeue(),
  "next-retry": () => retry('later, "please"'),
  "next-fail": () => fail("never: ☃"),
  "next-finalized": () => finalized(),

  get: (request) => answer(request, { a: cluster.raw.get(configMap("a")), b: cluster.raw.get(configMap("b")) }),

  "get-many"(request) {
    const texts = cluster.raw.getMany(Array.from({ length: 1000 }, (_, number) => configMap(`k${number}`)));
    return answer(request, { found: texts.filter((text) => text !== null).length, first: texts[0], last: texts[999] });
  },

  list: (request) =>
    answer(
      request,
      cluster.raw.list({
        kind: CONFIG_MAP,
        namespace: "default",
        labelSelector: "app=web,!legacy",
        index: { name: "by-node", value: "n1" },
        owner: "u-1",
        metadataOnly: true,
        limit: 2,
        continue: "c-1",
      }),
    ),

  live: (request) => answer(request, { a: cluster.raw.getLive(objectKey(POD, "default", "a")), ...cluster.raw.listLive({ kind: POD }) }),

  "read-errors"(request) {
    const reasons = {};
    for (const name of ["not-watched", "too-large", "invalid", "unavailable"]) {
      try {
        cluster.get(CONFIG_MAP, "default", name);
      } catch (error) {
        if (!(error instanceof ReadError)) throw error;
        reasons[error.code] = error.detail;
      }
    }
    return answer(request, reasons);
  },

  settings: (request) => answer(request, { given: setting("given"), empty: setting("empty"), missing: setting("missing") }),

  async http(request) {
    const headers = { "content-type": "application/json", "x-case": "http" };
    const made = await fetch("http://api.example.com:8080/v1/machines", { method: "POST", headers, body: '{"n":"☃"}' });
    const error = await fetch("https://denied.example.com/").catch((error) => error);
    if (!(error instanceof HttpError)) throw error;
    return answer(request, { status: made.status, type: made.headers.get("content-type"), body: await made.text(), error: error.code });
  },

  log(request) {
    for (const level of ["trace", "debug", "info", "warn", "error"]) log[level]("one\ntwo ☃");
    return answer(request, null);
  },

  number: (request) => answer(request, [request.object.spec.number, request.object.spec.huge]),

  null(request) {
    const word = (value) => (value === undefined ? "missing" : value === null ? "null" : "value");
    const { a, b, c } = request.object.spec;
    return answer(request, [word(a), word(b), word(c)]);
  },

  text: (request) => answer(request, [request.object.spec.text, request.object.spec.empty]),

  deep(request) {
    let depth = 0;
    for (let list = request.object.spec.deep; Array.isArray(list); list = list[0]) depth += 1;
    return answer(request, depth);
  },

  size: (request) => answer(request, utf8Length(request.objectText)),

  senses: (request) => answer(request, { wall: Date.now(), chance: Math.random() }),

  error() {
    throw new Error("broken on purpose");
  },

  crash: () => null.field,

  memory() {
    for (;;) taken.push(new Uint8Array(1 << 20).fill(1));
  },

  loop() {
    for (;;);
  },

  state: (request) => answer(request, calls++),
};

/**
 * Returns the length in UTF-8. QuickJS has no TextEncoder. A surrogate is half of a character of
 * four bytes.
 */
function utf8Length(text) {
  let length = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    length += unit < 0x80 ? 1 : unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 2 : 3;
  }
  return length;
}

export const controller = plugin({
  description,

  reconcile(request) {
    const name = request.object?.spec?.case ?? "echo";
    return Object.hasOwn(CASES, name) ? CASES[name](request) : fail(`unknown case ${name}`);
  },

  mapChanges({ controller, changes }) {
    if (controller !== "cases") throw new Error(`cannot map ${controller}`);
    return changes.map((change) => (change.new ?? change.old).metadata);
  },

  admit,
  convert,
});
