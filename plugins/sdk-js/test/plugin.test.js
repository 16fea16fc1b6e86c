// Tests of plugin(): requests in, outcomes out, errors to failures. The records are in the form in
// which the engines pass them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { awaitChange, cluster, core, kind, log, plugin, ReadError, retry, setting } from "../index.js";
import { TurnPromise } from "../src/promise.js";
import { reconcile, TestHost } from "../testing.js";

const CONFIG_MAP = core("v1", "ConfigMap");
const description = { name: "test", controllers: [{ name: "maps", primary: CONFIG_MAP }] };
const record = {
  controller: "maps",
  key: { kind: { group: "", version: "v1", kind: "ConfigMap" }, name: "a" },
  object: '{"data":{"n":9007199254740993}}',
  deleting: false,
  attempt: 0,
};
const reconcileWith = (call, more) => {
  const host = new TestHost();
  const outcome = host.run(() => plugin({ description, reconcile: call }).reconcile({ ...record, ...more }));
  return { outcome, lines: host.lines };
};

test("a request is told in the words of JavaScript", () => {
  const { outcome } = reconcileWith((request) => {
    assert.deepEqual(request.object, { data: { n: 9007199254740993n } });
    assert.equal(request.object, request.object, "parsed once");
    assert.equal(request.objectText, record.object);
    assert.deepEqual([request.key.namespace, request.previous, request.previousText, request.last], [null, null, null, null]);
    return awaitChange();
  });
  assert.deepEqual(outcome, { effects: [], next: { tag: "await-change" } });
  reconcileWith((request) => assert.equal(request.object, null) ?? awaitChange(), { object: null });
});

test("an error is a transient failure with its text, and its stack is in the log", () => {
  const failing = (error) =>
    reconcileWith(() => {
      throw error;
    });
  const { outcome, lines } = failing(new Error("broken on purpose"));
  assert.deepEqual(outcome, retry("broken on purpose"));
  assert.match(lines.join(), /^error: Error: broken on purpose\n +at .*plugin\.test\.js/);
  assert.deepEqual(failing(new RangeError("far")).outcome, retry("RangeError: far"));
  assert.deepEqual(failing("text").outcome, retry("text"));
  assert.deepEqual(failing(null).outcome, retry("null"));
  assert.deepEqual(failing(new Error("")).outcome, retry("an error without a message"));
  assert.match(failing(new Error("outer", { cause: new Error("inner") })).lines.join(), /caused by: inner/);
});

test("a promise is driven to its end", () => {
  const P = TurnPromise;
  assert.deepEqual(reconcileWith(() => P.resolve().then(() => awaitChange())).outcome, awaitChange());
  assert.deepEqual(reconcileWith(() => P.reject(new Error("late"))).outcome, retry("late"));
  const { outcome, lines } = reconcileWith(() => {
    P.reject(new Error("lost"));
    return new P(() => {});
  });
  assert.match(outcome.next.val, /^the promise of reconcile can never settle/);
  assert.match(lines[0], /^error: a rejected promise that nobody waited for: Error: lost/);
});

test("what is no outcome is refused by name", () => {
  assert.deepEqual(reconcileWith(() => {}).outcome, retry("TypeError: reconcile returned undefined and no outcome, such as awaitChange()"));
  assert.match(reconcileWith(() => [awaitChange()]).outcome.next.val, /returned a list/);
});

test("a plugin without the needed parts is refused when it is made", () => {
  assert.throws(() => plugin(), /plugin\(\) takes an object/);
  assert.throws(() => plugin({ reconcile() {} }), /description of a plugin must be an object, not undefined/);
  assert.throws(() => plugin({ description, reconcile: 1 }), /reconcile of a plugin must be a function, not a number/);
});

test("the description is written with the version of the contract", () => {
  assert.deepEqual(JSON.parse(plugin({ description, reconcile() {} }).describe()), {
    apiVersion: "vmhost/v1",
    name: "test",
    controllers: [{ name: "maps", primary: { version: "v1", kind: "ConfigMap" } }],
  });
  assert.deepEqual({ ...kind("apps", "v1", "Deployment") }, { group: "apps", version: "v1", kind: "Deployment" });
});

test("settings have a schema, and a permission may be optional", () => {
  const settingsSchema = { type: "object", required: ["zone"], properties: { size: { type: "integer", maximum: 9007199254740993n } } };
  const permissions = [{ ...CONFIG_MAP, verbs: ["patch"], optional: true }];
  const written = plugin({ description: { ...description, permissions, settingsSchema }, reconcile() {} }).describe();
  assert.ok(written.endsWith('"size":{"type":"integer","maximum":9007199254740993}}}}'), written);
  const read = JSON.parse(written);
  assert.deepEqual(read.permissions, [{ version: "v1", kind: "ConfigMap", verbs: ["patch"], optional: true }]);
  assert.deepEqual(read.settingsSchema.required, ["zone"]);
});

test("changes are mapped to names, and errors are thrown as text", () => {
  const of = (mapChanges) => plugin({ description, reconcile() {}, mapChanges });
  const changes = [{ old: null, new: '{"metadata":{"name":"a","namespace":"d"}}' }, { old: '{"metadata":{"name":"b"}}' }];
  const names = of(({ changes }) => changes.map((change) => (change.new ?? change.old).metadata));
  assert.deepEqual(names.mapChanges({ controller: "maps", changes }), [
    { namespace: "d", name: "a" },
    { namespace: null, name: "b" },
  ]);
  assert.deepEqual(of(undefined).mapChanges({ controller: "maps", changes }), []);
  const thrown = (mapChanges) => {
    try {
      of(mapChanges).mapChanges({ controller: "maps", changes });
    } catch (error) {
      return error;
    }
  };
  assert.equal(
    thrown(({ controller }) => assert.fail(`cannot map ${controller}`)),
    "AssertionError: cannot map maps",
  );
  assert.equal(
    thrown(() => "a"),
    'TypeError: mapChanges returned "a" and no list of names',
  );
  assert.equal(
    thrown(() => [{}]),
    "TypeError: the name of mapChanges must be a string, not undefined",
  );
});

const pod = (namespace, name, app) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace, labels: { app }, ownerReferences: [{ uid: `u-${name}` }] },
  spec: { n: 9007199254740993n },
});
const POD = core("v1", "Pod");

test("objects are read, listed page by page and counted", () => {
  const host = new TestHost({ objects: [pod("b", "one", "web"), pod("a", "two", "web"), pod("a", "one", "db")], settings: { colour: "red" } });
  host.run(() => {
    const names = (pods) => pods.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
    assert.equal(cluster.get(POD, "a", "two").spec.n, 9007199254740993n);
    assert.equal(cluster.getLive(POD, "a", "three"), null);
    assert.equal(cluster.get(CONFIG_MAP, "a", "two"), null);
    const key = (name) => ({ kind: POD, namespace: "a", name });
    assert.deepEqual(
      cluster.getMany([key("one"), key("gone")]).map((found) => found?.metadata.name),
      ["one", undefined],
    );
    assert.deepEqual(names(cluster.list({ kind: POD, limit: 1 })), ["a/one", "a/two", "b/one"]);
    assert.deepEqual(names(cluster.listLive({ kind: POD, namespace: "a", labelSelector: "app=web" })), ["a/two"]);
    assert.deepEqual(names(cluster.listOwned(POD, null, "u-one")), ["a/one", "b/one"]);
    assert.equal(cluster.count({ kind: POD, limit: 2 }), 3);
    assert.equal(cluster.list({ kind: POD, metadataOnly: true })[0].spec, undefined);
    assert.equal(cluster.raw.list({ kind: POD, limit: 2 }).continue, "2");
    assert.deepEqual([setting("colour"), setting("toString")], ["red", null]);
    log.info("hello", { n: 1n });
  });
  assert.deepEqual(host.lines, ['info: hello {"n":"1"}']);
});

test("a read that fails names the object and the reason", () => {
  const host = new TestHost();
  host.get = () => {
    throw { payload: { tag: "too-large", val: 7 } };
  };
  host.run(() => {
    assert.throws(
      () => cluster.get(POD, "a", "one"),
      (error) =>
        error instanceof ReadError &&
        error.code === "too-large" &&
        error.detail === 7 &&
        error.message === "Pod a/one cannot be read: the answer is larger than 7 bytes",
    );
    assert.throws(() => cluster.list({ kind: POD, index: { name: "node", value: "n" } }), /the list of Pod cannot be read: the test host has no indexes/);
    assert.throws(() => cluster.list({ kind: POD, labels: "x" }), /queries have no field labels/);
    assert.throws(() => cluster.list({ kind: POD, limit: -1 }), /the limit of a query must be a whole number/);
  });
  assert.throws(() => cluster.get(POD, null, "one"), /Pod one cannot be read live: there is no host in a native test/);
});

test("the test host calls a policy, also an async one, and lets its errors through", async () => {
  const asking = plugin({
    description,
    async reconcile({ key, object, attempt }) {
      const other = await cluster.get(CONFIG_MAP, key.namespace, "other");
      return retry(`${object.data.k} ${other?.data.k} ${attempt}`);
    },
  });
  const map = (name, k) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "d" }, data: { k } });
  const host = new TestHost({ objects: [map("other", 2)] });
  assert.deepEqual((await host.reconcile(asking, { object: map("a", 1), attempt: 3 })).next, { tag: "retry", val: "1 2 3" });
  await assert.rejects(reconcile(asking, { key: { kind: CONFIG_MAP, namespace: "d", name: "gone" } }), TypeError);
  await assert.rejects(reconcile(asking, {}), /a request needs an object or a key/);
  await assert.rejects(reconcile({}, {}), /must be what plugin\(\) made/);
});
