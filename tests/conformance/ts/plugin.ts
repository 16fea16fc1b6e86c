// The conformance guest in TypeScript. ../README.md describes each case. All functions are async,
// to test that promises run to completion.

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
  type KubeObject,
  log,
  objectKey,
  other,
  type Outcome,
  patch,
  plugin,
  ReadError,
  type Request,
  requeue,
  requeueAfter,
  retry,
  setting,
} from "@vmhost/plugin";
import { fetch, HttpError } from "@vmhost/plugin/http";
import { CONFIG_MAP, DEPLOYMENT, description, NAMESPACE, POD } from "./description.ts";
import { admit, convert } from "./reviews.ts";

interface Case extends KubeObject {
  spec: {
    case?: string;
    number?: number | bigint;
    huge?: number | bigint;
    a?: unknown;
    b?: unknown;
    c?: unknown;
    text?: string;
    empty?: string;
    deep?: unknown;
  };
}

const configMap = (name: string) => objectKey(CONFIG_MAP, "default", name);
const answer = async ({ key }: Request<Case>, value: unknown): Promise<Outcome> => awaitChange(patch.merge(key, { answer: value }));

/** Returns the spec of a case, which the object contains. */
function specOf({ object }: Request<Case>): Case["spec"] {
  if (object === null) throw new Error("this case needs an object");
  return object.spec;
}

/** Global variables live as long as the instance. */
const taken: Uint8Array[] = [];
let calls = 0;

const CASES: Record<string, (request: Request<Case>) => Promise<Outcome>> = {
  async echo(request) {
    const { controller, key, objectText, previousText, deleting, attempt, last } = request;
    const { kind, namespace, name } = key;
    return answer(request, { controller, key: { ...kind, namespace, name }, object: objectText, previous: previousText, deleting, attempt, last });
  },

  async effects() {
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

  async "in-cluster"() {
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "default" }, data: { k: "v" } };
    return awaitChange(
      inCluster("east", apply(object)),
      inCluster(null, patch.merge(configMap("a"), { data: { k: "v" } }, { subresource: "status", ifVersion: "8" })),
      inCluster("east", create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c", namespace: "default" } })),
      inCluster("east", deleteObject(objectKey(DEPLOYMENT, "default", "d"), { uid: "u-1", propagation: "orphan" })),
    );
  },

  "next-await-change": async () => awaitChange(),
  "next-requeue-after": async () => requeueAfter(4294967295),
  "next-requeue": async () => requeue(),
  "next-retry": async () => retry('later, "please"'),
  "next-fail": async () => fail("never: ☃"),
  "next-finalized": async () => finalized(),

  get: (request) => answer(request, { a: cluster.raw.get(configMap("a")), b: cluster.raw.get(configMap("b")) }),

  async "get-many"(request) {
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

  async "read-errors"(request) {
    const reasons: Record<string, string | number> = {};
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

  async log(request) {
    for (const level of ["trace", "debug", "info", "warn", "error"] as const) log[level]("one\ntwo ☃");
    return answer(request, null);
  },

  number: (request) => answer(request, [specOf(request).number, specOf(request).huge]),

  async null(request) {
    const word = (value: unknown) => (value === undefined ? "missing" : value === null ? "null" : "value");
    const { a, b, c } = specOf(request);
    return answer(request, [word(a), word(b), word(c)]);
  },

  text: (request) => answer(request, [specOf(request).text, specOf(request).empty]),

  async deep(request) {
    let depth = 0;
    for (let list = specOf(request).deep; Array.isArray(list); list = list[0]) depth += 1;
    return answer(request, depth);
  },

  size: (request) => answer(request, utf8Length(request.objectText ?? "")),

  senses: (request) => answer(request, { wall: Date.now(), chance: Math.random() }),

  async error() {
    throw await new Error("broken on purpose");
  },

  async crash(request) {
    const nobody = (await null) as unknown as { field: string };
    return answer(request, nobody.field);
  },

  async memory() {
    for (;;) taken.push(new Uint8Array(1 << 20).fill(1));
  },

  async loop() {
    for (;;) await null;
  },

  state: (request) => answer(request, calls++),
};

/**
 * Returns the length in UTF-8. QuickJS has no TextEncoder. A surrogate is half of a character of
 * four bytes.
 */
function utf8Length(text: string): number {
  let length = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    length += unit < 0x80 ? 1 : unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 2 : 3;
  }
  return length;
}

export const controller = plugin<Case>({
  description,

  async reconcile(request) {
    const name = request.object?.spec?.case ?? "echo";
    const run = Object.hasOwn(CASES, name) ? CASES[name] : undefined;
    return run === undefined ? fail(`unknown case ${name}`) : await run(request);
  },

  async mapChanges({ controller, changes }) {
    if (controller !== "cases") throw new Error(`cannot map ${controller}`);
    return changes.map((change) => {
      const object = change.new ?? change.old;
      if (object === null) throw new Error("a change without an object");
      return object.metadata;
    });
  },

  admit,
  convert,
});
