// The tree of queues, and of one queue how its share comes about, whom it lends to and borrows from, and who is served next.

import { share, shareLegend } from "./charts.js";
import { card, copyButton, csvButton, empty, h, jobLink, queueLink, replace } from "./dom.js";
import { ask } from "./link.js";
import { standing } from "./store.js";
import { simple } from "./table.js";
import { amount, counted, phase, resources } from "./words.js";

const ROOT = "root";

// Queues below each other, parents first; one whose parent is not there stands at the top.
function tree(queues) {
  const below = new Map();
  for (const queue of queues.values()) {
    const parent = queue.name !== ROOT && queues.has(queue.parent || ROOT) ? queue.parent || ROOT : "";
    if (!below.has(parent)) below.set(parent, []);
    below.get(parent).push(queue);
  }
  const found = [], seen = new Set();
  const walk = (parent, depth) => {
    for (const queue of (below.get(parent) || []).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (seen.has(queue.name)) continue;
      seen.add(queue.name);
      found.push([queue, depth]);
      walk(queue.name, depth + 1);
    }
  };
  walk("", 0);
  for (const queue of queues.values()) if (!seen.has(queue.name)) found.push([queue, 0]); // queues that are each other's parents
  return found;
}

export function queueList(root, store) {
  const list = h("div", {});
  root.append(h("h1", {}, "Queues"), card("Held, due, guaranteed, ceiling", csvButton("queues", () => plain(store.scene)), list, shareLegend()));
  return {
    update(changed) {
      if (!changed.has("queues") && !changed.has("facts")) return;
      const scene = store.scene;
      const rows = tree(scene.queues);
      replace(list, rows.length ? h("ul", { class: "tree" }, rows.map(([queue, depth]) => entry(queue, depth, scene)))
        : empty("There are no queues. ", h("code", {}, "pumice queue create -n research"), " makes one."));
    },
  };
}

function entry(queue, depth, scene) {
  const found = standing(scene, queue);
  const named = resources(scene.total).filter((name) => found[name]);
  return h("li", { class: "queue", style: { "margin-left": `${depth * 24}px` } },
    h("div", { class: "line" }, queueLink(queue.name), h("span", { class: "dim" }, `weight ${queue.weight}`), queue.state !== "Open" ? h("span", { class: "chip bad" }, queue.state) : null,
      h("span", { class: "end dim" }, `${counted(queue.running, "job")} run, ${queue.waiting} wait`)),
    named.map((name) => share(name, found[name], scene.total)));
}

const plain = (scene) => [
  ["queue", "parent", "state", "weight", "running", "waiting", "resource", "held", "asked", "due", "guarantee", "ceiling"],
  ...tree(scene.queues).flatMap(([queue]) => Object.entries(standing(scene, queue)).map(([name, found]) => [queue.name, queue.parent, queue.state, queue.weight, queue.running, queue.waiting, name,
    ...["held", "asked", "due", "guarantee", "ceiling"].map((each) => (found[each] === null || found[each] === undefined ? "" : amount(name, found[each])))])),
];

export function queueView(root, store, name) {
  const bars = h("div", {});
  const why = h("div", { "aria-live": "polite" });
  const again = h("button", { type: "button", class: "quiet small" }, "Ask again");
  again.addEventListener("click", () => explain());
  root.append(h("p", { class: "trail" }, h("a", { href: "#/queues" }, "Queues"), " / "), h("h1", {}, name), bars, why);

  async function explain() {
    replace(why, empty("Working out how its share comes about …"));
    try {
      const told = await ask("/api/explain", { what: "queue", name, ...store.then() });
      replace(why, explained(told, again, store));
    } catch (problem) {
      replace(why, card("How its share comes about", again, h("p", { class: "problem" }, problem.message)));
    }
  }
  let asked = false;
  return {
    update(changed) {
      const queue = store.scene.queues.get(name);
      if (!queue) {
        replace(bars, empty(`There is no queue ${name}${store.past ? " at that moment" : ""}.`));
        replace(why);
        return;
      }
      if (changed.has("queues") || changed.has("facts")) replace(bars, card(store.past ? "Then" : "Now", null, h("ul", { class: "tree" }, entry(queue, 0, store.scene)), shareLegend()));
      if (!asked) {
        asked = true;
        explain();
      }
    },
  };
}

function explained({ answer, lines }, again, store) {
  const told = answer.explanation;
  if (!told) return card("How its share comes about", again, h("p", { class: "problem" }, answer.refused || "You may not read what a scheduler reads, so its share cannot be worked out."));
  const claims = [...told.claims, ...told.claimed];
  const titles = (key) => jobLink(key, title(store, key));
  return [
    card("How its share comes about", [again, copyButton(() => lines.join("\n"))],
      h("p", {}, told.share === null ? "No plugin of this policy shares resources out. " : `By ${told.plugin} it holds ${Math.round(told.share * 100)} % of what it is due. `,
        `Weight ${told.weight}, priority ${told.priority}${told.parent ? `, under ${told.parent}` : ""}${told.reclaimable ? "" : ", not reclaimable"}.`),
      told.overused ? h("p", { class: "warm" }, `Overused: ${told.overused}`) : null,
      simple("Shares by resource", ["resource", "held", "asked", "let in", "due", "guaranteed", "ceiling", "room"],
        told.dimensions.map((each) => [each.resource, each.held, each.asked, each.letIn, each.due || "–", each.guarantee, each.ceiling || "–", each.room || "–"]))),
    card("Lends to and borrows from", null, claims.length
      ? h("ul", { class: "list" }, claims.map((each) => h("li", {}, queueLink(each.claimant), each.refusal ? " would take back " : " can take back ", Object.entries(each.amounts).map(([key, text]) => `${text} ${key}`).join(", "), " from ", queueLink(each.owner), " for ", titles(each.job), each.refusal ? h("p", { class: "why" }, each.refusal) : null)))
      : empty("It holds nothing that others could take back, and could take back nothing from others.")),
    card("Served next", null, told.waiting.length
      ? h("ol", { class: "list numbered" }, told.waiting.map((key) => h("li", {}, titles(key), " ", h("span", { class: "dim" }, store.scene.jobs.get(key)?.reason || ""))))
      : empty("None of its jobs waits.")),
    card("Who holds what", null, told.jobs.length
      ? simple("Jobs of this queue", ["job", "phase", "priority", "placed", "wait", "holds", "asks for"], told.jobs.map((each) => [titles(each.job), phase(each.phase || "Pending"), each.priority, each.running, each.waiting, list(each.held), list(each.asked)]))
      : empty("It has no jobs."), told.otherJobs ? h("p", { class: "dim" }, `and ${counted(told.otherJobs, "more job")}`) : null),
  ];
}

const list = (held) => Object.entries(held).map(([name, text]) => `${text} ${name}`).join(", ") || "–";

export const title = (store, key) => {
  const job = store.scene.jobs.get(key);
  return job ? `${job.namespace}/${job.title}` : key;
};
