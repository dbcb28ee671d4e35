// A table of any number of rows, of which only those in sight are in the page. Sorted by any column, searched by words, walked by keys.

import { csvButton, h, replace, say } from "./dom.js";
import { counted } from "./words.js";

const ROW = 34;
const BEYOND = 8;
const PRINTED = 2000; // rows; CSV has all

export class Table {
  // columns: {name, label, value(row) for sorting and CSV, cell(row), numeric, wide, narrow}; rows come as [key, row].
  constructor({ name, label, columns, text, open, order, descending = false, query = "", changed = () => {} }) {
    Object.assign(this, { name, label, columns, text, open, changed });
    this.order = columns.find((each) => each.name === order) || columns[0];
    this.descending = descending;
    this.rows = [];
    this.shown = [];
    this.texts = new Map();
    this.active = 0;
    this.search = h("input", { type: "search", value: query, placeholder: "Search (/)", "aria-label": `Search ${label}`, class: "search", "data-search": true, spellcheck: "false" });
    this.search.addEventListener("input", () => {
      this.arrange();
      this.scroll.scrollTop = 0;
      this.draw();
      this.changed(this.search.value);
      say(this.summary());
    });
    this.count = h("span", { class: "count" });
    this.head = h("tr", { role: "row", "aria-rowindex": "1" });
    this.body = h("tbody", { role: "rowgroup" });
    this.table = h("table", { class: "rows", role: "table", "aria-label": label }, h("thead", { role: "rowgroup" }, this.head), this.body);
    this.scroll = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${label}, rows` }, this.table);
    this.scroll.addEventListener("scroll", () => requestAnimationFrame(() => this.draw()), { passive: true });
    this.scroll.addEventListener("keydown", (event) => this.key(event));
    this.element = h("div", { class: "table" },
      h("div", { class: "bar-above" }, this.search, this.count, csvButton(name, () => this.plain())), this.scroll);
    this.heads();
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.scroll);
    // Paper does not scroll.
    this.print = (event) => {
      this.printing = event.type === "beforeprint";
      this.draw();
    };
    for (const name of ["beforeprint", "afterprint"]) addEventListener(name, this.print);
  }

  close() {
    this.watch.disconnect();
    for (const name of ["beforeprint", "afterprint"]) removeEventListener(name, this.print);
  }

  heads() {
    const made = this.columns.map((column) => {
      const sorted = column === this.order;
      const button = h("button", { type: "button", class: "sort", "data-focus": column.name }, column.label, h("span", { "aria-hidden": "true" }, sorted ? (this.descending ? " ▾" : " ▴") : ""));
      button.addEventListener("click", () => {
        this.descending = sorted ? !this.descending : Boolean(column.numeric);
        this.order = column;
        this.heads();
        this.arrange();
        this.draw();
        say(`sorted by ${column.label}, ${this.descending ? "descending" : "ascending"}`);
      });
      return h("th", { scope: "col", role: "columnheader", class: classes(column), "aria-sort": sorted ? (this.descending ? "descending" : "ascending") : "none" }, button);
    });
    replace(this.head, made);
  }

  update(rows) {
    this.rows = [...rows];
    this.arrange();
    this.draw();
  }

  words(row) {
    let text = this.texts.get(row);
    if (text === undefined) {
      text = this.text(row).toLowerCase();
      this.texts.set(row, text);
    }
    return text;
  }

  arrange() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kept = new Map();
    this.shown = words.length
      ? this.rows.filter(([, row]) => {
          const text = this.words(row);
          kept.set(row, text);
          return words.every((word) => text.includes(word));
        })
      : [...this.rows];
    if (words.length) this.texts = kept; // of rows that are gone nothing is kept
    const value = this.order.value;
    const keys = new Map(this.shown.map((each) => [each, value(each[1])]));
    const sign = this.descending ? -1 : 1;
    this.shown.sort((a, b) => {
      const x = keys.get(a), y = keys.get(b);
      if (x === y) return a[0] < b[0] ? -1 : 1;
      if (x === null || x === undefined) return 1;
      if (y === null || y === undefined) return -1;
      return x < y ? -sign : sign;
    });
    this.active = Math.min(this.active, Math.max(0, this.shown.length - 1));
    this.count.textContent = this.summary();
    this.table.setAttribute("aria-rowcount", this.shown.length + 1);
  }

  summary() {
    const all = counted(this.rows.length, this.label.replace(/s$/, ""), this.label);
    return this.shown.length === this.rows.length ? all : `${this.shown.length.toLocaleString("en")} of ${all}`;
  }

  draw() {
    const top = this.scroll.scrollTop;
    const height = this.scroll.clientHeight || 600;
    const first = this.printing ? 0 : Math.max(0, Math.floor(top / ROW) - BEYOND);
    const last = Math.min(this.shown.length, this.printing ? PRINTED : Math.ceil((top + height) / ROW) + BEYOND);
    const made = this.shown.slice(first, last).map(([key, row], index) => this.row(key, row, first + index));
    const room = (rows) => (rows > 0 ? h("tr", { class: "room", "aria-hidden": "true" }, h("td", { colspan: this.columns.length, style: { height: `${rows * ROW}px` } })) : null);
    const nothing = this.shown.length ? null : h("tr", { role: "row" }, h("td", { role: "cell", colspan: this.columns.length, class: "empty" }, this.rows.length ? "No row has these words; clear the search to see all." : `There are no ${this.label}.`));
    replace(this.body, room(first), made, room(this.shown.length - last), nothing);
  }

  row(key, row, index) {
    const made = h("tr", { role: "row", "aria-rowindex": index + 2, "data-index": index, "data-focus": key, tabindex: index === this.active ? "0" : "-1", class: this.open ? "opens" : "" },
      this.columns.map((column) => h("td", { role: "cell", class: classes(column), title: column.title ? column.title(row) : null }, column.cell(row))));
    if (this.open) {
      made.addEventListener("click", (event) => {
        if (!event.target.closest("a") && !String(getSelection())) this.open(key);
      });
    }
    return made;
  }

  key(event) {
    const at = event.target.closest("tr[data-index]");
    const page = Math.max(1, Math.floor(this.scroll.clientHeight / ROW) - 2);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in moves && this.shown.length) {
      const from = at ? Number(at.dataset.index) : this.active - (event.key === "ArrowDown" ? 1 : 0);
      this.focus(Math.min(this.shown.length - 1, Math.max(0, from + moves[event.key])));
      event.preventDefault();
    } else if (event.key === "Enter" && at === event.target && at && this.open) {
      this.open(this.shown[Number(at.dataset.index)][0]);
      event.preventDefault();
    }
  }

  focus(index) {
    this.active = index;
    const top = index * ROW, below = top + ROW + this.head.offsetHeight;
    if (top < this.scroll.scrollTop) this.scroll.scrollTop = top;
    else if (below > this.scroll.scrollTop + this.scroll.clientHeight) this.scroll.scrollTop = below - this.scroll.clientHeight;
    this.draw();
    this.body.querySelector(`tr[data-index="${index}"]`)?.focus({ preventScroll: true });
  }

  plain() {
    return [this.columns.map((column) => column.label), ...this.shown.map(([, row]) => this.columns.map((column) => (column.plain || column.value)(row)))];
  }
}

const classes = (column) => [column.numeric ? "number" : "", column.wide ? "wide" : "", column.narrow === false ? "roomy" : column.narrow || ""].join(" ").trim();

// A small table that is all there.
export const simple = (label, heads, rows) =>
  h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": label },
    h("table", { class: "rows plain", "aria-label": label },
      h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell) => h("td", {}, cell)))))));
