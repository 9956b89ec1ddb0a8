// What the server does at the moment.

import { get } from "./api.js";
import { button, cell, figureTable, h, numberCell, replace, rowHeading, svg, table, verbatim } from "./dom.js";
import { bytes, count, duration, short } from "./format.js";

/// How often the figures are asked for, in milliseconds, and how many of them are kept.
const interval = 1000;
const maxPoints = 120;
/// How many times the figures are asked for until the lists are, which cost the server more.
const listsInterval = 10;

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
      svg("svg", { viewBox: "0 0 240 60", preserveAspectRatio: "none", "aria-hidden": "true" }, this.area, this.line),
      this.top);
  }

  add(now, before) {
    this.points.push(this.value(now, before));
    if (this.points.length > maxPoints) this.points.shift();
    const top = Math.max(...this.points, 1e-9);
    const x = (index) => (240 * (maxPoints - this.points.length + index)) / (maxPoints - 1);
    const path = `M${this.points.map((value, index) => `${x(index)} ${58 - (54 * value) / top}`).join("L")}`;
    this.line.setAttribute("d", path);
    this.area.setAttribute("d", `${path}V60H${x(0)}Z`);
    replace(this.now, this.text(this.points.at(-1)));
    replace(this.top, `at most ${this.text(top)}`);
  }
}

/// What has some bytes of a whole, as bars.
function bars(parts) {
  const total = Math.max(1, ...parts.map(([, size]) => size));
  return h("table", { class: "figures bars" }, h("tbody", {}, parts.map(([name, size]) => h("tr", {},
    rowHeading(name), cell(h("meter", { max: total, value: size, "aria-label": name })), numberCell(bytes(size))))));
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
  const toggle = button("Pause", () => (isPaused ? resume() : pause()), { class: "primary" });
  const lines = charts.map((chart) => new Chart(chart));
  const details = h("div", { class: "cards" });
  const controller = new AbortController();
  let isPaused = false;
  let timer = null;
  let before = null;
  let lists = [];
  /// How many times the figures will be asked for until the lists are.
  let countdown = 0;

  async function refresh() {
    // Nobody sees a page in the background.
    if (!document.hidden) await update();
    if (!isPaused && !controller.signal.aborted) timer = setTimeout(refresh, interval);
  }

  async function update() {
    try {
      const { figures: now } = await get("stats", {}, controller.signal);
      if (countdown === 0) {
        const paths = ["slow-log", "connections", "cluster"];
        lists = await Promise.all(paths.map((path) => optional(path, controller.signal)));
        countdown = listsInterval;
      }
      countdown -= 1;
      if (before) for (const line of lines) line.add(now, before);
      before = now;
      show(now, ...lists);
      replace(state, `Up for ${duration(now.uptime_milliseconds)}`);
    } catch (error) {
      if (controller.signal.aborted) return;
      [before, countdown] = [null, 0];
      replace(state, verbatim(error.message));
    }
  }

  function show(now, slow, connections, cluster) {
    // What is being read or selected stays.
    if (details.contains(document.activeElement) || !getSelection().isCollapsed) return;
    const latency = (name) => duration((now[name] ?? 0) / 1e6);
    const kinds = memoryKinds.map((kind) => [kind, now[`memory_${kind}_bytes`]]).filter(([, size]) => size);
    replace(details,
      part("Requests", figureTable([
        ["In total", count(now.requests_total)], ["Half are done within", latency("request_p50_nanoseconds")],
        ["99 % within", latency("request_p99_nanoseconds")], ["99.9 % within", latency("request_p999_nanoseconds")],
        ["Finds that read all documents", count(now.scans_total ?? 0)],
        ["Finds by an index", count(now.indexed_finds_total ?? 0)],
      ])),
      part("Memory", bars(kinds)),
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
    [before, countdown] = [null, 0];
    replace(toggle, "Pause");
    void refresh();
  }

  return {
    element: h("section", { class: "page live" },
      h("div", { class: "heading" }, h("h1", {}, "Live"), state, toggle),
      h("div", { class: "charts" }, lines.map((line) => line.element)), details),
    didAppear: () => void refresh(),
    close: () => {
      controller.abort();
      clearTimeout(timer);
    },
  };
}

/// What the figures say of disks; nothing if no store is on one.
function diskPart(now) {
  const names = Object.keys(now).filter((name) => /disk|file|sync|commit|log_/.test(name));
  const text = (name) => {
    if (name.includes("nanoseconds")) return duration(now[name] / 1e6);
    return name.includes("bytes") ? bytes(now[name]) : count(now[name]);
  };
  return names.length === 0 ? null : part("Disk", figureTable(names.map((name) => [name.replaceAll("_", " "), text(name)])));
}

function connectionsPart(now, connections) {
  const columns = ["Client", ...["Requests/s", "Received", "Sent", "Open for"].map((number) => ({ number }))];
  const rows = connections.map((connection) => h("tr", {},
    h("th", { scope: "row", class: "nowrap" }, verbatim(connection.address || `process ${connection.process}`)),
    numberCell(count(connection.requestsPerSecond)), numberCell(bytes(connection.receivedBytes)),
    numberCell(bytes(connection.sentBytes)), numberCell(duration(connection.openMilliseconds))));
  return part(`Connections (${count(now.connections)})`, table("Connections", columns, h("tbody", {}, rows)));
}

function slowPart(wakeups) {
  if (wakeups.length === 0) return part("Slow log", h("p", { class: "hint" }, "Nothing was slow."));
  const columns = [{ number: "Ago" }, { number: "Took" }, "Store", "Operations", { number: "Requests" }];
  const rows = wakeups.map((wakeup) => h("tr", {},
    numberCell(duration(wakeup.ageMilliseconds)), numberCell(duration(wakeup.nanoseconds / 1e6)),
    cell(verbatim(wakeup.store)), cell(wakeup.operations.join(", ")), numberCell(count(wakeup.requests))));
  return part("Slow log", table("Slow log", columns, h("tbody", {}, rows)));
}

function clusterPart({ database, node, nodes = [], stores = [] }) {
  const nodeRows = nodes.map(({ name, address, lease }) => h("tr", {},
    rowHeading(verbatim(name), name === node ? " (this one)" : null), cell(verbatim(address ?? "")),
    numberCell(duration(lease))));
  const storeRows = stores.map(({ name, leader, staleness }) => h("tr", {},
    rowHeading(verbatim(name)), cell(verbatim(leader ?? "nobody")),
    numberCell(staleness === undefined ? "–" : duration(staleness))));
  return part(`Servers of ${database}`,
    table(`Servers of ${database}`, ["Server", "Address", { number: "Lease" }], h("tbody", {}, nodeRows)),
    table(`Stores of ${database}`, ["Store", "Served by", { number: "Staleness here" }], h("tbody", {}, storeRows)));
}
