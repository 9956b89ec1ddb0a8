// A list of which only the rows that can be seen are in the page, so that it may have any number.

import { h, replace, set } from "./dom.js";

/// The maximum height that browsers give an element, in pixels, with a margin.
const maxHeight = 15_000_000;

/// - count: Returns the number of rows.
/// - row: Returns the element of a row, whose number and state are set by the list.
/// - didSelect: Called when another row is selected, and whether that was by a key.
/// - didScroll: Called when the rows were moved.
/// - open: Called for Enter and for a double click.
/// - didPressKey: Called for other keys; returns whether it has used one.
export class VirtualList {
  constructor({ label, role, rowHeight = 30, count, row, didSelect, didScroll, open, didPressKey }) {
    Object.assign(this, { rowHeight, count, row, didSelect, open, didPressKey });
    this.role = role;
    this.selected = -1;
    this.id = `list-${VirtualList.next++}`;
    this.space = h("div", { class: "space", role: "presentation" });
    this.rows = h("div", { class: "rows", role: "presentation" });
    this.element = h("div", {
      class: "virtual-list", tabindex: 0, role, "aria-label": label,
      scroll: () => {
        this.refresh();
        didScroll?.();
      },
      keydown: (event) => this.#press(event),
    }, this.space, this.rows);
    this.observer = new ResizeObserver(() => this.refresh());
    this.observer.observe(this.element);
  }

  static next = 0;

  close() {
    this.observer.disconnect();
  }

  get #visibleCount() {
    return Math.ceil(this.element.clientHeight / this.rowHeight) + 1;
  }

  /// The first row that can be seen.
  get #first() {
    const total = this.count();
    const height = Math.min(total * this.rowHeight, maxHeight);
    if (height === total * this.rowHeight) return Math.floor(this.element.scrollTop / this.rowHeight);
    const room = height - this.element.clientHeight;
    return Math.round((this.element.scrollTop / room) * (total - Math.floor(this.element.clientHeight / this.rowHeight)));
  }

  /// Shows the rows anew.
  refresh() {
    const total = this.count();
    const height = Math.min(total * this.rowHeight, maxHeight);
    this.space.style.height = `${height}px`;
    const first = Math.max(0, Math.min(this.#first, total - 1));
    const last = Math.min(total, first + this.#visibleCount);
    const isExact = height === total * this.rowHeight;
    this.rows.style.transform = `translateY(${isExact ? first * this.rowHeight : this.element.scrollTop}px)`;
    const rows = [];
    for (let index = first; index < last; index += 1) rows.push(this.#row(index));
    replace(this.rows, rows);
    const isShown = this.selected >= first && this.selected < last;
    set(this.element, { "aria-activedescendant": isShown ? `${this.id}-${this.selected}` : null });
  }

  #row(index) {
    const element = this.row(index);
    const isSelected = index === this.selected;
    set(element, { id: `${this.id}-${index}`, "aria-selected": isSelected ? "true" : "false" });
    element.classList.add("row");
    element.addEventListener("click", () => this.select(index));
    element.addEventListener("dblclick", () => this.open?.(index));
    return element;
  }

  /// Selects a row, and scrolls until it can be seen.
  /// - isByKey: Whether a key was pressed.
  select(index, { isByKey = false } = {}) {
    const total = this.count();
    if (total === 0) return;
    this.selected = Math.max(0, Math.min(index, total - 1));
    const first = this.#first;
    const room = Math.max(1, Math.floor(this.element.clientHeight / this.rowHeight) - 1);
    if (this.selected < first) this.#scroll(this.selected);
    else if (this.selected > first + room - 1) this.#scroll(this.selected - room + 1);
    this.refresh();
    this.didSelect?.(this.selected, isByKey);
  }

  #scroll(first) {
    const total = this.count();
    const height = Math.min(total * this.rowHeight, maxHeight);
    if (height === total * this.rowHeight) {
      this.element.scrollTop = first * this.rowHeight;
    } else {
      const room = height - this.element.clientHeight;
      this.element.scrollTop = (first / (total - Math.floor(this.element.clientHeight / this.rowHeight))) * room;
    }
  }

  #press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, this.#visibleCount - 2);
    const targets = {
      ArrowDown: this.selected + 1, ArrowUp: this.selected - 1, PageDown: this.selected + page,
      PageUp: this.selected - page, Home: 0, End: this.count() - 1,
    };
    if (event.key in targets) this.select(targets[event.key], { isByKey: true });
    else if (event.key === "Enter" && this.selected >= 0) this.open?.(this.selected);
    else if (!this.didPressKey?.(event, this.selected)) return;
    event.preventDefault();
  }
}
