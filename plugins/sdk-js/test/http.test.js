import assert from "node:assert/strict";
import test from "node:test";

import { fetch, HttpError } from "../http.js";
import { TestHost } from "../testing.js";
import { decode, encode } from "../src/utf8.js";

const URL = "https://api.example.com/machines";

test("a response has its status, headers and body", async () => {
  const host = new TestHost({ responses: [{ method: "POST", url: URL, status: 201, headers: { "X-Id": "7" }, body: { id: 7 } }] });
  const response = await host.run(() => fetch(URL, { method: "POST", body: '{"size":"small"}', headers: { "x-a": "b" } }));
  assert.deepEqual([response.status, response.ok, response.headers.get("x-id"), response.headers.get("no")], [201, true, "7", null]);
  assert.deepEqual(await response.json(), { id: 7 });
  assert.deepEqual(host.requests, [{ method: "POST", url: URL, headers: { "x-a": "b" }, body: '{"size":"small"}' }]);
});

test("equal requests are answered in order, and others are not sent", async () => {
  const host = new TestHost({ responses: [{ url: URL, status: 404 }, { url: URL }] });
  const statuses = await host.run(async () => [(await fetch(URL)).status, (await fetch(URL)).status, (await fetch(URL)).status]);
  assert.deepEqual(statuses, [404, 200, 200]);
  await assert.rejects(host.run(() => fetch(`${URL}/x`)), (error) => error instanceof HttpError && error.code === "not-sent");
  await assert.rejects(fetch(URL), { code: "not-sent" });
  await assert.rejects(fetch(URL, { body: {} }), TypeError);
});

test("text is UTF-8", () => {
  for (const text of ["", "abc", "h\u00e9llo", "\u20ac", "\u{1f600}x", "\u0000"]) {
    assert.deepEqual([...encode(text)], [...new TextEncoder().encode(text)]);
    assert.equal(decode(encode(text)), text);
  }
  assert.equal(decode(Uint8Array.from([0x61, 0xff, 0xc3, 0x62, 0xed, 0xa0, 0x80])), "a\ufffd\ufffdb\ufffd\ufffd\ufffd");
  assert.deepEqual([...encode("\ud800")], [0xef, 0xbf, 0xbd]);
});
