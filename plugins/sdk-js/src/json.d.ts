/** The value of a JSON document. An integer beyond 2^53 is a bigint. */
export type Json = null | boolean | number | bigint | string | Json[] | { [field: string]: Json };

/**
 * Parses a JSON document. An integer that a double cannot hold is a bigint with all of its digits;
 * other values are as from `JSON.parse`.
 */
export function parse<T = any>(text: string): T;

/**
 * Writes a JSON document, bigints as numbers. `NaN`, infinities and `undefined` itself are errors.
 */
export function stringify(value: unknown): string;
