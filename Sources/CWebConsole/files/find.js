// Finds of documents: a query with its errors at their places, the plan, and the results.

import { lines, send, sendText, storePath } from "./api.js";
import { button, h, inParts, progressDialog, replace, save, say, select, verbatim } from "./dom.js";
import { beginning, count, csvField, duration, things } from "./format.js";
import { formatted, nodeAt, parse, placeOf, textOf } from "./json.js";
import { operators, queryFlaw } from "./selectors.js";
import { highlighted } from "./highlight.js";
import { VirtualList } from "./list.js";
import { planView } from "./plan.js";
import { may } from "./rights.js";

const example = `{
  "selector": {},
  "limit": 25
}`;
const maxHistory = 50;
/// The maximum size of the documents that are shown, in characters. CSV and NDJSON have all of them.
const maxShownSize = 128 << 20;
/// The number of members that have columns, and of documents that are shown at once as JSON.
const maxColumns = 100;
const textsSize = 50;
const rowHeight = 30;

const historyName = (store) => `larder-history-${store}`;

function history(store) {
  try {
    return JSON.parse(localStorage.getItem(historyName(store))) ?? [];
  } catch {
    return [];
  }
}

function addToHistory(store, query) {
  const queries = [query, ...history(store).filter((other) => other !== query)].slice(0, maxHistory);
  localStorage.setItem(historyName(store), JSON.stringify(queries));
}

/// A text area in which a place can be marked as wrong.
class QueryEditor {
  constructor(text, { didChange, run }) {
    this.marks = h("pre", { class: "marks", "aria-hidden": "true" });
    this.flaw = h("p", { class: "flaw", role: "status", id: "query-flaw" });
    this.area = h("textarea", {
      class: "query", rows: 9, value: text, spellcheck: "false", "data-shortcut": "/",
      "aria-label": "Query", "aria-describedby": "query-flaw",
      input: () => {
        this.check();
        didChange?.();
      },
      scroll: () => this.#align(),
      keydown: (event) => {
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        run();
      },
    });
    this.element = h("div", { class: "query-editor" }, h("div", { class: "layers" }, this.marks, this.area), this.flaw);
    this.check();
  }

  get text() {
    return this.area.value;
  }

  set text(text) {
    this.area.value = text;
    this.check();
  }

  #align() {
    this.marks.scrollTop = this.area.scrollTop;
    this.marks.scrollLeft = this.area.scrollLeft;
  }

  /// Marks what can be known to be wrong without the server.
  check() {
    this.mark(queryFlaw(this.text));
  }

  /// - flaw: `{message, start, end}`, or null.
  mark(flaw) {
    replace(this.flaw, flaw && verbatim(flaw.message));
    this.area.setAttribute("aria-invalid", flaw ? "true" : "false");
    if (!flaw) return replace(this.marks, this.text, "\n");
    const [start, end] = [Math.min(flaw.start, this.text.length), Math.max(flaw.end, flaw.start + 1)];
    const mark = h("mark", {}, this.text.slice(start, end) || " ");
    replace(this.marks, this.text.slice(0, start), mark, this.text.slice(end), "\n");
    this.#align();
  }

  /// Marks the place that an error of the server names.
  markProblem(message) {
    const path = /\(at (\$[^()]*)\)$/.exec(message)?.[1];
    let place = null;
    if (path) {
      try {
        const root = parse(this.text);
        const selector = nodeAt(root, "selector");
        place = placeOf(path, root) ?? (selector && placeOf(path, selector));
      } catch {
        // The message has to do without a place.
      }
    }
    this.mark({ message, start: place?.start ?? this.text.length, end: place?.end ?? this.text.length });
  }

  insert(text) {
    this.area.focus();
    this.area.setRangeText(text, this.area.selectionStart, this.area.selectionEnd, "end");
    this.check();
  }
}

/// Returns the query with another limit, and without what pages have.
function withMembers(text, members) {
  const root = parse(text);
  const kept = root.members.filter(({ name }) => !(name in members)).map((member) =>
    `${text.slice(member.nameStart, member.nameEnd)}:${text.slice(member.value.start, member.value.end)}`);
  const added = Object.entries(members).filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
  return `{${[...kept, ...added].join(",")}}`;
}

/// A document that was found, as its line in the response. It is parsed when it is needed, because there may be many.
class FoundDocument {
  constructor(line, id) {
    this.line = line;
    this.id = id ?? "(not UTF-8)";
  }

  /// The document in its line, whose numbers stay as they are written.
  get node() {
    return nodeAt(parse(this.line), "document");
  }

  get text() {
    const { start, end } = this.node;
    return this.line.slice(start, end);
  }

  /// Returns what it has as members.
  values(names) {
    const { node } = this;
    return names.map((name) => textOf(nodeAt(node, name), this.line));
  }
}

/// Reads documents.
/// - maxSize: The number of characters after which no more are read.
/// - Returns: The documents, the names of their members in the order of their first occurrence, and the result, which is
///   null if no more were read.
async function find(store, query, { signal, maxSize = Infinity, didRead } = {}) {
  const stop = new AbortController();
  const signals = AbortSignal.any(signal ? [signal, stop.signal] : [stop.signal]);
  const headers = { Accept: "application/x-ndjson" };
  const response = await sendText(storePath(store, "find"), query, { headers, signal: signals });
  const documents = [];
  const names = new Set();
  let size = 0;
  for await (const line of lines(response)) {
    const { id, document, result, error } = JSON.parse(line);
    if (error) throw new Error(error.detail);
    if (result) return { documents, names: [...names], result };
    if (typeof document === "object" && !Array.isArray(document)) for (const name in document) names.add(name);
    documents.push(new FoundDocument(line, id));
    didRead?.(documents.length);
    size += line.length;
    if (size > maxSize) {
      stop.abort();
      return { documents, names: [...names], result: null };
    }
  }
  throw new Error("The response has no end.");
}

function csvLine(fields) {
  // A text that a spreadsheet would take for a formula isn't changed: the file is data.
  return `${fields.map(csvField).join(",")}\r\n`;
}

/// A table of which only the rows that can be seen are in the page.
/// - openEntry: Called with the key of a document.
function documentTable(documents, names, openEntry) {
  const shown = names.slice(0, maxColumns);
  const style = `minmax(12rem, 1fr) repeat(${shown.length}, minmax(9rem, 1fr))`;
  const cells = (row, role, contents) => {
    row.style.gridTemplateColumns = style;
    row.append(...contents.map((content) => h("span", { role }, content)));
    return row;
  };
  const head = cells(h("div", { class: "document-row head", "aria-hidden": "true" }), null, ["id", ...shown.map((name) => verbatim(name))]);
  const list = new VirtualList({
    label: "Documents", role: "grid", rowHeight, count: () => documents.length,
    row: (index) => {
      const { id } = documents[index];
      return cells(h("div", { class: "document-row", role: "row", "aria-rowindex": index + 1 }), "gridcell", [
        h("span", { class: "key", click: () => openEntry(id) }, verbatim(id)),
        ...documents[index].values(shown).map((value) => verbatim(beginning(value, 300))),
      ]);
    },
    open: (index) => openEntry(documents[index].id),
    didScroll: () => (head.scrollLeft = list.element.scrollLeft),
  });
  list.element.setAttribute("aria-rowcount", documents.length);
  list.element.style.height = `${documents.length * rowHeight + 20}px`;
  const rest = names.length - shown.length;
  const hint = rest > 0 ? h("p", { class: "hint" }, `${things(rest, "more member")} are shown as JSON only.`) : null;
  return { close: () => list.close(), element: h("div", { class: "documents" }, head, list.element, hint) };
}

export function findPage({ store, open }) {
  const results = h("div", { class: "results" });
  const progress = h("span", { class: "hint", role: "status" });
  const controller = new AbortController();
  const draftName = `larder-query-${store}`;
  let view = "table";
  let last = null;
  let shownTable = null;

  const run = () => runButton.click();
  const editor = new QueryEditor(sessionStorage.getItem(draftName) ?? history(store)[0] ?? example, {
    run, didChange: () => sessionStorage.setItem(draftName, editor.text),
  });
  const runButton = button("Run", () => start(), { class: "primary" });

  /// Sends something with the query, and marks an error at its place.
  async function tried(action) {
    try {
      return await action();
    } catch (error) {
      if (error.status === 400 || error.status === 422 || error.status === 501 || error.start !== undefined) {
        editor.markProblem(error.message);
        editor.area.focus();
        return null;
      }
      throw error;
    }
  }

  async function start(bookmark) {
    const query = editor.text;
    const page = await tried(() => find(store, withMembers(query, { bookmark }), {
      signal: controller.signal, maxSize: maxShownSize, didRead: showProgress,
    }));
    replace(progress);
    if (!page) return;
    addToHistory(store, query);
    showHistory();
    last = { query, ...page };
    showResults();
  }

  function showProgress(total) {
    if (total % 10_000 === 0) replace(progress, `${things(total, "document")} so far`);
  }

  async function explain() {
    const query = editor.text;
    const plan = await tried(async () => (await sendText(storePath(store, "explain"), query)).text());
    if (!plan) return;
    addToHistory(store, query);
    showHistory();
    replace(results, planView(plan, {
      hasSort: nodeAt(parse(query), "sort") !== undefined,
      createIndex: !may("admin", store) ? null : async (index) => {
        const { name } = await send("POST", storePath(store, "indexes"), index);
        say(`The index ${name} is being built.`);
        await explain();
      },
    }));
  }

  function showResults() {
    const { documents, names, result } = last;
    const menu = select([["table", "Table"], ["json", "JSON"]], view, {
      "aria-label": "View of the results",
      change: () => {
        view = menu.value;
        showResults();
      },
    });
    shownTable?.close();
    shownTable = null;
    const isCount = result !== null && nodeAt(parse(last.query), "count")?.value === true;
    const found = isCount ? result.found : documents.length;
    const isWasteful = result && result.examinedDocuments > 1000 && result.examinedDocuments > 20 * (found + 1);
    const warning = h("p", { class: "warning" }, "This has read far more documents than it has found. ",
      button("Explain", explain, { class: "plain" }));
    const summary = h("p", { class: "summary", role: "status" }, result
      ? [isCount ? h("strong", {}, count(found), found === 1 ? " document matches" : " documents match") : things(found, "document"),
        `; examined ${things(result.examinedDocuments, "document")} and ${things(result.examinedKeys, "key")} of indexes in `,
        duration(result.nanoseconds / 1e6)]
      : `The first ${things(found, "document")}. There are more, which don't fit here: CSV and NDJSON have all, a limit fewer.`);
    if (isCount) return replace(results, h("div", { class: "toolbar" }, summary), isWasteful ? warning : null);
    if (view === "table" && documents.length > 0) shownTable = documentTable(documents, names, openEntry);
    const shown = shownTable?.element ?? texts(documents);
    replace(results,
      h("div", { class: "toolbar" },
        summary,
        menu,
        button("CSV", () => saveAll("csv"), { "aria-label": "Save all matches as CSV" }),
        button("NDJSON", () => saveAll("ndjson"), { "aria-label": "Save all matches as lines of JSON" }),
        result?.bookmark ? button("Next page", () => start(result.bookmark)) : null),
      isWasteful ? warning : null, documents.length === 0 ? h("p", { class: "hint" }, "No documents match.") : shown);
  }

  const openEntry = (id) => open(["store", store, "entries", id]);

  function entryLink(id) {
    const follow = (event) => {
      event.preventDefault();
      openEntry(id);
    };
    return h("a", { href: "#", click: follow }, verbatim(id));
  }

  function texts(documents) {
    return inParts(documents, textsSize, (document) => h("article", { class: "document" },
      h("h3", {}, entryLink(document.id)),
      highlighted(document.node, document.line)));
  }

  /// Saves all matches, page by page.
  async function saveAll(kind) {
    const query = last.query;
    const isCSV = kind === "csv";
    const { parts, total } = await progressDialog("Save the results", async (show, signal) => {
      const parts = [];
      const all = new Set();
      let total = 0;
      for await (const { documents, names } of matches(query, signal)) {
        for (const name of names) all.add(name);
        // A blob may be on the disk.
        parts.push(isCSV ? documents : new Blob(documents.map(({ text }) => `${text}\n`)));
        total += documents.length;
        show(things(total, "document"));
      }
      if (!isCSV) return { parts, total };
      const columns = [...all];
      return { total, parts: [csvLine(["id", ...columns]), ...parts.map((documents) =>
        new Blob(documents.map((document) => csvLine([document.id, ...document.values(columns)]))))] };
    });
    save(`${store}.${kind}`, new Blob(parts, { type: isCSV ? "text/csv" : "application/x-ndjson" }));
    say(`Saved ${things(total, "document")}.`);
  }

  /// Yields all documents that match, in pages.
  async function* matches(query, signal) {
    let bookmark;
    do {
      const page = await find(store, withMembers(query, { bookmark, limit: 1000 }), { signal });
      yield page;
      bookmark = page.result.bookmark;
    } while (bookmark);
  }

  const historyMenu = h("select", {
    "aria-label": "Earlier queries",
    change: () => {
      if (historyMenu.value !== "") editor.text = history(store)[Number(historyMenu.value)] ?? editor.text;
      historyMenu.value = "";
    },
  });

  function showHistory() {
    replace(historyMenu, h("option", { value: "" }, "Earlier queries"),
      history(store).map((query, index) => h("option", { value: index }, query.replace(/\s+/g, " ").slice(0, 100))));
  }
  showHistory();

  const help = h("details", { class: "operators" },
    h("summary", {}, "Operators"),
    h("div", { class: "operator-list" }, operators.map(({ name, usage, meaning }) => h("div", {},
      button(name, () => editor.insert(usage), { class: "plain code", title: `Insert ${usage}` }), h("span", {}, meaning)))));

  return {
    element: h("section", { class: "page find" },
      h("h1", {}, "Find in ", verbatim(store)),
      editor.element,
      h("div", { class: "toolbar" }, runButton, button("Explain", explain),
        button("Format", () => {
          editor.text = formatted(editor.text);
        }),
        historyMenu, progress),
      help, results),
    didAppear: () => editor.area.focus(),
    close: () => {
      controller.abort();
      shownTable?.close();
    },
  };
}
