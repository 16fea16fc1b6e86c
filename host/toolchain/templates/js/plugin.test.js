// Tests of the policy. They call it as a function, without a host or a cluster.

import assert from "node:assert/strict";
import { test } from "node:test";
import { kind, objectKey } from "@vmhost/plugin";
import { reconcile } from "@vmhost/plugin/testing";
import { controller } from "./plugin.js";

const key = objectKey(kind("__group__", "__version__", "__kind__"), "default", "first");

test("each object is greeted by its name, or else as the world", async () => {
  for (const [spec, message] of [
    [{ who: "you" }, "hello, you"],
    [{}, "hello, world"],
  ]) {
    const { effects, next } = await reconcile(controller, { key, object: { spec, status: { message: "old" } } });
    const [patch, event] = effects.map(({ val }) => val);
    assert.deepEqual([patch.key, patch.subresource, JSON.parse(patch.body)], [key, "status", { status: { message } }]);
    assert.deepEqual([event.type, event.reason, event.note], ["normal", "Greeted", message]);
    assert.deepEqual(next, { tag: "await-change" });
  }
});

test("a greeted or deleted object is left alone", async () => {
  for (const object of [{ spec: { who: "you" }, status: { message: "hello, you" } }, null]) {
    assert.deepEqual((await reconcile(controller, { key, object })).effects, []);
  }
});
