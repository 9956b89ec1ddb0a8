// What the server does at the moment.

import { get } from "./api.js";
import { h, replace, svg, verbatim } from "./dom.js";
import { bytes, count, duration, short } from "./format.js";

/// How often the figures are asked for, in milliseconds, and how many of them are kept.
const interval = 1000;
const maxPoints = 120;

/// The figures that are drawn: a name, how to compute it from two samples, and how it is written.
const charts = [
  { title: "Requests per second", value: rate("requests_total"), text: short },
  { title: "Received per second", value: rate("received_bytes_total"), text: bytes },
  { title: "Sent per second", value: rate("sent_bytes_total"), text: bytes },
  { title: "Latency, 99 %", value: (now) => (now.request_p99_nanoseconds ?? 0) / 1e6, text: duration },
  { title: "Memory of entries", value: (now) => now.memory_bytes, text: bytes },
  { title: "Memory of the process", value: (now) => now.resident_bytes, text: bytes },
];

function rate(name) {
  return (now, before) => {
    const elapsed = (now.uptime_milliseconds - before.uptime_milliseconds) / 1000;
    return elapsed > 0 && now[name] >= before[name] ? (now[name] - before[name]) / elapsed : 0;
  };
}

/// A line of the latest values.
class Chart {
  constructor({ title, value, text }) {
    Object.assign(this, { value, text });
    this.points = [];
    this.now = h("strong", {}, "–");
    this.line = svg("path", { class: "line" });
    this.area = svg("path", { class: "area" });
    this.top = h("span", { class: "faint" });
    this.element = h("figure", { class: "chart" },
      h("figcaption", {}, h("span", {}, title), this.now),
      svg("svg", { viewBox: "0 0 240 60", preserveAspectRatio: "none", "aria-hidden": "true" }, this.area, this.line), this.top);
  }

  add(now, before) {
    this.points.push(this.value(now, before));
    if (this.points.length > maxPoints) this.points.shift();
    const top = Math.max(...this.points, 1e-9);
    const place = (value, index) => `${(240 * (maxPoints - this.points.length + index)) / (maxPoints - 1)} ${58 - (54 * value) / top}`;
    const path = `M${this.points.map(place).join("L")}`;
    this.line.setAttribute("d", path);
    this.area.setAttribute("d", `${path}V60H${(240 * (maxPoints - this.points.length)) / (maxPoints - 1)}Z`);
    replace(this.now, this.text(this.points.at(-1)));
    replace(this.top, `at most ${this.text(top)}`);
  }
}

function rows(pairs) {
  return h("table", { class: "figures" }, h("tbody", {}, pairs.map(([name, value]) => h(
    "tr", {}, h("th", { scope: "row" }, name), h("td", { class: "number" }, value)))));
}

/// What has some bytes of a whole, as bars.
function bars(parts) {
  const total = Math.max(1, ...parts.map(([, size]) => size));
  return h("table", { class: "figures bars" }, h("tbody", {}, parts.map(([name, size]) => h(
    "tr", {}, h("th", { scope: "row" }, name), h("td", {}, h("meter", { max: total, value: size, "aria-label": name })), h("td", { class: "number" }, bytes(size))))));
}

function part(title, ...content) {
  return h("section", { class: "card" }, h("h2", {}, title), content);
}

const memoryKinds = ["records", "hash", "order", "indexes", "expiry", "snapshots", "changes", "buffers", "heap", "code"];

/// What may be missing: the user may not see it.
async function optional(path, signal) {
  try {
    return await get(path, {}, signal);
  } catch (error) {
    if (error.status === 403) return null;
    throw error;
  }
}

export function livePage() {
  const state = h("p", { class: "summary", role: "status" });
  const toggle = h("button", { type: "button", class: "primary", click: () => (isPaused ? resume() : pause()) }, "Pause");
  const lines = charts.map((chart) => new Chart(chart));
  const details = h("div", { class: "cards" });
  const controller = new AbortController();
  let isPaused = false;
  let timer = null;
  let before = null;

  async function refresh() {
    try {
      const [stats, slow, connections, cluster] = await Promise.all([
        get("stats", {}, controller.signal), optional("slow-log", controller.signal),
        optional("connections", controller.signal), optional("cluster", controller.signal),
      ]);
      const now = stats.figures;
      if (before) for (const line of lines) line.add(now, before);
      before = now;
      show(now, slow, connections, cluster);
      replace(state, `Up for ${duration(now.uptime_milliseconds)}`);
    } catch (error) {
      if (controller.signal.aborted) return;
      before = null;
      replace(state, verbatim(error.message));
    }
    if (!isPaused && !controller.signal.aborted) timer = setTimeout(refresh, interval);
  }

  function show(now, slow, connections, cluster) {
    // What is being read or selected stays.
    if (details.contains(document.activeElement) || !getSelection().isCollapsed) return;
    const latency = (name) => duration((now[name] ?? 0) / 1e6);
    replace(details,
      part("Requests", rows([
        ["In total", count(now.requests_total)], ["Half are done within", latency("request_p50_nanoseconds")],
        ["99 % within", latency("request_p99_nanoseconds")], ["99.9 % within", latency("request_p999_nanoseconds")],
        ["Finds that read all documents", count(now.scans_total ?? 0)], ["Finds by an index", count(now.indexed_finds_total ?? 0)],
      ])),
      part("Memory", bars(memoryKinds.filter((kind) => now[`memory_${kind}_bytes`]).map((kind) => [kind, now[`memory_${kind}_bytes`]]))),
      diskPart(now),
      connections ? connectionsPart(now, connections.connections) : null,
      slow ? slowPart(slow.wakeups) : null,
      cluster ? cluster.databases.map(clusterPart) : null);
  }

  function pause() {
    isPaused = true;
    clearTimeout(timer);
    replace(toggle, "Resume");
  }

  function resume() {
    isPaused = false;
    before = null;
    replace(toggle, "Pause");
    refresh();
  }

  return {
    element: h("section", { class: "page live" },
      h("div", { class: "heading" }, h("h1", {}, "Live"), state, toggle),
      h("div", { class: "charts" }, lines.map((line) => line.element)), details),
    didAppear: refresh,
    close: () => {
      controller.abort();
      clearTimeout(timer);
    },
  };
}

/// What the figures say of disks; nothing if no store is on one.
function diskPart(now) {
  const names = Object.keys(now).filter((name) => /disk|file|sync|commit|log_/.test(name));
  if (names.length === 0) return null;
  return part("Disk", rows(names.map((name) => [name.replaceAll("_", " "), name.includes("nanoseconds") ? duration(now[name] / 1e6) : name.includes("bytes") ? bytes(now[name]) : count(now[name])])));
}

function connectionsPart(now, connections) {
  return part(`Connections (${count(now.connections)})`, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Connections" },
    h("table", { class: "list" },
      h("thead", {}, h("tr", {}, h("th", {}, "Client"), ["Requests/s", "Received", "Sent", "Open for"].map((name) => h("th", { class: "number" }, name)))),
      h("tbody", {}, connections.map((connection) => h("tr", {},
        h("th", { scope: "row", class: "nowrap" }, verbatim(connection.address || `process ${connection.process}`)),
        h("td", { class: "number" }, count(connection.requestsPerSecond)), h("td", { class: "number" }, bytes(connection.receivedBytes)),
        h("td", { class: "number" }, bytes(connection.sentBytes)), h("td", { class: "number" }, duration(connection.openMilliseconds))))))));
}

function slowPart(wakeups) {
  const rows = wakeups.map((wakeup) => h("tr", {},
    h("td", { class: "number" }, duration(wakeup.ageMilliseconds)), h("td", { class: "number" }, duration(wakeup.nanoseconds / 1e6)),
    h("td", {}, verbatim(wakeup.store)), h("td", {}, wakeup.operations.join(", ")), h("td", { class: "number" }, count(wakeup.requests))));
  return part("Slow log", rows.length === 0 ? h("p", { class: "hint" }, "Nothing was slow.") : h(
    "div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Slow log" },
    h("table", { class: "list" },
      h("thead", {}, h("tr", {}, h("th", { class: "number" }, "Ago"), h("th", { class: "number" }, "Took"), h("th", {}, "Store"), h("th", {}, "Operations"), h("th", { class: "number" }, "Requests"))),
      h("tbody", {}, rows))));
}

function clusterPart(database) {
  return part(`Servers of ${database.database}`,
    h("table", { class: "list" },
      h("thead", {}, h("tr", {}, h("th", {}, "Server"), h("th", {}, "Address"), h("th", { class: "number" }, "Lease"))),
      h("tbody", {}, (database.nodes ?? []).map((node) => h("tr", {},
        h("th", { scope: "row" }, verbatim(node.name), node.name === database.node ? " (this one)" : null),
        h("td", {}, verbatim(node.address ?? "")), h("td", { class: "number" }, duration(node.lease)))))),
    h("table", { class: "list" },
      h("thead", {}, h("tr", {}, h("th", {}, "Store"), h("th", {}, "Served by"), h("th", { class: "number" }, "Staleness here"))),
      h("tbody", {}, (database.stores ?? []).map((store) => h("tr", {},
        h("th", { scope: "row" }, verbatim(store.name)), h("td", {}, verbatim(store.leader ?? "nobody")),
        h("td", { class: "number" }, store.staleness === undefined ? "–" : duration(store.staleness)))))));
}
