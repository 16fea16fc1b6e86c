// Tests of the policy. They call it as a function, without a host or a cluster.

import assert from "node:assert/strict";
import { test } from "node:test";
import { admit } from "@vmhost/plugin/testing";
import { controller } from "./plugin.ts";

test("somebody has to be named", async () => {
  const refused = "spec.who must name somebody";
  for (const [object, message] of [
    [{ spec: { who: "Ada" } }, undefined],
    [{ spec: { who: "" } }, refused],
    [{ spec: { who: 1 } }, refused],
    [{ spec: {} }, refused],
    [null, undefined],
  ] as const) {
    const { allowed, status } = await admit(controller, { operation: "CREATE", object });
    assert.deepEqual([allowed, status?.message], [message === undefined, message]);
  }
});
