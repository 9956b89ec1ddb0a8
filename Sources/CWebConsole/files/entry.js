// An entry: its value as text, JSON, hexadecimal or Base64, and its changes, each on the condition that nobody else has made
// another one.

import { deleteEntry, readValue, writeValue } from "./api.js";
import { button, field, formDialog, h, inParts, replace, save, say, select, verbatim } from "./dom.js";
import * as format from "./format.js";
import { highlighted } from "./highlight.js";
import { formatted, parse } from "./json.js";
import { may } from "./rights.js";
import { marked, marks } from "./text.js";

/// The size of the part of a value that is shown at once, in bytes.
const partSize = 64 << 10;
/// The maximum size of a value that is edited, in bytes.
const maxEditedSize = 4 << 20;
/// The number of values of a list that are shown at once.
const elementsSize = 500;

const views = [["text", "Text"], ["json", "JSON"], ["hex", "Hex"], ["base64", "Base64"]];

/// Asks whether an entry is to be deleted, and deletes it.
export async function deleteQuestion(store, key, revision) {
  const isSure = await formDialog("Delete an entry", [
    h("p", {}, "The entry ", verbatim(key, { class: "strong" }), " will be gone. This can't be undone."),
  ], "Delete", async () => {
    await deleteEntry(store, key, revision);
    return true;
  }, { danger: true });
  return isSure === true;
}

/// - expiresIn: In milliseconds; null for never.
function expiryInput(expiresIn) {
  const value = expiresIn === null ? "" : `${Math.ceil(expiresIn / 1000)} s`;
  return h("input", { value, placeholder: "never", spellcheck: "false" });
}

const expiryField = (input) => field("Expires in", input, "Such as 90 s, 15 min, 2 h or 7 d; empty for never");

/// Asks for a new entry.
/// - Returns: Its key; undefined if there is none.
export function newEntry(store, prefix) {
  const key = h("input", { required: true, value: prefix, spellcheck: "false" });
  const value = h("textarea", { rows: 8, spellcheck: "false" });
  const file = h("input", { type: "file" });
  const expiry = expiryInput(null);
  return formDialog("New entry", [
    field("Key", key, "1 to 4,096 bytes"), field("Value", value, "Text, or JSON"),
    field("Or a file", file), expiryField(expiry),
  ], "Create", async () => {
    const body = file.files[0] ?? value.value;
    await writeValue(store, key.value, body, { expiresIn: format.parseDuration(expiry.value), condition: { absent: true } });
    return key.value;
  });
}

/// Returns which view fits a value.
function bestView(text, isWhole) {
  if (text === null) return "hex";
  if (!isWhole || !/^\s*[[{]/.test(text)) return "text";
  try {
    parse(text);
    return "json";
  } catch {
    return "text";
  }
}

function encode(bytes, view) {
  switch (view) {
    case "hex": return format.hexDigits(bytes);
    case "base64": return format.base64(bytes);
    case "json": return formatted(format.text(bytes));
    default: return format.text(bytes);
  }
}

function decode(text, view) {
  switch (view) {
    case "hex": return format.parseHex(text);
    case "base64": return format.parseBase64(text);
    case "json":
      parse(text);
      return new TextEncoder().encode(text);
    default: return new TextEncoder().encode(text);
  }
}

export class EntryView {
  /// - didDelete, didLoad, didWrite, back: Called when the entry is gone, when its revision and size are known, when it was
  ///   written, and when the user leaves it.
  constructor(store, key, { didDelete, didLoad, didWrite, back }) {
    Object.assign(this, { store, key, didDelete, didLoad, didWrite, back });
    this.controller = new AbortController();
    this.mayWrite = may("write", store, key);
    /// The text area in which the value is changed, and the text that isn't a change; null if there is none.
    this.editor = null;
    this.content = h("div", { class: "content" });
    this.facts = h("p", { class: "facts" }, "Loading…");
    this.tools = h("div", { class: "toolbar" });
    this.element = h("article", { class: "entry" },
      h("div", { class: "heading" },
        button("←", back, { class: "plain back", "aria-label": "Back to the keys" }),
        h("h1", { tabindex: -1 }, verbatim(key))),
      this.facts, this.tools, this.content);
  }

  close() {
    this.controller.abort();
  }

  focus() {
    this.element.querySelector("h1").focus({ preventScroll: true });
  }

  /// Whether something was changed, and not saved.
  get hasChanges() {
    return this.editor !== null && this.editor.area.value !== this.editor.saved;
  }

  /// Loads a part of the value, and shows it, or why there is none.
  async load(start = 0) {
    try {
      await this.#load(start);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.editor = null;
      const isMissing = error.code === "notFound";
      replace(this.facts);
      replace(this.tools, button("Try again", () => this.load(start)));
      replace(this.content, h("p", { class: "failure", role: "alert" },
        isMissing ? "There is no entry with this key. It may have been deleted, or have expired." : verbatim(error.message)));
    }
  }

  async #load(start) {
    this.entry = await readValue(this.store, this.key, start, partSize, this.controller.signal);
    const { bytes, size, revision } = this.entry;
    this.didLoad({ size, revision });
    this.isWhole = bytes.length === size;
    const characters = format.wholeCharacters(bytes, start === 0, start + bytes.length >= size);
    this.text = format.text(characters);
    if (!this.view || !this.possibleViews.includes(this.view)) this.view = bestView(this.text, this.isWhole);
    this.show();
  }

  get possibleViews() {
    if (this.entry.isList) return [];
    if (this.text === null) return ["hex", "base64"];
    return this.isWhole ? ["text", "json", "hex", "base64"] : ["text", "hex", "base64"];
  }

  show() {
    this.editor = null;
    const { revision, expiresIn, isList, size, bytes, start } = this.entry;
    const elements = isList ? format.listElements(bytes) : [];
    replace(this.facts,
      isList
        ? `A list of ${format.things(elements.length, "value")}, ${format.bytes(elements.reduce((sum, { length }) => sum + length, 0))}`
        : format.bytes(size),
      " · revision ", h("span", { class: "revision" }, revision),
      expiresIn === null ? " · doesn't expire" : ` · expires in ${format.duration(expiresIn)}`);
    const menu = select(views.filter(([name]) => this.possibleViews.includes(name)), this.view, {
      "aria-label": "View",
      change: () => {
        this.view = menu.value;
        this.show();
        this.tools.querySelector("select").focus();
      },
    });
    const canEdit = !isList && size <= maxEditedSize;
    const changes = !this.mayWrite ? [] : [
      button("Edit", () => this.edit(), {
        class: "primary", disabled: !canEdit, title: canEdit ? null : "Too large, or a list: upload a file instead",
      }),
      button("Expiry…", () => this.changeExpiry(), { disabled: isList }),
      button("Upload…", () => this.upload()),
    ];
    replace(this.tools, isList ? null : menu, changes,
      button("Download", () => this.download(), { disabled: isList, title: isList ? "“larder get” saves lists" : null }),
      button("Reload", () => this.load(start)),
      this.mayWrite ? button("Delete…", async () => {
        if (await deleteQuestion(this.store, this.key, revision)) this.didDelete();
      }, { class: "danger" }) : null);
    const pager = this.isWhole ? null : h("div", { class: "toolbar pager" },
      button("◀", () => this.load(Math.max(0, start - partSize)), {
        disabled: start === 0, "aria-label": "Previous part",
      }),
      h("span", {}, `bytes ${format.count(start)} to ${format.count(start + bytes.length - 1)} of ${format.count(size)}`),
      button("▶", () => this.load(start + partSize), {
        disabled: start + bytes.length >= size, "aria-label": "Next part",
      }));
    replace(this.content, pager, isList ? this.#list(elements) : this.#value());
  }

  #list(elements) {
    return inParts([...elements.entries()], elementsSize, ([index, element]) => {
      const text = format.text(element);
      return h("div", { class: "element" }, h("span", { class: "count" }, format.count(index + 1)),
        h("pre", { class: "value wrapped" }, text === null ? format.hex(element) : marked(text, false)));
    });
  }

  #value() {
    const { bytes, start } = this.entry;
    const properties = { class: `value ${this.view}`, tabindex: 0, role: "region", "aria-label": "Value" };
    const wrapped = { ...properties, class: "value wrapped" };
    if (bytes.length === 0) return h("p", { class: "hint" }, "The value is empty.");
    if (this.view === "hex") return h("pre", properties, format.hex(bytes, start));
    if (this.view === "base64") return h("pre", wrapped, format.base64(bytes));
    if (this.view === "json") {
      try {
        return highlighted(parse(this.text), this.text, properties);
      } catch (error) {
        return [h("p", { class: "failure" }, `This is not JSON: ${error.message}.`), h("pre", wrapped, marked(this.text, false))];
      }
    }
    return h("pre", wrapped, marked(this.text, false));
  }

  async #wholeValue() {
    if (this.isWhole) return this.entry;
    return readValue(this.store, this.key, 0, undefined, this.controller.signal);
  }

  async edit() {
    const entry = await this.#wholeValue();
    let view = this.view;
    let text;
    try {
      text = encode(entry.bytes, view);
    } catch {
      view = "text";
      text = encode(entry.bytes, view);
    }
    this.#showEditor(text ?? "", view, entry);
  }

  /// Shows an editor of the value.
  /// - base: The entry that the user has seen.
  #showEditor(text, view, base) {
    const area = h("textarea", {
      class: "editor", spellcheck: "false", "aria-label": `Value as ${view}`, value: text,
      keydown: (event) => {
        if (event.key !== "Enter" && event.key !== "s" || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        saveButton.click();
      },
    });
    const failure = h("p", { class: "failure", role: "alert" });
    const write = async (condition) => {
      replace(failure);
      try {
        const body = decode(area.value, view);
        await writeValue(this.store, this.key, body, { expiresIn: base.expiresIn, condition });
      } catch (error) {
        if (error.code === "conditionFailed") return this.#showConflict(area.value, view, base);
        if (error.start !== undefined) area.setSelectionRange(error.start, error.end);
        return replace(failure, verbatim(error.message));
      }
      say("Saved.");
      this.didWrite();
      await this.load();
    };
    const saveButton = button("Save", () => write({ revision: base.revision }), { class: "primary" });
    const hint = h("span", { class: "hint" }, `${view}; Ctrl Enter saves`);
    const codes = marks(text);
    const some = codes.slice(0, 20).join(", ");
    replace(this.tools, saveButton, button("Cancel", () => this.show()), hint);
    replace(this.content, failure, area, codes.length === 0 ? null : h("p", { class: "hint" },
      `Not seen here, or like other letters: ${some}${codes.length > 20 ? " and others" : ""}`));
    // The area may write line breaks in another way.
    this.editor = { area, saved: area.value };
    area.focus();
    area.setSelectionRange(0, 0);
  }

  /// Shows what somebody else has written meanwhile, beside what was to be saved.
  async #showConflict(text, view, base) {
    let other;
    try {
      other = await readValue(this.store, this.key, 0, undefined, this.controller.signal);
    } catch (error) {
      if (error.status !== 404) throw error;
    }
    let theirs = "It was deleted.";
    if (other) {
      try {
        theirs = encode(other.bytes, view) ?? format.hex(other.bytes);
      } catch {
        theirs = format.text(other.bytes) ?? format.hex(other.bytes);
      }
    }
    const mine = h("textarea", { class: "editor", spellcheck: "false", "aria-label": "Your version", value: text });
    const failure = h("p", { class: "failure", role: "alert" });
    replace(this.tools,
      button("Save my version", async () => {
        replace(failure);
        try {
          const condition = other ? { revision: other.revision } : { absent: true };
          await writeValue(this.store, this.key, decode(mine.value, view), { expiresIn: base.expiresIn, condition });
        } catch (error) {
          if (error.code === "conditionFailed") return this.#showConflict(mine.value, view, base);
          return replace(failure, verbatim(error.message));
        }
        say("Saved your version.");
        this.didWrite();
        await this.load();
      }, { class: "danger" }),
      button("Keep the other version", () => (other ? this.load() : this.didDelete())));
    const what = other
      ? `Somebody else has changed this entry: it has revision ${other.revision} now, not ${base.revision}.`
      : "Somebody else has deleted this entry.";
    const otherVersion = { class: "value wrapped", tabindex: 0, role: "region", "aria-label": "The other version" };
    replace(this.content,
      h("p", { class: "failure", role: "alert" }, `${what} Nothing was saved.`), failure,
      h("div", { class: "versions" },
        h("div", {}, h("h2", {}, "Your version"), mine),
        h("div", {}, h("h2", {}, "The other version"), h("pre", otherVersion, marked(theirs, false)))));
    this.editor = { area: mine, saved: null };
    mine.focus();
  }

  async changeExpiry() {
    const { expiresIn, revision } = this.entry;
    const input = expiryInput(expiresIn);
    const didChange = await formDialog("Expiry", [expiryField(input)], "Save", async () => {
      const milliseconds = format.parseDuration(input.value);
      const { bytes } = await this.#wholeValue();
      await writeValue(this.store, this.key, bytes, { expiresIn: milliseconds, condition: { revision } });
      return true;
    });
    if (didChange) await this.load();
  }

  async download() {
    const { bytes } = await this.#wholeValue();
    save(this.key.split("/").pop() || "value", new Blob([bytes], { type: "application/octet-stream" }));
  }

  async upload() {
    const file = h("input", { type: "file", required: true });
    const { expiresIn, revision } = this.entry;
    const fields = [field("File", file, "It becomes the value of the entry.")];
    const didWrite = await formDialog("Upload", fields, "Upload", async () => {
      await writeValue(this.store, this.key, file.files[0], { expiresIn, condition: { revision } });
      return true;
    });
    if (!didWrite) return;
    say("Saved.");
    this.view = null;
    this.didWrite();
    await this.load();
  }
}
