// Tests of the policy. They call it as a function, without a host.

import assert from "node:assert/strict";
import { test } from "node:test";
import { kind, objectKey } from "@vmhost/plugin";
import { reconcile } from "@vmhost/plugin/testing";
import { controller } from "./plugin.ts";

const key = objectKey(kind("cloud.waibizi.com", "v1", "VirtualMachine"), "default", "public-wx");

/** Returns the operations of the patch, and the Event. */
async function patched(spec: object) {
  const { effects, next } = await reconcile(controller, { key, object: { spec } });
  const [first, second] = effects;
  assert.ok(effects.length === 2 && first?.tag === "patch" && second?.tag === "event");
  assert.deepEqual(next, { tag: "await-change" });
  assert.deepEqual(first.val.key, key);
  return { operations: JSON.parse(first.val.body), event: second.val };
}

test("a vm that is creating becomes complete", async () => {
  for (const sizes of [{}, { memory: 4096, disk: 500 }]) {
    const { operations, event } = await patched({ status: "creating", ...sizes });
    assert.deepEqual(operations, [
      { op: "test", path: "/spec/status", value: "creating" },
      { op: "replace", path: "/spec/status", value: "complete" },
    ]);
    assert.deepEqual([event.type, event.reason], ["normal", "Completed"]);
  }
});

test("a vm that cannot be fails with the reason", async () => {
  const { operations, event } = await patched({ status: "creating", memory: 4096, disk: -5 });
  assert.deepEqual(operations, [
    { op: "test", path: "/spec/status", value: "creating" },
    { op: "test", path: "/spec/disk", value: -5 },
    { op: "replace", path: "/spec/status", value: "fail" },
  ]);
  assert.deepEqual([event.type, event.reason, event.note], ["warning", "Impossible", "spec.disk is -5, and must be more than 0"]);
  assert.match((await patched({ status: "creating", memory: 0 })).event.note, /^spec.memory is 0/);
});

test("every other vm is left alone", async () => {
  for (const object of [null, { spec: { status: "complete" } }, { spec: { status: "fail", memory: 0 } }, { spec: {} }, {}]) {
    const { effects, next } = await reconcile(controller, { key, object });
    assert.deepEqual({ effects, next }, { effects: [], next: { tag: "await-change" } });
  }
});
