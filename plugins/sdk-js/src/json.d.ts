/** What a JSON document holds. A whole number beyond 2^53 is a bigint. */
export type Json = null | boolean | number | bigint | string | Json[] | { [field: string]: Json };

/** Reads a JSON document. A whole number that a double cannot hold is a bigint, with all of its digits; others are as `JSON.parse` makes them. */
export function parse<T = any>(text: string): T;

/** Writes a JSON document, bigints as numbers. `NaN`, infinities and `undefined` itself are errors. */
export function stringify(value: unknown): string;
