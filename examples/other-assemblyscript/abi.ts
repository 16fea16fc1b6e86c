// The part of the canonical ABI that this plugin needs: the memory layout. Addresses are those of
// wasm32. A string or a list is an address and a length. An option is a byte (0: none) and the
// value at the next aligned address. A variant is a byte and the value likewise. See
// wit/OTHER-LANGUAGES.md.

/**
 * The memory of one call, allocated from start to end, and freed when the host has read the
 * outcome.
 */
const ROOM: usize = 4 << 20;
let start: usize = 0;
let next: usize = 0;

function take(size: usize, align: usize): usize {
  if (!start) start = next = heap.alloc(ROOM);
  const at = (next + align - 1) & ~(align - 1);
  if (at + size > start + ROOM) unreachable(); // a trap: the host retries the key
  next = at + size;
  return at;
}

/** Allocates memory for what the host passes. */
export function cabi_realloc(before: usize, oldSize: usize, align: usize, newSize: usize): usize {
  const at = take(newSize, align);
  if (before) memory.copy(at, before, min(oldSize, newSize));
  return at;
}

/** Frees the memory after the host has read the result of a call. */
export function post_return(result: usize): void {
  next = start;
}

/** Returns a zeroed record, in which every option is none. */
export function record(size: usize): usize {
  const at = take(size, 4);
  memory.fill(at, 0, size);
  return at;
}

/** Returns the string whose address and length are at `at`, in AssemblyScript's form (UTF-16). */
export function getString(at: usize): string {
  return String.UTF8.decodeUnsafe(load<usize>(at), load<usize>(at, 4));
}

/** Writes a string's address and length to `at`. */
export function setString(at: usize, text: string): void {
  const size = String.UTF8.byteLength(text);
  const bytes = take(size, 1);
  String.UTF8.encodeUnsafe(changetype<usize>(text), text.length, bytes);
  store<usize>(at, bytes);
  store<usize>(at, size, 4);
}
