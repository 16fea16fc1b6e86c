// Promises that run within one call: the same programs must have the same result with Node's
// Promise and with this one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { queueMicrotask, runJobs, TurnPromise } from "../src/promise.js";

/**
 * A program takes a Promise class and a function that records a line; it returns a promise or
 * nothing.
 */
const PROGRAMS = {
  "order of jobs": (P, say) => {
    P.resolve(1)
      .then(say)
      .then(() => say("third"));
    P.resolve(2).then(say);
    new P((resolve) => resolve("executor")).then(say);
    say("sync");
  },
  "a chain takes over promises and thenables": (P) =>
    P.resolve(1)
      .then((n) => P.resolve(n + 1))
      .then((n) => ({ then: (done) => done(n + 1) })),
  "an error goes to the next handler": (P, say) =>
    P.reject(new Error("a"))
      .then(() => say("never"))
      .catch(({ message }) => {
        say(message);
        throw new Error("b");
      })
      .finally(() => say("finally"))
      .catch(({ message }) => message),
  "finally keeps the value": (P) => P.resolve(1).finally(() => 2),
  "finally can fail": (P) => P.resolve(1).finally(() => P.reject(new Error("late"))),
  "only the first settles": (P) =>
    new P((resolve, reject) => {
      resolve(1);
      resolve(2);
      reject(3);
      throw new Error("4");
    }),
  "an executor that throws": (P) =>
    new P(() => {
      throw new Error("thrown");
    }),
  "a then that throws": (P) =>
    P.resolve({
      get then() {
        throw new Error("getter");
      },
    }),
  all: (P) => P.all([1, P.resolve(2), new P((resolve) => P.resolve().then(() => resolve(3)))]),
  "all of nothing": (P) => P.all([]),
  "all with an error": (P) => P.all([P.resolve(1), P.reject(new Error("x")), P.reject(new Error("y"))]),
  allSettled: (P) => P.allSettled([1, P.reject("x")]),
  any: (P) => P.any([P.reject(1), P.resolve(2), 3]),
  "any of none": (P) => P.any([P.reject(1), P.reject(2)]).catch((error) => [error.constructor.name, error.errors]),
  race: (P) => P.race([new P(() => {}), P.resolve(1), 2]),
  withResolvers: (P) => {
    const { promise, resolve } = P.withResolvers?.() ?? { promise: P.resolve(7), resolve() {} };
    resolve(7);
    return promise;
  },
};

for (const [name, program] of Object.entries(PROGRAMS)) {
  test(`as in Node: ${name}`, async () => {
    const run = (P) => {
      const lines = [];
      const ends = [];
      program(P, (line) => lines.push(line))?.then(
        (value) => ends.push("value", value),
        (error) => ends.push("error", error.message),
      );
      return { lines, ends };
    };
    const here = run(TurnPromise);
    assert.deepEqual(here.ends, [], "nothing is called before the jobs run");
    runJobs();
    const there = run(Promise);
    await new Promise(setImmediate);
    assert.deepEqual(here, there);
    assert.ok(here.lines.length + here.ends.length > 0);
  });
}

test("a promise that waits for itself is rejected", () => {
  let resolve;
  const promise = new TurnPromise((done) => (resolve = done));
  resolve(promise);
  let reason;
  promise.catch((error) => (reason = error));
  runJobs();
  assert.match(reason.message, /cannot wait for itself/);
});

test("rejections that nobody took are told once", () => {
  TurnPromise.reject("lost");
  TurnPromise.reject("taken").catch(() => {});
  assert.deepEqual(runJobs(), ["lost"]);
  assert.deepEqual(runJobs(), []);
});

test("a promise that was made earlier is still good", () => {
  const early = TurnPromise.resolve(1).then((n) => n + 1);
  runJobs();
  let value;
  early.then((n) => (value = n));
  runJobs();
  assert.equal(value, 2);
});

test("queueMicrotask runs its job with the others", () => {
  let isDone = false;
  queueMicrotask(() => (isDone = true));
  assert.equal(isDone, false);
  runJobs();
  assert.equal(isDone, true);
  assert.throws(() => queueMicrotask(1), /takes a function/);
});
