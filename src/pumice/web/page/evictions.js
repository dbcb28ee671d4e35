// Who had to go, for whom, by which action, rule and plan; what came of the claimant; who had to go more than once.

import { h, jobLink, queueLink } from "./dom.js";
import { Table } from "./table.js";
import { absolute, phase, time } from "./words.js";

// Whoever may not be seen has no namespace here.
const went = (row) => (row.namespace ? `${row.namespace}/${row.pod}` : row.pod);

export const evictionRow = (each) =>
  h("li", {}, h("div", { class: "line" }, h("span", {}, went(each)), each.action ? h("span", { class: "chip" }, each.action) : null, h("span", { class: "end" }, time(each.time))),
    h("p", { class: "why" }, each.claimant ? [`for ${each.claimant}`, each.queue ? [" in ", queueLink(each.queue)] : null] : each.text));

export function evictionList(root, store, _name, query) {
  const often = h("p", { class: "hint" });
  let times = new Map();
  const claimant = (row) => store.scene.jobs.get(row.group);
  const table = new Table({
    name: "evictions", label: "evictions", order: "time", descending: true, query: query.get("q") || "",
    columns: [
      { name: "time", label: "When", value: (row) => row.time, plain: (row) => absolute(row.time), cell: (row) => time(row.time), numeric: true },
      { name: "pod", label: "Pod", value: went, cell: (row) => (row.victim ? jobLink(`${row.namespace}/${row.victim}`, went(row)) : went(row)), wide: true },
      { name: "count", label: "Times", value: (row) => (row.namespace && times.get(went(row))) || 1, cell: (row) => (row.namespace && times.get(went(row))) || 1, numeric: true, narrow: false },
      { name: "claimant", label: "For", value: (row) => row.claimant, cell: (row) => (row.group ? jobLink(row.group, row.claimant) : row.claimant || "–"), wide: true },
      { name: "came", label: "What came of it", value: (row) => claimant(row)?.phase || "", plain: (row) => claimant(row)?.phase || "", cell: (row) => (row.group ? (claimant(row) ? phase(claimant(row).phase) : "gone") : "–"), narrow: false },
      { name: "action", label: "Action", value: (row) => row.action, cell: (row) => row.action || "–" },
      { name: "rules", label: "Rules", value: (row) => row.rules, cell: (row) => row.rules || "–", narrow: false },
      { name: "plan", label: "Plan", value: (row) => row.plan, cell: (row) => row.plan ?? "–", numeric: true, narrow: false },
      { name: "text", label: "As told", value: (row) => row.text, cell: (row) => row.text, title: (row) => row.text, wide: true, narrow: "widest" },
    ],
    text: (row) => `${went(row)} ${row.text} action:${row.action} queue:${row.queue}`,
  });
  root.append(h("h1", {}, "Evictions"), often, table.element);
  return {
    update(changed) {
      if (!changed.has("evictions") && !changed.has("jobs")) return;
      const all = store.scene.evictions;
      times = new Map();
      for (const each of all) if (each.namespace) times.set(went(each), (times.get(went(each)) || 0) + 1);
      const repeated = [...times].filter(([, count]) => count > 1);
      often.textContent = !all.length ? "Nobody had to go, as far as the events of the cluster tell; it keeps them for about an hour."
        : repeated.length ? `Had to go more than once: ${repeated.slice(0, 5).map(([pod, count]) => `${pod} (${count} times)`).join(", ")}${repeated.length > 5 ? ` and ${repeated.length - 5} more` : ""}.` : "Nobody had to go twice.";
      table.update(all.map((each) => [each.id, each]));
    },
    close: () => table.close(),
  };
}
