// The frame of the console: who the user is, the stores, and the page that the address names.

import { get, onUnauthorized, request, send, token } from "./api.js";
import { button, field, h, messageArea, replace, report, select, verbatim } from "./dom.js";
import { count } from "./format.js";
import { browsePage } from "./browse.js";
import { findPage } from "./find.js";
import { indexesPage } from "./indexes.js";
import { livePage } from "./live.js";
import { shortcutsDialog } from "./shortcuts.js";
import { newStoreButton, storesPage } from "./stores.js";
import { watchPage } from "./watch.js";

const pagesOfStores = [
  ["entries", "Entries", browsePage],
  ["find", "Find", findPage],
  ["indexes", "Indexes", indexesPage],
  ["watch", "Watch", watchPage],
];
const pagesOfServer = [
  ["stores", "Stores", storesPage],
  ["live", "Live", livePage],
];

const main = h("main", { id: "main", tabindex: "-1" });
const tabs = h("nav", { class: "tabs", "aria-label": "Pages" });
const storeList = h("ul", { class: "stores" });
const storeMenu = h("select", {
  class: "store-menu", "aria-label": "Store", change: () => open(["store", storeMenu.value, "entries"]),
});
const who = h("span", { class: "who" });
let identity = { rights: [] };
let stores = [];
let page = null;

/// The names in the address: `stores`, `live`, or `store`, a name, and a page with what it shows.
function names() {
  return location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map((name) => {
    try {
      return decodeURIComponent(name);
    } catch {
      return name;
    }
  });
}

function address(names) {
  return `#/${names.map(encodeURIComponent).join("/")}`;
}

function open(names) {
  location.hash = address(names);
}

/// Keeps what a page shows in the address, without a new page.
function remember(names) {
  if (location.hash !== address(names)) history.replaceState(null, "", address(names));
}

async function loadStores() {
  const list = await get("stores");
  stores = list.stores;
  showStores();
}

function showStores() {
  const [kind, current] = names();
  const isCurrent = (name) => kind === "store" && name === current;
  replace(storeList, stores.map((store) => h(
    "li", {}, h(
      "a", { href: address(["store", store.name, "entries"]), "aria-current": isCurrent(store.name) ? "true" : null },
      verbatim(store.name), h("span", { class: "count" }, count(store.entries))))));
  replace(storeMenu, kind === "store" ? null : h("option", { value: "" }, "Choose a store"),
    stores.map((store) => h("option", { value: store.name, selected: isCurrent(store.name) }, store.name)));
}

function link(names, label, isCurrent) {
  return h("a", { href: address(names), "aria-current": isCurrent ? "page" : null }, label);
}

/// Returns what the keys begin with that the user may read; nothing if it is all of them.
function readablePrefix(store) {
  const rights = identity.rights.filter((right) => right.store === undefined || right.store === store);
  return rights.some((right) => right.keyPrefix === undefined) ? "" : rights[0]?.keyPrefix ?? "";
}

/// Shows the page that the address names.
function show() {
  page?.close?.();
  const [kind = "stores", store, part = "entries", ...rest] = names();
  replace(tabs,
    pagesOfServer.map(([name, label]) => link([name], label, kind === name)),
    kind === "store" ? pagesOfStores.map(([name, label]) => link(["store", store, name], label, part === name)) : null);
  showStores();
  const listed = kind === "store"
    ? pagesOfStores.find(([name]) => name === part)
    : pagesOfServer.find(([name]) => name === kind);
  if (!listed) return open(["stores"]);
  document.title = kind === "store" ? `${store} – Larder` : `${listed[1]} – Larder`;
  page = listed[2]({
    store,
    prefix: readablePrefix(store),
    rest,
    open,
    storesDidChange: loadStores,
    remember: (...rest) => remember(["store", store, part, ...rest]),
  });
  replace(main, page.element);
  page.didAppear?.();
}

// Themes

const themes = [["", "As the system"], ["light", "Light"], ["dark", "Dark"]];

function useTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

function themeMenu() {
  const menu = select(themes, localStorage.getItem("larder-theme") ?? "", {
    "aria-label": "Colors",
    change: () => {
      localStorage.setItem("larder-theme", menu.value);
      useTheme(menu.value);
    },
  });
  return menu;
}

// Starting

async function start() {
  useTheme(localStorage.getItem("larder-theme") ?? "");
  try {
    await openLink();
    identity = await get("whoami");
    showConsole();
    await loadStores();
    show();
    window.addEventListener("hashchange", show);
  } catch (error) {
    if (error.status !== 401) showFailure(error);
  }
}

/// Begins the session of the link in the address, if there is one. The link works once.
async function openLink() {
  const link = /^#link=(.+)$/.exec(location.hash)?.[1];
  if (!link) return;
  history.replaceState(null, "", `${location.pathname}${location.search}`);
  token.set("");
  token.set((await send("POST", "session", { link })).token);
}

async function logOut() {
  await request("DELETE", "session");
  token.set("");
  location.reload();
}

function showFailure(error) {
  replace(document.body, h(
    "div", { class: "login" }, h("h1", {}, "Larder"), h("p", { role: "alert" }, verbatim(error.message)),
    button("Try again", () => location.reload(), { class: "primary" })));
}

/// Asks for a token.
function showLogin(reason) {
  page?.close?.();
  window.removeEventListener("hashchange", show);
  const input = h("input", { type: "password", autocomplete: "off", required: true, spellcheck: "false" });
  replace(document.body, h(
    "form", {
      class: "login",
      submit: (event) => {
        event.preventDefault();
        token.set(input.value.trim());
        start();
      },
    },
    h("h1", {}, "Larder"),
    reason ? h("p", { role: "alert", class: "failure" }, verbatim(reason)) : null,
    field("Token", input, "It stays in this tab. Or open the link that “larder console” prints."),
    h("button", { type: "submit", class: "primary" }, "Log in")));
  input.focus();
}

function showConsole() {
  const name = identity.principal ?? (identity.user === undefined ? "" : `uid ${identity.user}`);
  replace(who, name ? verbatim(name) : null);
  const skip = (event) => {
    event.preventDefault();
    main.focus();
  };
  replace(
    document.body, h("a", { class: "skip", href: "#main", click: skip }, "Skip to the contents"),
    h("header", {},
      h("a", { class: "brand", href: address(["stores"]) }, "Larder"), storeMenu, tabs,
      h("div", { class: "tools" },
        who, themeMenu(), button("?", shortcutsDialog, { class: "plain", "aria-label": "Keyboard shortcuts" }),
        token.get() ? button("Log out", logOut, { class: "plain" }) : null)),
    h("div", { class: "columns" },
      h("aside", { "aria-label": "Stores" },
        h("h2", {}, "Stores"), storeList,
        newStoreButton({ open, storesDidChange: loadStores }, "plain")),
      main),
    messageArea());
}

// Keys that work everywhere, unless something is being typed.
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, dialog");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "?") {
    shortcutsDialog();
  } else if (event.key === "/") {
    document.querySelector("[data-shortcut='/']")?.focus();
  } else if (/^[1-6]$/.test(event.key)) {
    tabs.children[Number(event.key) - 1]?.click();
  } else {
    return;
  }
  event.preventDefault();
});

window.addEventListener("unhandledrejection", (event) => report(event.reason));
onUnauthorized(showLogin);
start();
