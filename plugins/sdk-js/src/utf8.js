// UTF-8, for engines without TextEncoder. What is not UTF-8 is replaced by U+FFFD.

/** Returns the bytes of a text. */
export function encode(text) {
  const bytes = [];
  for (const character of text) {
    const given = character.codePointAt(0);
    const code = given >= 0xd800 && given <= 0xdfff ? 0xfffd : given;
    if (code < 0x80) bytes.push(code);
    else if (code < 0x800) bytes.push(0xc0 | (code >> 6), tail(code));
    else if (code < 0x10000) bytes.push(0xe0 | (code >> 12), tail(code >> 6), tail(code));
    else bytes.push(0xf0 | (code >> 18), tail(code >> 12), tail(code >> 6), tail(code));
  }
  return Uint8Array.from(bytes);
}

const tail = (code) => 0x80 | (code & 0x3f);

/** Returns the text of bytes. */
export function decode(bytes) {
  const parts = [];
  let at = 0;
  while (at < bytes.length) {
    const first = bytes[at];
    const [length, low] = first < 0x80 ? [1, 0] : first < 0xc2 ? [0] : first < 0xe0 ? [2, 0x80] : first < 0xf0 ? [3, 0x800] : first < 0xf5 ? [4, 0x10000] : [0];
    let code = length === 1 ? first : first & (0x7f >> length);
    let read = 1;
    while (read < length && (bytes[at + read] & 0xc0) === 0x80) {
      code = (code << 6) | (bytes[at + read] & 0x3f);
      read += 1;
    }
    const isSound = length > 0 && read === length && code >= low && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
    parts.push(isSound ? String.fromCodePoint(code) : "\ufffd");
    at += isSound ? length : 1;
  }
  return parts.join("");
}
