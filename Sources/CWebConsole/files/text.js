// Text from outside, shown so that no two texts look alike: what can't be seen, what changes the direction of the text around
// it, and letters of other alphabets that look like Latin ones are marked with their codes.

import { h } from "./dom.js";

/// Characters that show nothing, or nothing but a space, each with those that repeat it.
const hidden = String.raw`([\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|[^\P{Zs} ])\1*`;
/// In one line, line breaks and the spaces at both ends can't be seen, either.
const inLine = new RegExp(`^ +| +$|${hidden}`, "gu");
const inLines = new RegExp(`(?![\\n\\t])${hidden}`, "gu");
const words = /[\p{L}\p{M}]+/gu;
const notASCII = /[^\0-\x7f]/;
const otherAlphabet = /[\p{Script=Cyrillic}\p{Script=Greek}]/u;
/// The letters, most of them Cyrillic and Greek, that look like those of ASCII.
const doubles = new Set("ɡаеорсухіјѕԁһӏԛԝАВЕЅІЈКМНОРСТУХԌԚԜӀονυρικγΑΒΕΖΗΙΚΜΝΟΡΤΥΧ");

/// Other forms of letters, digits and punctuation of ASCII.
const aliases =
  /[\u02d0\u037e\u0570\u0578\u057d\u0581\u0585\u2010\u2011\u201a\u2024\u2044\u2160-\u217f\u2215\u2236\ufb00-\ufb06\uff01-\uff5e\u{1d400}-\u{1d7ff}]/gu;

const code = (character) => `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

/// Returns the parts of a text: `[text]`, or `[text, code, isSeen]` for one that is marked.
function parts(text, isOneLine) {
  const found = [];
  for (const match of text.matchAll(isOneLine ? inLine : inLines)) {
    const count = [...match[0]].length;
    found.push([match.index, match[0], `${code(match[0])}${count > 1 ? ` × ${count}` : ""}`, false]);
  }
  if (notASCII.test(text)) found.push(...alike(text));
  found.sort(([first], [second]) => first - second);
  const parts = [];
  let end = 0;
  for (const [start, part, label, isSeen] of found) {
    if (start < end) continue;
    if (start > end) parts.push([text.slice(end, start)]);
    parts.push([part, label, isSeen]);
    end = start + part.length;
  }
  if (end < text.length) parts.push([text.slice(end)]);
  return parts;
}

/// Finds letters that look like others: in words that can be taken for Latin, and characters that are written in another way
/// than usual, such as a letter and its accent.
function* alike(text) {
  for (const { index, 0: character } of text.matchAll(aliases)) yield [index, character, code(character), true];
  const isASCII = (letter) => !notASCII.test(letter);
  const canBeLatin = (letter) => isASCII(letter) || doubles.has(letter);
  const all = [...text.matchAll(words)].map((word) => ({ index: word.index, letters: [...word[0]] }));
  // In a text that is obviously of another alphabet, only words that mix it with the Latin one are suspicious.
  const isLatin = all.every(({ letters }) => letters.every(canBeLatin));
  for (const { index: start, letters } of all) {
    const isMixed = letters.some(isASCII) && letters.some((letter) => doubles.has(letter) || otherAlphabet.test(letter));
    if (!isMixed && !(isLatin && letters.every(canBeLatin))) continue;
    // Those are marked that are not of the word's own alphabet.
    const isStranger = letters.every(canBeLatin) ? (letter) => doubles.has(letter) : isASCII;
    let index = start;
    for (const letter of letters) {
      if (isStranger(letter)) yield [index, letter, code(letter), true];
      index += letter.length;
    }
  }
  if (text.normalize("NFC") === text) return;
  for (const { index, 0: character } of text.matchAll(/.\p{M}*/gsu)) {
    if (character.normalize("NFC") !== character) yield [index, character, [...character].map(code).join(" "), true];
  }
}

/// Returns what an element shows of a text. Its text is the same, so that it can be found and copied.
/// - isOneLine: Whether line breaks and tabs are marked, too.
export function marked(text, isOneLine = true) {
  return parts(String(text), isOneLine).map(([part, label, isSeen]) =>
    (label ? h("span", { class: isSeen ? "alike" : "unseen", "data-code": label }, part) : part));
}

/// Returns a text for where only text can be, such as a drawing, with codes in place of what can't be seen.
export const plain = (text) => parts(String(text), true).map(([part, label, isSeen]) =>
  (label ? `${isSeen ? part : ""}[${label}]` : part)).join("");

/// Returns the codes of what is marked in a text, each once.
export const marks = (text) => [...new Set(parts(text, false).flatMap(([, label]) => (label ? [label] : [])))];
