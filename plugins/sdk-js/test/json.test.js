// JSON with integers beyond 2^53.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parse, stringify } from "../index.js";

test("whole numbers beyond 2^53 are read and written exactly", () => {
  const text = '{"a":9007199254740993,"b":[12345678901234567890123,-9007199254740993],"c":1}';
  const value = parse(text);
  assert.deepEqual(value, { a: 9007199254740993n, b: [12345678901234567890123n, -9007199254740993n], c: 1 });
  assert.equal(stringify(value), text);
});

test("numbers that a double holds stay numbers", () => {
  for (const text of ["0", "-1", "1.5", "9007199254740991", "-9007199254740991", "1e3", "123456789012345678e-3"]) assert.equal(parse(text), JSON.parse(text));
  assert.deepEqual(parse('["9007199254740993"]'), ["9007199254740993"]);
});

test("a document with a long number is read as JSON.parse reads it, but for that number", () => {
  const long = "9007199254740993";
  const values = [
    { text: 'a"b\\c\\', "": null, nested: [[], {}, [{}], [1, [2, [3.25e-7]]]], yes: true, no: false, unicode: "é☃😀\u0000\u2028" },
    [null, "", '"', "\\", "\\\\", '\\"'],
    JSON.parse('{"__proto__":{"x":1},"2":1,"1":2}'),
  ];
  for (const value of values) {
    for (const text of [JSON.stringify([value, 0]), JSON.stringify([value, 0], null, "\t"), ` \r\n${JSON.stringify([value, 0])}\n`]) {
      const read = parse(text.replace(/0(?=\s*\]\s*$)/, long));
      assert.deepEqual(read, [value, BigInt(long)]);
      assert.deepEqual(Object.keys(read[0]), Object.keys(value));
    }
  }
  assert.deepEqual(parse(`{"a":1,"a":${long}}`), { a: BigInt(long) });
});

test("malformed text is an error, with or without long numbers", () => {
  for (const text of ["", "{", "[1,]", '{"a":9007199254740993,}', "9007199254740993 1", "nul"]) assert.throws(() => parse(text), SyntaxError);
});

test("bigints are written with the rules of JSON.stringify for all the rest", () => {
  const date = new Date(0);
  const value = { big: 1n, date, left: undefined, call() {}, list: [undefined, null, 2n], text: "é\n", flag: Object(true) };
  assert.equal(stringify(value), '{"big":1,"date":"1970-01-01T00:00:00.000Z","list":[null,null,2],"text":"é\\n","flag":true}');
  assert.equal(stringify(1n), "1");
});

test("what JSON has no words for is an error, not null", () => {
  assert.throws(() => stringify({ spec: { size: Number.NaN } }), /^TypeError: NaN \(in size\) is no JSON number$/);
  assert.throws(() => stringify(Number.POSITIVE_INFINITY), /Infinity is no JSON number/);
  assert.throws(() => stringify(undefined), /undefined cannot be written as JSON/);
  const circle = { big: 1n };
  circle.self = circle;
  assert.throws(() => stringify(circle), /circular/);
});
