// Tests of the policy. They call it as a function, without a host or a cluster.

import assert from "node:assert/strict";
import { test } from "node:test";
import { kind, objectKey } from "@vmhost/plugin";
import { reconcile } from "@vmhost/plugin/testing";
import { controller } from "./plugin.ts";

const key = objectKey(kind("__group__", "__version__", "__kind__"), "default", "first");

test("each object is greeted by its name, or else as the world", async () => {
  for (const [spec, message] of [
    [{ who: "you" }, "hello, you"],
    [{}, "hello, world"],
  ] as const) {
    const { effects, next } = await reconcile(controller, { key, object: { spec, status: { message: "old" } } });
    const [patch, event] = effects;
    assert.ok(patch?.tag === "patch" && event?.tag === "event");
    assert.deepEqual([patch.val.key, patch.val.subresource, JSON.parse(patch.val.body)], [key, "status", { status: { message } }]);
    assert.deepEqual([event.val.type, event.val.reason, event.val.note], ["normal", "Greeted", message]);
    assert.deepEqual(next, { tag: "await-change" });
  }
});

test("a greeted or deleted object is left alone", async () => {
  for (const object of [{ spec: { who: "you" }, status: { message: "hello, you" } }, null]) {
    assert.deepEqual((await reconcile(controller, { key, object })).effects, []);
  }
});
