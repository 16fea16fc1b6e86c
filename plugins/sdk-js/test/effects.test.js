// Effects and outcomes, and the helpers for metadata.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as sdk from "../index.js";

const { apply, awaitChange, core, create, deleteObject, event, inCluster, kind, objectKey, other, patch, requeueAfter } = sdk;
const key = objectKey(core("v1", "ConfigMap"), "default", "a");

test("effects are the contract's records", () => {
  const object = { metadata: { name: "a" } };
  const { effects } = awaitChange(
    apply(object),
    apply(object, { subresource: "status" }),
    patch.merge(key, { data: null }, { ifVersion: "8" }),
    [patch.json(key).add("/data/a~1b", 1n), create('{"a":1}')],
    deleteObject(key, { uid: "u-1", propagation: "orphan" }),
    event.normal("Fine"),
    event.warning("Broken", "why", { action: "Mending", related: key }),
    other("future", {}),
  );
  const text = '{"metadata":{"name":"a"}}';
  assert.deepEqual(effects, [
    { tag: "apply", val: { object: text, subresource: null, force: true, createIfAbsent: true, ifVersion: null } },
    { tag: "apply", val: { object: text, subresource: "status", force: true, createIfAbsent: false, ifVersion: null } },
    { tag: "patch", val: { key, subresource: null, type: "merge", body: '{"data":null}', ifVersion: "8" } },
    { tag: "patch", val: { key, subresource: null, type: "json", body: '[{"op":"add","path":"/data/a~1b","value":1}]', ifVersion: null } },
    { tag: "create", val: { object: '{"a":1}' } },
    { tag: "delete", val: { key, uid: "u-1", ifVersion: null, propagation: "orphan" } },
    { tag: "event", val: { type: "normal", reason: "Fine", action: "", note: "", related: null } },
    { tag: "event", val: { type: "warning", reason: "Broken", action: "Mending", note: "why", related: key } },
    { tag: "other", val: { name: "future", body: "{}" } },
  ]);
});

test("an effect is written with its cluster", () => {
  const written = '"key":{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"a"}';
  const applied = '{"object":{"n":9007199254740993},"subresource":"status","force":true,"createIfAbsent":false}';
  const cases = [
    ["east", apply({ n: 9007199254740993n }, { subresource: "status" }), `{"apply":${applied}}`],
    [null, patch.json(key).remove("/e"), `{"patch":{${written},"type":"json","body":[{"op":"remove","path":"/e"}]}}`],
    [null, create({ kind: "X" }), '{"create":{"object":{"kind":"X"}}}'],
    ["east", deleteObject(key, { uid: "u-1", propagation: "orphan" }), `{"delete":{${written},"uid":"u-1","propagation":"orphan"}}`],
  ];
  for (const [cluster, effect, body] of cases) {
    const val = { name: "in-cluster", body: `{"cluster":${JSON.stringify(cluster)},"effect":${body}}` };
    assert.deepEqual(inCluster(cluster, effect), { tag: "other", val });
  }
  const group = inCluster(null, deleteObject(objectKey(kind("apps", "v1", "Deployment"), null, "x")));
  assert.match(group.val.body, /"key":\{"apiVersion":"apps\/v1","kind":"Deployment","name":"x"\}/);
});

test("a JSON patch can be begun once and ended in two ways", () => {
  const seen = patch.json(key).test("/a", 1);
  const body = (patch) => JSON.parse(patch.effect().val.body).map(({ op }) => op);
  assert.deepEqual([body(seen.replace("/a", null)), body(seen.remove("/a")), body(seen)], [["test", "replace"], ["test", "remove"], ["test"]]);
});

test("mistakes are named", () => {
  const mistakes = {
    "the options of patch have no field subresources; there is subresource, ifVersion": () => patch.merge(key, {}, { subresources: "status" }),
    'a key must be made by objectKey() or be request.key, not be "x"': () => deleteObject("x"),
    "the body of a merge patch must be an object, not a list": () => patch.merge(key, []),
    'replace of "/a" has no value': () => patch.json(key).replace("/a", undefined),
    "the path of remove must be a string, not a number": () => patch.json(key).remove(1),
    "ifVersion of apply must be a string, not a number": () => apply({}, { ifVersion: 7 }),
    'force of apply must be true or false, not "no"': () => apply({}, { force: "no" }),
    'the propagation of deleteObject must be one of background, foreground, orphan, not "now"': () => deleteObject(key, { propagation: "now" }),
    "effect 1 of the outcome is undefined, and no effect": () => awaitChange(event.normal("A"), undefined),
    "the milliseconds of requeueAfter must be a whole number from 0 to 4294967295, not 1.5": () => requeueAfter(1.5),
    "the cluster of inCluster must be a string, not undefined": () => inCluster(undefined, create({})),
    "the effect of inCluster is undefined, and no effect": () => inCluster("east", undefined),
    'the effect of inCluster is "event"; there is apply, patch, create, delete': () => inCluster("east", event.normal("A")),
    "the version of a kind must be a string, not undefined": () => kind("apps"),
    "the name of a key must be a string, not undefined": () => objectKey(core("v1", "Pod"), null),
  };
  for (const [message, mistake] of Object.entries(mistakes)) assert.throws(mistake, { message });
  assert.throws(() => create("{"), SyntaxError);
});

test("strings fit UTF-8", () => {
  assert.equal(event.normal("A", "x\ud800").val.note, "x\ufffd");
});

test("a condition's transition time moves only with its status", () => {
  const at = (seconds) => new Date(seconds * 1000);
  const all = [];
  const set = (status, reason, seconds, more) => sdk.setStatusCondition(all, { type: "Ready", status, reason, ...more }, at(seconds));
  assert.equal(set(false, "Starting", 0), true);
  assert.equal(set("False", "Starting", 5), false, "nothing changed");
  assert.equal(set(false, "Pulling", 6), true);
  assert.deepEqual(all, [{ type: "Ready", status: "False", lastTransitionTime: "1970-01-01T00:00:00Z", reason: "Pulling", message: "" }]);
  assert.equal(set(true, "Up", 7, { observedGeneration: 4 }), true);
  assert.deepEqual([all.length, all[0].lastTransitionTime, all[0].observedGeneration], [1, "1970-01-01T00:00:07Z", 4]);
  assert.equal(set(true, "Up", 8, { observedGeneration: 5 }), true, "a newer generation is a change");
  assert.deepEqual(
    [sdk.isStatusConditionTrue(all, "Ready"), sdk.isStatusConditionFalse(all, "Ready"), sdk.isStatusConditionFalse(all, "Gone")],
    [true, false, false],
  );
  assert.deepEqual(
    [sdk.removeStatusCondition(all, "Ready"), sdk.removeStatusCondition(all, "Ready"), sdk.findStatusCondition(all, "Ready")],
    [true, false, null],
  );
});

test("owners, finalizers and keys of objects", () => {
  const owner = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", namespace: "d", uid: "u-1", finalizers: ["a.b/c"] } };
  const reference = { apiVersion: "apps/v1", kind: "Deployment", name: "web", uid: "u-1" };
  assert.deepEqual(sdk.ownerReference(owner), reference);
  assert.deepEqual(sdk.controllerReference(owner), { ...reference, controller: true, blockOwnerDeletion: true });
  const child = (references) => ({ metadata: { name: "x", ownerReferences: references } });
  assert.equal(sdk.isControlledBy(child([sdk.controllerReference(owner)]), owner), true);
  assert.equal(sdk.isControlledBy(child([reference]), owner), false, "an owner that is no controller");
  assert.equal(sdk.isControlledBy(child([{ ...sdk.controllerReference(owner), uid: "u-2" }]), owner), false, "another object of the same name");
  assert.equal(sdk.controllerOf({ metadata: {} }), null);
  assert.deepEqual([sdk.hasFinalizer(owner, "a.b/c"), sdk.hasFinalizer(owner, "a.b/d"), sdk.hasFinalizer({}, "a.b/c")], [true, false, false]);
  assert.deepEqual(sdk.keyOf(owner), objectKey(kind("apps", "v1", "Deployment"), "d", "web"));
  assert.deepEqual(sdk.keyOf({ apiVersion: "v1", kind: "Node", metadata: { name: "n" } }), objectKey(core("v1", "Node"), null, "n"));
  assert.throws(() => sdk.keyOf({}), /an object with metadata was wanted/);
});
