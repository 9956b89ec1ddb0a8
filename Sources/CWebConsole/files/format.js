// Values as people read them.

const counts = new Intl.NumberFormat("en-US");

export const count = (number) => counts.format(number);

export const things = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export function bytes(number) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (number >= 1024 && unit < units.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return unit === 0 ? things(Math.round(number), "byte") : `${number.toFixed(number < 10 ? 1 : 0)} ${units[unit]}`;
}

/// A short number, as for an axis.
export function short(number) {
  if (number < 1000) return String(Math.round(number));
  if (number < 1e6) return `${(number / 1e3).toFixed(number < 1e4 ? 1 : 0)} k`;
  return `${(number / 1e6).toFixed(number < 1e7 ? 1 : 0)} M`;
}

export function duration(milliseconds) {
  if (milliseconds < 1) return `${Math.round(milliseconds * 1000)} µs`;
  if (milliseconds < 1000) return `${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms`;
  const seconds = Math.floor(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

const units = { ms: 1, s: 1000, m: 60000, min: 60000, h: 3600000, d: 86400000 };

/// Returns the milliseconds of a text such as "90 s"; null for an empty text.
export function parseDuration(text) {
  if (text.trim() === "") return null;
  const match = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?\s*$/.exec(text);
  const milliseconds = match ? Math.round(Number(match[1]) * units[match[2] ?? "s"]) : 0;
  if (milliseconds < 1) throw new Error("A time is a number with a unit, such as 500 ms, 90 s, 15 min, 2 h or 7 d.");
  return milliseconds;
}

/// Returns bytes as text; null if they aren't UTF-8.
export function text(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/// Returns the part of bytes that doesn't begin or end inside a character of UTF-8.
export function wholeCharacters(bytes, isFirst, isLast) {
  let [start, end] = [0, bytes.length];
  if (!isFirst) while (start < Math.min(3, end) && (bytes[start] & 0xc0) === 0x80) start += 1;
  if (!isLast) {
    let back = end - 1;
    while (back > Math.max(start, end - 4) && (bytes[back] & 0xc0) === 0x80) back -= 1;
    const first = bytes[back] ?? 0;
    const size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    if (back + size > end) end = back;
  }
  return bytes.subarray(start, end);
}

export function hex(bytes, offset = 0) {
  const lines = [];
  for (let start = 0; start < bytes.length; start += 16) {
    const row = bytes.subarray(start, start + 16);
    const digits = Array.from(row, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const characters = Array.from(row, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${(offset + start).toString(16).padStart(8, "0")}  ${digits.padEnd(47)}  ${characters}`);
  }
  return lines.join("\n");
}

export const hexDigits = (bytes) =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(" ").replace(/(.{48})/g, "$1\n");

export function parseHex(text) {
  const digits = text.replace(/\s/g, "");
  if (digits.length % 2 || /[^0-9a-f]/i.test(digits)) {
    throw new Error("Hexadecimal has two digits, 0 to 9 and a to f, for each byte.");
  }
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

export function base64(bytes) {
  let binary = "";
  for (let start = 0; start < bytes.length; start += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  }
  return btoa(binary);
}

export function parseBase64(text) {
  try {
    return Uint8Array.from(atob(text.replace(/\s/g, "")), (character) => character.charCodeAt(0));
  } catch {
    throw new Error("This is not Base64.");
  }
}

/// Returns the elements of a list, whose bytes are those of the elements, each behind its size.
export function listElements(bytes) {
  const elements = [];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let offset = 0; offset + 4 <= bytes.length; ) {
    const size = view.getUint32(offset, true);
    elements.push(bytes.subarray(offset + 4, offset + 4 + size));
    offset += 4 + size;
  }
  return elements;
}

/// Returns the beginning of a text, without half of a character.
export const beginning = (text, length) =>
  text.slice(0, text.length > length && /[\ud800-\udbff]/.test(text[length - 1]) ? length - 1 : length);

/// Returns the beginning of a value in a list or in a change, as one line.
export function valueText({ value, valueBase64, isList }, length) {
  if (value === undefined && valueBase64 === undefined) return "";
  if (!isList) return beginning(value ?? `(binary) ${valueBase64}`, length);
  const elements = listElements(value === undefined ? parseBase64(valueBase64) : new TextEncoder().encode(value));
  const texts = elements.slice(0, length).map((element) => text(element) ?? `(binary) ${base64(element)}`);
  return beginning(`${things(elements.length, "value")}: ${texts.join(", ")}`, length);
}

export const csvField = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
