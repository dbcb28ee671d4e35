// Numbers and times in the words of `pumice top` and `pumice explain`.

import { h } from "./dom.js";

const FIRST = ["cpu", "memory"];
const HIDDEN = ["pods", "ephemeral-storage", "hugepages-", "attachable-volumes-"];
const BYTES = [["Ti", 2 ** 40], ["Gi", 2 ** 30], ["Mi", 2 ** 20]];
const BYTE_LIKE = /^(memory$|ephemeral-storage$|hugepages-)/;

const decimal = (units, size) => (units / size).toFixed(1).replace(/\.0$/, "");

const isBytes = (name) => BYTE_LIKE.test(name);

export function amount(name, units) {
  if (units === null || units === undefined) return "–";
  if (isBytes(name)) {
    for (const [suffix, size] of BYTES) if (units >= size) return decimal(units, size) + suffix;
    return String(units);
  }
  return /^(pods$|attachable-volumes-)/.test(name) ? String(units) : decimal(units, 1000);
}

export const amounts = (held) =>
  Object.keys(held || {}).filter((name) => name !== "pods" && held[name]).sort(byResource).map((name) => `${amount(name, held[name])} ${short(name)}`).join(", ");

// The part of a resource's name that tells it apart.
export const short = (name) => name.slice(name.lastIndexOf("/") + 1);

const rank = (name) => (FIRST.indexOf(name) + 1 || FIRST.length + 1);
const byResource = (a, b) => rank(a) - rank(b) || (a < b ? -1 : a > b ? 1 : 0);

const isShown = (name) => !HIDDEN.some((each) => name.startsWith(each));
export const resources = (total) => Object.keys(total).filter((name) => total[name] > 0 && isShown(name)).sort(byResource);

export const percent = (part, whole) => (whole ? `${Math.round((100 * part) / whole)} %` : "–");

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

// A span of microseconds: two units at the most.
export function span(micros) {
  let seconds = Math.max(0, Math.round(micros / 1e6));
  const parts = [];
  for (const [size, name] of UNITS) {
    const count = Math.floor(seconds / size);
    if (count || (parts.length === 0 && name === "s")) parts.push(`${count} ${name}`);
    seconds -= count * size;
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

export const absolute = (micros) => {
  const date = new Date(micros / 1000);
  const pad = (number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
};
export const clock = (micros) => absolute(micros).slice(11);

export const times = { relative: true, now: () => Date.now() * 1000 };

const told = (at, form) => {
  if (!times.relative) return form === "wait" ? `since ${absolute(at)}` : absolute(at);
  return form === "wait" ? span(times.now() - at) : `${span(times.now() - at)} ago`;
};

// A time that goes on: "3 min ago", or how long somebody has waited since then.
export function time(at, form = "ago") {
  if (!at) return h("span", {}, "–");
  return h("time", { datetime: new Date(at / 1000).toISOString(), title: absolute(at), "data-at": at, "data-form": form }, told(at, form));
}

export function tick() {
  for (const each of document.querySelectorAll("time[data-at]")) {
    const text = told(Number(each.dataset.at), each.dataset.form);
    if (each.textContent !== text) each.textContent = text;
  }
}

const NUMBERS = new Intl.NumberFormat("en");
export const counted = (number, one, many = `${one}s`) => `${number < 1000 ? number : NUMBERS.format(number)} ${number === 1 ? one : many}`;

const PHASES = { Running: "good", Completed: "done", Succeeded: "done", Unknown: "bad", Failed: "bad", Inqueue: "let-in" };
export const phase = (name) => h("span", { class: `chip ${PHASES[name] || "waits"}` }, name);
