// What matters at a glance: use, waiting, shares, the longest waits, the last evictions, and whether all of that can be trusted.

import { pulse, share, shareLegend } from "./charts.js";
import { card, csvButton, empty, h, jobLink, link, place, pngButton, queueLink, replace } from "./dom.js";
import { evictionRow } from "./evictions.js";
import { standing, waiting } from "./store.js";
import { amount, counted, percent, resources, short, span, time } from "./words.js";

const PLOTS = 4;
const QUEUES = 8;
const WAITS = 8;
const EVICTIONS = 6;

export function overview(root, store) {
  const tiles = h("div", { class: "tiles" });
  const plots = h("div", { class: "plots" });
  const queues = h("div", { class: "queues" });
  const waits = h("div", {});
  const evictions = h("div", {});
  const health = h("div", {});
  root.append(
    h("h1", { class: "unseen" }, "Overview"),
    tiles,
    card("Use of the last hour", pngButton("use", () => [...plots.querySelectorAll("figure")].map((each) => [each.querySelector("figcaption").textContent, each.querySelector("svg")])), plots,
      h("p", { class: "legend" }, h("span", { class: "key held" }), "in use", h("span", { class: "key asked" }), "waited for", h("span", { class: "key whole" }), "what the nodes offer")),
    h("div", { class: "columns" },
      card("Queues", link("#/queues", "all queues"), queues, shareLegend()),
      card("Longest waits", csvButton("waits", () => [["job", "queue", "since", "reason"], ...waiting(store.scene).map(([key, job]) => [key, job.queue, new Date(job.since / 1000).toISOString(), job.reason])]), waits)),
    h("div", { class: "columns" }, card("Last evictions", link("#/evictions", "all evictions"), evictions), card("Health", null, health)));

  const update = (changed) => {
    const scene = store.scene;
    const all = waiting(scene);
    if (changed.has("jobs") || changed.has("nodes") || changed.has("pulse")) {
      const running = [...scene.jobs.values()].filter((job) => job.phase === "Running").length;
      const down = [...scene.nodes.values()].filter((node) => node.state).length;
      replace(tiles,
        tile("#/jobs?q=running", running, "jobs run"),
        tile("#/jobs", all.length, "jobs wait", all.length ? `the longest for ${span(store.now() - all[0][1].since)}` : "nobody waits", all.length ? "warm" : ""),
        tile("#/nodes", scene.nodes.size, scene.nodes.size === 1 ? "node" : "nodes", down ? `${down} not ready or cordoned` : "all ready", down ? "warm" : ""),
        tile("#/nodes", scene.pods, "pods", ""));
      replace(waits, all.length ? h("ol", { class: "list" }, all.slice(0, WAITS).map(wait), all.length > WAITS ? h("li", { class: "more" }, link("#/jobs", `and ${counted(all.length - WAITS, "more job")}`)) : null)
        : empty(scene.jobs.size ? "No job waits." : "There are no jobs yet. ", scene.jobs.size ? null : h("code", {}, "kubectl apply -f job.yaml"), scene.jobs.size ? null : " makes one; it appears here at once."));
    }
    if (changed.has("pulse") || changed.has("nodes")) {
      const named = resources(scene.total).slice(0, PLOTS);
      const last = scene.pulse.length ? scene.pulse[scene.pulse.length - 1][1] : {};
      replace(plots, named.length ? named.map((name) => figure(name, scene, last[name] || [0, 0, scene.total[name]], store.now())) : empty("There are no nodes yet, so there is nothing to use."));
    }
    if (changed.has("queues") || changed.has("facts")) {
      const shown = [...scene.queues.values()].filter((queue) => queue.name !== "root").sort(busiest(scene)).slice(0, QUEUES);
      replace(queues, shown.length ? shown.map((queue) => queueBars(queue, scene)) : empty("There are no queues. Jobs without one need the queue “default”."));
    }
    if (changed.has("evictions")) {
      const latest = [...scene.evictions].sort((a, b) => b.time - a.time).slice(0, EVICTIONS);
      replace(evictions, latest.length ? h("ol", { class: "list" }, latest.map((each) => evictionRow(each))) : empty("Nobody had to go in the last hour."));
    }
    if (changed.has("facts")) replace(health, healthList(scene, Boolean(store.past)));
  };
  return { update };
}

const tile = (href, number, label, note, tone = "") =>
  h("a", { class: `tile ${tone}`, href, "data-focus": `tile-${label}` }, h("strong", {}, number.toLocaleString("en")), h("span", {}, label), note ? h("small", {}, note) : null);

const figure = (name, scene, last, now) =>
  h("figure", { class: "figure" },
    h("figcaption", {}, h("b", {}, short(name)), ` ${amount(name, last[0])} of ${amount(name, last[2])} in use, ${percent(last[0], last[2])}`, last[1] ? h("span", { class: "warm" }, `, ${amount(name, last[1])} waited for`) : null),
    pulse(name, scene.pulse, now));

const wait = ([key, job]) =>
  h("li", {}, h("div", { class: "line" }, jobLink(key, `${job.namespace}/${job.title}`), h("span", { class: "dim" }, "in ", queueLink(job.queue)), h("span", { class: "end" }, time(job.since, "wait"))),
    h("p", { class: "why" }, job.reason || "no reason is written on it yet"));

const busiest = (scene) => (a, b) => b.waiting - a.waiting || b.running - a.running || most(scene, b) - most(scene, a) || (a.name < b.name ? -1 : 1);

const most = (scene, queue) => Math.max(0, ...Object.entries(standing(scene, queue)).map(([name, found]) => found.held / Math.max(1, scene.total[name] || 1)));

function queueBars(queue, scene) {
  const found = standing(scene, queue);
  const named = resources({ ...scene.total }).filter((name) => found[name] && (found[name].held || found[name].asked || found[name].due));
  return h("div", { class: "queue" },
    h("div", { class: "line" }, queueLink(queue.name), queue.state !== "Open" ? h("span", { class: "chip bad" }, queue.state) : null,
      h("span", { class: "end dim" }, `${counted(queue.running, "job")} run, ${queue.waiting} wait`)),
    named.length ? named.slice(0, 3).map((name) => share(name, found[name], scene.total)) : h("p", { class: "dim small" }, "holds nothing"));
}

// How the scheduler itself is doing, where it serves the page; nobody else knows.
function ownHealth(own) {
  if (!own) return [["dim", "Cycle times and breakdowns are not known here; a scheduler that serves the page tells them."]];
  const lines = [own.leading ? ["good", "The scheduler decides."] : ["dim", "This replica stands by; another one decides, and knows its cycle times."]];
  if (own.median !== null) lines.push(["good", `Cycles take ${milliseconds(own.median)}, half of them less; the longest of the last ${milliseconds(own.longest)}, the last ${milliseconds(own.last)}. ${own.decided.toLocaleString("en")} were decided, ${own.skipped.toLocaleString("en")} had nothing to do.`]);
  const broken = Object.entries(own.breakdowns).sort((a, b) => b[1] - a[1]);
  lines.push(broken.length ? ["bad", `Broke down: ${broken.map(([plugin, count]) => `${plugin} ${count === 1 ? "once" : `${count} times`}`).join(", ")}; the log says where.`] : ["good", "No plugin broke down."]);
  return lines;
}

const milliseconds = (value) => (value < 10 ? `${value.toFixed(1)} ms` : value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(1)} s`);

function healthList(scene, past) {
  const facts = scene.facts;
  const lines = [];
  if (past) lines.push(["dim", "This is how it was; nothing changes."]);
  else lines.push(facts.live ? ["good", "The cluster is followed; changes show within a second or two."] : ["dim", "This is a file: nothing changes."]);
  for (const note of facts.notes || []) lines.push(["bad", note]);
  if (facts.sharesProblem) lines.push(["bad", `What queues are due cannot be worked out: ${facts.sharesProblem}`]);
  else if (facts.queues) lines.push(["good", "What queues are due is worked out as explain does it, with the policy in force."]);
  else lines.push(["dim", "What queues are due is not worked out yet; the bars show what is written on them."]);
  for (const [tone, text] of ownHealth(facts.scheduler)) lines.push([tone, text]);
  return [h("ul", { class: "list health" }, lines.map(([tone, text]) => h("li", { class: tone }, text))), h("p", { class: "small" }, link(place("policy"), "the policy in force"))];
}
