// Finds of documents: a query with its errors at their places, the plan, and the results.

import { lines, send, sendText, storePath } from "./api.js";
import { button, cell, h, progressDialog, replace, rowHeading, save, say, select, table, verbatim } from "./dom.js";
import { csvField, duration, things } from "./format.js";
import { formatted, nodeAt, parse, placeOf, textOf } from "./json.js";
import { operators, queryFlaw } from "./selectors.js";
import { highlighted } from "./highlight.js";
import { planView } from "./plan.js";

const example = `{
  "selector": {},
  "limit": 25
}`;
const maxHistory = 50;

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
    replace(this.flaw, flaw?.message);
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

/// Reads a page of documents, whose numbers stay as they are written.
async function find(store, query, signal) {
  const response = await sendText(storePath(store, "find"), query, { headers: { Accept: "application/x-ndjson" }, signal });
  const documents = [];
  for await (const line of lines(response)) {
    const root = parse(line);
    if (nodeAt(root, "error")) throw new Error(JSON.parse(line).error.detail);
    if (nodeAt(root, "result")) return { documents, result: JSON.parse(line).result };
    const [id, document] = [nodeAt(root, "id"), nodeAt(root, "document")];
    documents.push({ id: id?.value ?? "(not UTF-8)", text: line.slice(document.start, document.end), node: document, line });
  }
  throw new Error("The response has no end.");
}

/// The members of the documents, in the order of their first occurrence.
function columnsOf(documents) {
  const names = new Set();
  for (const { node } of documents) for (const { name } of node.members ?? []) names.add(name);
  return [...names];
}

const valueOf = ({ node, line }, name) => textOf(nodeAt(node, name), line);

function csv(documents) {
  const columns = columnsOf(documents);
  // A text that a spreadsheet would take for a formula isn't changed: the file is data.
  const rows = documents.map((document) => [document.id, ...columns.map((name) => valueOf(document, name))]);
  return [["id", ...columns], ...rows].map((row) => row.map(csvField).join(",")).join("\r\n");
}

export function findPage({ store, open }) {
  const results = h("div", { class: "results" });
  let view = "table";
  let last = null;

  const run = () => runButton.click();
  const editor = new QueryEditor(history(store)[0] ?? example, { run });
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
    const page = await tried(() => find(store, withMembers(query, { bookmark })));
    if (!page) return;
    addToHistory(store, query);
    showHistory();
    last = { query, ...page };
    showResults();
  }

  async function explain() {
    const query = editor.text;
    const plan = await tried(async () => (await sendText(storePath(store, "explain"), query)).text());
    if (!plan) return;
    addToHistory(store, query);
    showHistory();
    replace(results, planView(plan, {
      hasSort: nodeAt(parse(query), "sort") !== undefined,
      createIndex: async (index) => {
        const { name } = await send("POST", storePath(store, "indexes"), index);
        say(`The index ${name} is being built.`);
        await explain();
      },
    }));
  }

  function showResults() {
    const { documents, result } = last;
    const menu = select([["table", "Table"], ["json", "JSON"]], view, {
      "aria-label": "View of the results",
      change: () => {
        view = menu.value;
        showResults();
      },
    });
    const examined = `${things(result.examinedDocuments, "document")} and ${things(result.examinedKeys, "key")} of indexes`;
    const isWasteful = result.examinedDocuments > 1000 && result.examinedDocuments > 20 * (documents.length + 1);
    const warning = h("p", { class: "warning" }, "This has read far more documents than it has found. ",
      button("Explain", explain, { class: "plain" }));
    const shown = view === "table" ? documentTable(documents) : texts(documents);
    replace(results,
      h("div", { class: "toolbar" },
        h("p", { class: "summary", role: "status" },
          `${things(documents.length, "document")}; examined ${examined} in ${duration(result.nanoseconds / 1e6)}`),
        menu,
        button("CSV", () => saveAll("csv"), { "aria-label": "Save all matches as CSV" }),
        button("NDJSON", () => saveAll("ndjson"), { "aria-label": "Save all matches as lines of JSON" }),
        result.bookmark ? button("Next page", () => start(result.bookmark)) : null),
      isWasteful ? warning : null, documents.length === 0 ? h("p", { class: "hint" }, "No documents match.") : shown);
  }

  function documentTable(documents) {
    const columns = columnsOf(documents);
    const rows = documents.map((document) => h("tr", {}, rowHeading(entryLink(document.id)),
      columns.map((name) => cell(verbatim(valueOf(document, name).slice(0, 300))))));
    return table("Documents", ["id", ...columns.map((name) => verbatim(name))], h("tbody", {}, rows));
  }

  function entryLink(id) {
    const follow = (event) => {
      event.preventDefault();
      open(["store", store, "entries", id]);
    };
    return h("a", { href: "#", click: follow }, verbatim(id));
  }

  function texts(documents) {
    return documents.map((document) => h("article", { class: "document" },
      h("h3", {}, entryLink(document.id)),
      highlighted(document.node, document.line)));
  }

  /// Saves all matches, page by page.
  async function saveAll(kind) {
    const query = last.query;
    const all = await progressDialog("Save the results", async (show, signal) => {
      const all = [];
      let bookmark;
      do {
        const page = await find(store, withMembers(query, { bookmark, limit: 1000 }), signal);
        for (const document of page.documents) all.push(document);
        bookmark = page.result.bookmark;
        show(things(all.length, "document"));
      } while (bookmark);
      return all;
    });
    const text = kind === "csv" ? csv(all) : all.map(({ text }) => `${text}\n`).join("");
    save(`${store}.${kind}`, new Blob([text], { type: kind === "csv" ? "text/csv" : "application/x-ndjson" }));
    say(`Saved ${things(all.length, "document")}.`);
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
        historyMenu),
      help, results),
    didAppear: () => editor.area.focus(),
  };
}
