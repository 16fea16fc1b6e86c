// The part of the canonical ABI that this plugin needs: what is in memory where. Addresses are those of wasm32: a string or a list is an address and a length, an option is
// a byte (0: none) and the value at the next address that suits it, a variant a byte and the same. See wit/OTHER-LANGUAGES.md.

/** Memory of one call, handed out from one end to the other, and empty again when the host has read the outcome. */
const ROOM: usize = 4 << 20;
let start: usize = 0;
let next: usize = 0;

function take(size: usize, align: usize): usize {
  if (!start) start = next = heap.alloc(ROOM);
  const at = (next + align - 1) & ~(align - 1);
  if (at + size > start + ROOM) unreachable(); // a trap: the key is tried again
  next = at + size;
  return at;
}

/** Where the host puts what it hands in. */
export function cabi_realloc(before: usize, oldSize: usize, align: usize, newSize: usize): usize {
  const at = take(newSize, align);
  if (before) memory.copy(at, before, min(oldSize, newSize));
  return at;
}

/** The host has read what a call returned. */
export function post_return(result: usize): void {
  next = start;
}

/** A zeroed record: every option in it is none. */
export function record(size: usize): usize {
  const at = take(size, 4);
  memory.fill(at, 0, size);
  return at;
}

/** The string whose address and length are at `at`, as AssemblyScript has it (UTF-16). */
export function getString(at: usize): string {
  return String.UTF8.decodeUnsafe(load<usize>(at), load<usize>(at, 4));
}

/** Puts a string's address and length at `at`. */
export function setString(at: usize, text: string): void {
  const size = String.UTF8.byteLength(text);
  const bytes = take(size, 1);
  String.UTF8.encodeUnsafe(changetype<usize>(text), text.length, bytes);
  store<usize>(at, bytes);
  store<usize>(at, size, 4);
}
