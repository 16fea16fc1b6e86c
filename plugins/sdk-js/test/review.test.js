// Tests of admission and conversion: reviews in, verdicts out, and the patch between two objects.

import assert from "node:assert/strict";
import { test } from "node:test";
import { allow, awaitChange, core, deny, other, parse, plugin, retry } from "../index.js";
import { diff } from "../src/diff.js";
import { Review } from "../src/review.js";
import { admit as admitWith, convert as convertWith, TestHost } from "../testing.js";

const description = { name: "test", webhooks: [{ name: "guard", type: "mutating", rules: [] }], conversions: [{ name: "vm" }] };
const request = {
  uid: "u-1",
  kind: { group: "apps", version: "v1", kind: "Deployment" },
  operation: "UPDATE",
  name: "a",
  namespace: "default",
  object: { spec: { replicas: 3n, keep: 9007199254740993n } },
  dryRun: true,
};

const record = (kind, object) => ({
  controller: "guard",
  key: { kind: { group: "vmhost", version: "v1", kind }, name: "u-1" },
  object,
  deleting: false,
  attempt: 0,
});
const called = (policy, kind, object) => new TestHost().run(() => plugin({ description, ...policy }).reconcile(record(kind, object)));

test("a review is told in the words of JavaScript", () => {
  const review = new Review("guard", '{"uid":"u-1","operation":"DELETE","object":null,"oldObject":{"a":1},"userInfo":{"username":"jane"}}');
  assert.deepEqual([review.webhook, review.uid, review.operation, review.userInfo.username], ["guard", "u-1", "DELETE", "jane"]);
  assert.deepEqual([review.object, review.oldObject, review.namespace, review.subResource, review.dryRun], [null, { a: 1 }, null, "", false]);
  assert.deepEqual(review.mutate(() => assert.fail("there is no object")).response, { allowed: true });
  assert.throws(() => review.changedTo({}), /without an object/);
  assert.throws(() => new Review("guard", "[]"), /the review is a list/);
});

test("a verdict is an AdmissionResponse", () => {
  assert.deepEqual(allow().response, { allowed: true });
  assert.deepEqual(deny("no").response, { allowed: false, status: { message: "no", code: 403, reason: "Forbidden" } });
  assert.deepEqual(deny("odd", { code: 422 }).response.status, { message: "odd", code: 422 });
  assert.deepEqual(allow().warning("a").warning("b").auditAnnotation("k", "v").response, {
    allowed: true,
    warnings: ["a", "b"],
    auditAnnotations: { k: "v" },
  });
  assert.deepEqual(allow().add("/a", null).replace("/b", 1).remove("/c").response.patch, [
    { op: "add", path: "/a", value: null },
    { op: "replace", path: "/b", value: 1 },
    { op: "remove", path: "/c" },
  ]);
  assert.throws(() => deny("no", { code: 200 }), /400 to 599/);
  assert.throws(() => deny("no", { status: 1 }), /no field status/);
  assert.throws(() => allow().add("/a", undefined), /has no value/);
});

test("only what differs is in the patch", () => {
  const cases = [
    ['{"a":1}', '{"a":1}', []],
    [
      '{"a":{"b":1,"c":[1,{"d":2}]},"z":0}',
      '{"a":{"b":2,"c":[1,{"d":3}]},"n":null}',
      [
        { op: "replace", path: "/a/b", value: 2 },
        { op: "replace", path: "/a/c/1/d", value: 3 },
        { op: "add", path: "/n", value: null },
        { op: "remove", path: "/z" },
      ],
    ],
    ['{"a":[]}', '{"a":{}}', [{ op: "replace", path: "/a", value: {} }]],
    [
      '{"a/b":1,"c~d":1,"":1}',
      '{"a/b":2,"":2}',
      [
        { op: "replace", path: "/", value: 2 },
        { op: "replace", path: "/a~1b", value: 2 },
        { op: "remove", path: "/c~0d" },
      ],
    ],
    [
      "[1,4]",
      "[1,2,3,4]",
      [
        { op: "add", path: "/1", value: 2 },
        { op: "add", path: "/2", value: 3 },
      ],
    ],
    [
      "[1,2,3,4]",
      "[1,4]",
      [
        { op: "remove", path: "/2" },
        { op: "remove", path: "/1" },
      ],
    ],
    ["[1,1]", "[1]", [{ op: "remove", path: "/1" }]],
    [
      "[1,2,3]",
      "[1,9,8,3]",
      [
        { op: "replace", path: "/1", value: 9 },
        { op: "add", path: "/2", value: 8 },
      ],
    ],
    ["9007199254740993", "9007199254740992", [{ op: "replace", path: "", value: 9007199254740992n }]],
    ['{"__proto__":1}', "{}", [{ op: "remove", path: "/__proto__" }]],
  ];
  for (const [old, next, operations] of cases) assert.deepEqual(diff(parse(old), parse(next)), operations);
});

test("a mutation becomes a patch, and digits are kept", async () => {
  const policy = {
    description,
    admit: async (review) =>
      review.mutate((object) => {
        object.spec.paused = true;
        object.spec.nothing = undefined;
        delete object.spec.replicas;
      }),
  };
  assert.deepEqual(await admitWith(plugin(policy), request), {
    allowed: true,
    patch: [
      { op: "add", path: "/spec/paused", value: true },
      { op: "remove", path: "/spec/replicas" },
    ],
  });
  const same = { description, admit: (review) => review.mutate(() => {}) };
  assert.deepEqual(await admitWith(plugin(same), request), { allowed: true });
  const wrong = { description, admit: (review) => review.mutate((object) => object) };
  await assert.rejects(admitWith(plugin(wrong), request), /returns nothing/);
});

test("a review goes to admit, and a failure is no verdict", () => {
  const text = '{"uid":"u-1","name":"a"}';
  const outcome = called({ admit: ({ webhook, name }) => deny(`${webhook} refuses ${name}`) }, "Admission", text);
  const response = { allowed: false, status: { message: "guard refuses a", code: 403, reason: "Forbidden" } };
  assert.deepEqual(outcome, awaitChange(other("admission", response)));
  const failing = () => {
    throw new Error("broken on purpose");
  };
  assert.deepEqual(called({ admit: failing }, "Admission", text), retry("broken on purpose"));
  assert.equal(called({ admit: () => ({ allowed: true }) }, "Admission", text).next.tag, "retry");
  assert.equal(called({ convert: failing }, "Admission", text).next.tag, "retry");
  assert.equal(called({ admit: failing }, "ConfigMap", text).next.tag, "retry");
});

test("a batch goes to convert, and a failure is its answer", async () => {
  const text = '{"desiredAPIVersion":"g.io/v2","objects":[{"apiVersion":"g.io/v1","kind":"K","size":9007199254740993},{"apiVersion":"g.io/v2"}]}';
  const convert = (batch) => batch.each((object, from) => void (object.from = `${from} to ${batch.version}`));
  const [{ val }] = called({ convert }, "Conversion", text).effects;
  assert.equal(val.name, "conversion");
  assert.deepEqual(parse(val.body), {
    convertedObjects: [{ apiVersion: "g.io/v2", kind: "K", size: 9007199254740993n, from: "v1 to v2" }, { apiVersion: "g.io/v2" }],
  });
  const failing = (batch) =>
    batch.each(() => {
      throw new Error("too old");
    });
  const failed = JSON.parse(called({ convert: failing }, "Conversion", text).effects[0].val.body);
  assert.match(failed.failed, /^K  ?cannot be converted from g\.io\/v1 to g\.io\/v2: too old$/);
  assert.match(called({ convert: () => 7 }, "Conversion", text).effects[0].val.body, /no list of objects/);
  assert.deepEqual(await convertWith(plugin({ description, convert }), "g.io/v1", [{ apiVersion: "g.io/v1" }]), [{ apiVersion: "g.io/v1" }]);
});

test("a plugin needs a function", () => {
  assert.throws(() => plugin({ description }), /reconcile of a plugin/);
  assert.throws(() => plugin({ description, admit: 1 }), /admit of a plugin/);
  assert.equal(JSON.parse(plugin({ description: { name: "p", reads: core("v1", "Pod") }, admit: () => allow() }).describe()).apiVersion, "vmhost/v1");
});
