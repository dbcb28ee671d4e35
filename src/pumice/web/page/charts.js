// Plots as SVG, drawn by hand: use over time, bars of shares, lives of jobs, maps of nodes. Each says in words what it shows.

import { h, s } from "./dom.js";
import { amount, clock, percent, short } from "./words.js";

const HOUR = 3600e6;

const path = (points) => points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

// Use and waiting of one resource over the last hour.
export function pulse(name, samples, now) {
  const width = 420, height = 120, left = 4, right = 4, bottom = 16, top = 8;
  const known = samples.filter((each) => each[1][name]);
  const from = Math.min(now - 600e6, Math.max(now - HOUR, known.length ? known[0][0] : now));
  const whole = Math.max(1, ...known.map((each) => Math.max(each[1][name][2], each[1][name][0] + each[1][name][1])));
  const x = (at) => left + ((width - left - right) * (at - from)) / Math.max(1, now - from);
  const y = (units) => height - bottom - ((height - bottom - top) * units) / whole;
  const inside = known.filter((each) => each[0] >= from);
  const last = inside.length ? inside[inside.length - 1][1][name] : [0, 0, 0];
  const shown = inside.length ? [...inside, [now, inside[inside.length - 1][1]]] : [];
  const used = shown.map((each) => [x(each[0]), y(each[1][name][0])]);
  const asked = shown.map((each) => [x(each[0]), y(each[1][name][0] + each[1][name][1])]);
  const limit = shown.map((each) => [x(each[0]), y(each[1][name][2])]);
  const area = (line, base) => (line.length ? path([...line, ...[...base].reverse()]) + "Z" : "");
  const floor = used.map(([at]) => [at, height - bottom]);
  const words = `${short(name)}: ${amount(name, last[0])} of ${amount(name, last[2])} in use (${percent(last[0], last[2])}), ${amount(name, last[1])} waited for`;
  return s("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words, preserveAspectRatio: "none" },
    s("title", {}, words),
    s("path", { class: "area waiting", d: area(asked, used) }),
    s("path", { class: "area used", d: area(used, floor) }),
    s("path", { class: "line used", d: path(used) }),
    s("path", { class: "line whole", d: path(limit) }),
    s("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }),
    s("text", { class: "label", x: left, y: height - 3 }, clock(from).slice(0, 5)),
    s("text", { class: "label end", x: width - right, y: height - 3 }, clock(now).slice(0, 5)));
}

// What a queue holds of what it may: due, guarantee and ceiling are marks on the bar.
export function share(name, found, total) {
  const whole = Math.max(1, total[name] || 0, found.held, found.due || 0);
  const at = (units) => `${Math.min(100, (100 * units) / whole).toFixed(2)}%`;
  const ceiling = found.ceiling !== null && found.ceiling < whole ? found.ceiling : null;
  const words = [`held ${amount(name, found.held)}`];
  if (found.asked) words.push(`asked ${amount(name, found.asked)}`);
  if (found.due !== null && found.due !== undefined) words.push(`due ${amount(name, found.due)}`);
  if (found.guarantee) words.push(`guaranteed ${amount(name, found.guarantee)}`);
  if (ceiling !== null) words.push(`ceiling ${amount(name, ceiling)}`);
  const above = found.due !== null && found.due !== undefined && found.held > found.due;
  return h("div", { class: "share", role: "img", "aria-label": `${short(name)}: ${words.join(", ")}`, title: `${name}: ${words.join(", ")}` },
    h("span", { class: "resource" }, short(name)),
    h("span", { class: "bar" },
      ceiling !== null ? h("span", { class: "beyond", style: { left: at(ceiling), width: `calc(100% - ${at(ceiling)})` } }) : null,
      found.asked ? h("span", { class: "asked", style: { left: at(found.held), width: at(Math.min(found.asked, whole - found.held)) } }) : null,
      h("span", { class: above ? "held above" : "held", style: { width: at(found.held) } }),
      found.guarantee ? h("span", { class: "guarantee", style: { width: at(found.guarantee) } }) : null,
      found.due ? h("span", { class: "due", style: { left: at(found.due) } }) : null),
    h("span", { class: "numbers" }, `${amount(name, found.held)} / ${amount(name, found.due)}`));
}

export const shareLegend = () =>
  h("p", { class: "legend" },
    Object.entries({ held: "held", above: "held beyond its due", asked: "asked for", due: "due", guarantee: "guaranteed", beyond: "beyond its ceiling" })
      .map(([name, text]) => h("span", { class: "pair" }, h("span", { class: `key ${name}` }), text)));

const SPANS = { waits: "waits", held: "let in, waits", placed: "placed", runs: "runs", done: "ended" };

// The life of a job: spans between what is known to have happened, with the moments as marks.
export function life(moments, now) {
  const width = 900, height = 74, left = 10, right = 10, track = 34;
  const from = moments[0].at;
  const to = Math.max(now, from + 1e6);
  const x = (at) => left + ((width - left - right) * (Math.min(Math.max(at, from), to) - from)) / (to - from);
  const words = moments.map((each) => `${clock(each.at)} ${each.what}`).join("; ");
  const children = [s("title", {}, words)];
  let state = "waits", begins = from;
  const close = (at) => {
    if (at > begins) children.push(s("rect", { class: `span ${state}`, x: x(begins), y: track - 8, width: Math.max(1, x(at) - x(begins)), height: 16, rx: 3 }, s("title", {}, SPANS[state])));
    begins = at;
  };
  for (const each of moments) {
    if (each.state && each.state !== state) {
      close(each.at);
      state = each.state;
    }
  }
  close(state === "done" ? begins : to);
  let free = [-Infinity, -Infinity];
  for (const each of moments) {
    const at = x(each.at);
    children.push(s("circle", { class: `mark ${each.bad ? "bad" : ""}`, cx: at, cy: track, r: 5 }, s("title", {}, `${clock(each.at)} ${each.what}`)));
    const size = each.label.length * 6.2;
    const start = Math.min(Math.max(left, at - size / 2), width - right - size);
    const row = start > free[0] ? 0 : start > free[1] ? 1 : -1;
    if (row >= 0) {
      children.push(s("text", { class: "label", x: start, y: row === 0 ? 14 : 62 }, each.label));
      free[row] = start + size + 8;
    }
  }
  return s("svg", { class: "life", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Time line: ${words}` }, children);
}

// How full something is, in ten steps that differ in lightness, so that everybody can tell them apart.
export const step = (part, whole) => (whole ? Math.min(10, Math.max(part > 0 ? 1 : 0, Math.round((10 * part) / whole))) : -1);
