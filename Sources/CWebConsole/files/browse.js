// The entries of a store: a tree of keys by a delimiter, and beside it a table of the entries below a prefix, or an entry.

import { get, pages, send, storePath } from "./api.js";
import { button, field, formDialog, h, mayDiscard, progressDialog, replace, report, say, verbatim } from "./dom.js";
import { bytes, count, duration, things, valueText } from "./format.js";
import { deleteQuestion, EntryView, newEntry } from "./entry.js";
import { VirtualList } from "./list.js";
import { may } from "./rights.js";
import { exportEntries } from "./stores.js";

/// The number of elements of a folder that one request asks for, and of entries of the table.
const partSize = 100;
/// The maximum number of elements of one folder that are kept. Beyond it, the table shows all.
const maxElements = 20_000;

/// The keys of a store as a tree, of which only the open folders are loaded.
class KeyTree {
  constructor(store, delimiter, didChange) {
    Object.assign(this, { store, delimiter, didChange });
    this.root = { prefix: "", level: 0, isOpen: true, elements: [], isComplete: false };
    this.nodes = [];
  }

  /// Loads the next elements of a folder.
  async load(folder) {
    if (folder.isLoading || folder.isComplete) return;
    folder.isLoading = true;
    try {
      const last = folder.elements.at(-1);
      const part = await get(storePath(this.store, "tree"), {
        prefix: folder.prefix, delimiter: this.delimiter, after: last?.prefix ?? last?.key, limit: partSize,
      });
      for (const element of part.elements) {
        element.level = folder.level + 1;
        if (element.prefix !== undefined) Object.assign(element, { isOpen: false, elements: [], isComplete: false });
        element.parent = folder;
        folder.elements.push(element);
      }
      folder.isFull = folder.elements.length >= maxElements && !part.isComplete;
      folder.isComplete = part.isComplete || folder.isFull;
    } catch (error) {
      folder.failure = error.message;
      throw error;
    } finally {
      folder.isLoading = false;
    }
    this.flatten();
  }

  /// Lists the elements that can be seen. The last row of a folder that has more is `{more: folder}`.
  flatten() {
    const nodes = [];
    const visit = (folder) => {
      for (const element of folder.elements) {
        nodes.push(element);
        if (element.isOpen) visit(element);
      }
      if (!folder.isComplete || folder.isFull) nodes.push({ more: folder, level: folder.level + 1 });
    };
    visit(this.root);
    this.nodes = nodes;
    this.didChange();
  }

  async toggle(folder, isOpen = !folder.isOpen) {
    folder.isOpen = isOpen;
    try {
      if (isOpen && folder.elements.length === 0) await this.load(folder);
    } finally {
      this.flatten();
    }
  }
}

/// The entries below a prefix, of which only those near what can be seen are kept.
class EntryTable {
  /// The number of parts that are kept.
  static maxParts = 30;

  constructor(store, prefix, { open, deleteKey }) {
    Object.assign(this, { store, prefix });
    this.total = 0;
    this.parts = new Map();
    this.loading = new Set();
    this.controller = new AbortController();
    this.heading = h("p", { class: "hint" }, "Counting…");
    this.list = new VirtualList({
      label: "Entries", role: "listbox", count: () => this.total, row: (index) => this.#row(index),
      didSelect: () => {},
      open: (index) => this.#entry(index) && open(this.#entry(index).key),
      didPressKey: (event, index) => {
        const entry = this.#entry(index);
        if (event.key !== "Delete" || !entry) return false;
        deleteKey(entry.key, entry.revision);
        return true;
      },
    });
    this.open = open;
    this.element = h("div", { class: "table" }, this.heading, h(
      "div", { class: "columns-of-row head", "aria-hidden": "true" },
      ["Key", "Size", "Revision", "Expires in", "Value"].map((name) => h("span", {}, name))), this.list.element);
  }

  /// Counts the entries, and shows them, or why they can't be shown.
  async load() {
    try {
      await this.#load();
    } catch (error) {
      replace(this.heading, verbatim(error.message));
      throw error;
    }
  }

  async #load() {
    const { count: total } = await get(storePath(this.store, "count"), { prefix: this.prefix }, this.controller.signal);
    this.total = total;
    const which = this.prefix ? [" that begin with ", verbatim(this.prefix)] : null;
    replace(this.heading, things(total, "entry", "entries"), which);
    this.list.refresh();
  }

  close() {
    this.controller.abort();
    this.list.close();
  }

  #entry(index) {
    return this.parts.get(Math.floor(index / partSize))?.[index % partSize];
  }

  #row(index) {
    const number = Math.floor(index / partSize);
    if (!this.parts.has(number)) this.#loadPart(number);
    const entry = this.#entry(index);
    const row = h("div", { class: "columns-of-row", role: "option" });
    if (!entry) return replace(row, h("span", { class: "faint" }, "…")) && row;
    replace(row,
      h("span", { class: "key", click: () => this.open(entry.key) }, verbatim(entry.key)),
      h("span", { class: "number" }, bytes(entry.size)), h("span", { class: "number" }, entry.revision),
      h("span", { class: "number" }, entry.expiresInMilliseconds ? duration(entry.expiresInMilliseconds) : "–"),
      h("span", {}, verbatim(valueText(entry, 200), { class: "faint" })));
    return row;
  }

  async #loadPart(number) {
    if (this.loading.has(number)) return;
    this.loading.add(number);
    try {
      const { entries } = await get(
        storePath(this.store, "entries"), { prefix: this.prefix, offset: number * partSize, limit: partSize, values: 1 },
        this.controller.signal);
      this.parts.set(number, entries);
      // The part that was loaded first goes first.
      if (this.parts.size > EntryTable.maxParts) this.parts.delete(this.parts.keys().next().value);
      this.list.refresh();
    } catch (error) {
      report(error);
    } finally {
      this.loading.delete(number);
    }
  }
}

/// Deletes all entries whose keys have a prefix, after a question.
async function deleteBelow(store, prefix) {
  const { count: total } = await get(storePath(store, "count"), { prefix });
  if (total === 0) return say("There are no entries to delete.");
  const input = h("input", { required: true, inputmode: "numeric", autocomplete: "off" });
  const which = prefix ? [": all whose keys begin with ", verbatim(prefix, { class: "strong" })] : ": all of the store";
  const isSure = await formDialog("Delete entries", [
    h("p", {}, `${things(total, "entry", "entries")} will be gone`, which, ". This can't be undone."),
    field(`Type the number of entries, ${total}`, input),
  ], "Delete", () => {
    if (input.value.replace(/[^0-9]/g, "") !== String(total)) throw new Error("This is not the number of entries.");
    return true;
  }, { danger: true });
  if (!isSure) return;
  let deleted = 0;
  try {
    await progressDialog("Delete", async (show, signal) => {
      for await (const entries of pages(store, prefix, { signal })) {
        const keys = entries.map((entry) => entry.key);
        // A request that has been sent isn't stopped, so that the number is right.
        deleted += (await send("POST", storePath(store, "delete"), { keys })).deleted;
        show(`${count(deleted)} of ${count(total)}`, Math.min(1, deleted / total));
      }
    });
  } finally {
    say(`Deleted ${things(deleted, "entry", "entries")}.`);
  }
}

/// The name in the address of a folder, before its prefix.
const folderName = "below";

/// The place in a store that the end of an address names: an entry, or the entries below a prefix.
const placeOf = ([name, prefix]) => (name === folderName && prefix !== undefined ? { prefix } : { key: name });

export function browsePage({ store, prefix: readablePrefix, rest, remember, storesDidChange }) {
  const detail = h("div", { class: "detail" });
  const prefixInput = h("input", {
    type: "search", value: readablePrefix, placeholder: "Prefix", "aria-label": "Prefix of keys", spellcheck: "false",
    "data-shortcut": "/",
    change: () => restart(),
  });
  const delimiterInput = h("input", {
    class: "delimiter", value: "/", maxlength: 16, spellcheck: "false", "aria-label": "Delimiter of folders",
    title: "What ends the name of a folder: / or :, for example. Empty for none.",
    change: () => restart(),
  });
  const element = h("section", { class: "browse" });
  let tree = null;
  let view = null;
  /// What is shown: `{key}`, or `{prefix}`.
  let place = {};
  let cameByKey = false;

  const list = new VirtualList({
    label: "Keys", role: "tree", rowHeight: 28,
    count: () => tree?.nodes.length ?? 0,
    row: (index) => row(tree.nodes[index]),
    didSelect: (index, isByKey) => show(tree.nodes[index], isByKey),
    open: (index) => {
      const node = tree.nodes[index];
      if (node.prefix !== undefined) tree.toggle(node).catch(report);
      else if (node.key !== undefined) visit(node, { isFocused: true }).catch(report);
    },
    didPressKey: (event, index) => press(event.key, tree.nodes[index]),
  });

  function row(node) {
    if (node.more) {
      // What can be seen is wanted.
      const { isFull, failure } = node.more;
      if (!isFull && !failure) tree.load(node.more).catch(report);
      const text = isFull ? `Only ${count(maxElements)} are shown here; the table has all` : failure ?? "Loading…";
      return indent(h("div", { role: "treeitem", "aria-level": node.level, class: "faint" }, verbatim(text)), node.level);
    }
    const name = node.prefix ?? node.key;
    const shown = name.slice(node.parent.prefix.length);
    const item = h("div", {
      role: "treeitem", "aria-level": node.level, "aria-expanded": node.prefix === undefined ? null : String(node.isOpen),
    });
    if (node.prefix !== undefined) {
      item.append(
        h("span", { class: "twisty", "aria-hidden": "true", click: () => tree.toggle(node) }, node.isOpen ? "▾" : "▸"),
        verbatim(shown), h("span", { class: "count" }, count(node.count)));
    } else {
      item.append(
        h("span", { class: "twisty", "aria-hidden": "true" }, "·"), verbatim(shown === "" ? name : shown),
        h("span", { class: "count faint" }, bytes(node.size)));
    }
    return indent(item, node.level);
  }

  function indent(item, level) {
    item.style.paddingInlineStart = `${level * 14 - 6}px`;
    return item;
  }

  function press(key, node) {
    if (!node || node.more) return false;
    if (key === "ArrowRight" && node.prefix !== undefined && !node.isOpen) {
      tree.toggle(node, true).catch(report);
    } else if (key === "ArrowLeft") {
      const folder = node.isOpen ? node : node.parent;
      if (folder === tree.root) return true;
      const index = tree.nodes.indexOf(folder);
      if (node.isOpen) tree.toggle(node, false);
      list.select(index);
    } else if (key === "Delete" && may("write", store, node.prefix ?? node.key)) {
      (node.prefix !== undefined ? removeBelow(node.prefix) : removeEntry(node.key, node.revision)).catch(report);
    } else {
      return false;
    }
    return true;
  }

  function show(node, isByKey) {
    // Whoever moves by keys passes many rows, which are one step in the browser's history.
    if (!node.more) visit(node, { isStep: !(isByKey && cameByKey), isByKey }).catch(report);
  }

  /// Shows a place, unless it would lose something that the user wants to keep.
  /// - isStep: Whether the browser's history gets another entry.
  /// - isByKey: Whether a key has selected it.
  /// - isAsked: Whether the user has been asked.
  async function visit({ key, prefix }, { isStep = true, isAsked = false, isFocused = false, isByKey = false } = {}) {
    if (!isAsked && view?.hasChanges && !(await mayDiscard())) {
      list.selected = tree.nodes.findIndex((node) => node.key !== undefined && node.key === place.key);
      return list.refresh();
    }
    const rest = key !== undefined ? [key] : prefix === readablePrefix ? [] : [folderName, prefix];
    const isSame = key !== undefined ? key === place.key : prefix === place.prefix;
    remember(rest, isStep && !isSame);
    place = key !== undefined ? { key } : { prefix };
    cameByKey = isByKey;
    if (key !== undefined) showEntry(key, isFocused);
    else showTable(prefix);
  }

  function use(next) {
    view?.close?.();
    view = next;
    replace(detail, view.element);
  }

  function showTable(prefix) {
    const table = new EntryTable(store, prefix, {
      open: (key) => visit({ key }, { isFocused: true }).catch(report),
      deleteKey: (key, revision) => may("write", store, key) && removeEntry(key, revision).catch(report),
    });
    use(table);
    const mayWrite = may("write", store, prefix);
    table.element.prepend(h("div", { class: "heading" },
      h("h1", {}, prefix ? verbatim(prefix) : "All entries"),
      mayWrite ? button("New entry…", async () => {
        const key = await newEntry(store, prefix);
        if (key) await didWrite(key);
      }, { class: "primary" }) : null,
      button("Save as lines…", () => exportEntries(store, prefix)),
      mayWrite
        ? button("Delete…", () => removeBelow(prefix), { class: "danger", "aria-label": "Delete these entries" }) : null));
    table.load().catch(report);
    element.classList.remove("shows-entry");
  }

  function showEntry(key, isFocused) {
    const entry = new EntryView(store, key, {
      didDelete: () => didDelete(key),
      didLoad: (facts) => {
        const node = tree?.nodes.find((node) => node.key === key);
        if (node) Object.assign(node, facts);
        list.refresh();
      },
      didWrite: () => storesDidChange(),
      back: async () => {
        await visit({ prefix: prefixInput.value });
        list.element.focus();
      },
    });
    use(entry);
    element.classList.add("shows-entry");
    entry.load().catch(report);
    if (isFocused) entry.focus();
  }

  async function removeEntry(key, revision) {
    if (await deleteQuestion(store, key, revision)) didDelete(key);
  }

  function didDelete(key) {
    say(`Deleted ${key}.`);
    refresh();
  }

  async function removeBelow(prefix) {
    try {
      await deleteBelow(store, prefix);
    } finally {
      refresh();
    }
  }

  async function didWrite(key) {
    await Promise.all([startTree(), visit({ key }, { isFocused: true })]);
    storesDidChange().catch(report);
  }

  /// Shows the keys and the entries as they are now, after something was deleted.
  function refresh() {
    startTree().catch(report);
    visit({ prefix: place.prefix ?? prefixInput.value }, { isStep: false, isAsked: true }).catch(report);
    storesDidChange().catch(report);
  }

  /// Shows the keys and the entries below another prefix, or with another delimiter.
  async function restart() {
    if (view?.hasChanges && !(await mayDiscard())) return;
    visit({ prefix: prefixInput.value }, { isStep: place.key !== undefined, isAsked: true }).catch(report);
    await startTree();
  }

  async function startTree() {
    tree = new KeyTree(store, delimiterInput.value, () => list.refresh());
    tree.root.prefix = prefixInput.value;
    list.selected = -1;
    list.element.scrollTop = 0;
    list.refresh();
    await tree.load(tree.root);
  }

  /// Shows what the end of an address names.
  function go(rest) {
    const { key, prefix = readablePrefix } = placeOf(rest);
    visit({ key, prefix: key === undefined ? prefix : undefined }, { isStep: false, isAsked: true }).catch(report);
  }

  replace(element,
    h("div", { class: "keys" },
      h("div", { class: "toolbar" }, prefixInput, delimiterInput,
        button("↻", restart, { class: "plain", "aria-label": "Load the keys again" })),
      list.element),
    detail);
  return {
    element,
    close: () => {
      list.close();
      view?.close?.();
    },
    get hasChanges() {
      return view?.hasChanges === true;
    },
    go,
    didAppear: () => {
      startTree().catch(report);
      go(rest);
    },
  };
}
