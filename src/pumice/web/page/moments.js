// Time: a slider over what is remembered. Every view is of the chosen moment; two moments can be held against each other.

import { card, csvButton, empty, h, jobLink, nodeLink, queueLink, replace } from "./dom.js";
import { ask } from "./link.js";
import { opened } from "./store.js";
import { simple } from "./table.js";
import { absolute, amount, clock, counted, phase, span } from "./words.js";

const MOST = 200;
const REST = 500; // milliseconds at one moment until more is worked out about it

export class Moments {
  constructor(store, banner) {
    this.store = store;
    this.banner = banner;
    this.wanted = null;
    this.resting = 0;
    this.ago = h("span", {});
  }

  // Show the cluster as it was, or as near to that as is known.
  async go(at) {
    if (this.wanted === at) return;
    this.wanted = at;
    clearTimeout(this.resting);
    try {
      const found = opened(await ask("/api/scene", { at }));
      if (this.wanted !== at) return; // another one was chosen since
      this.store.show(found);
      this.draw();
      this.resting = setTimeout(() => this.learn(found), REST);
    } finally {
      if (this.wanted === at) this.wanted = null;
    }
  }

  // What queues were due is worked out when somebody stays.
  async learn(past) {
    const facts = await ask("/api/shares", { at: past.time }).catch((problem) => ({ sharesProblem: problem.message }));
    if (this.store.past === past) this.store.learn(facts);
  }

  // How long ago the chosen moment is goes on, wherever time does.
  tick() {
    const { past } = this.store;
    if (past) this.ago.textContent = before(this.store, past.time);
  }

  back() {
    this.wanted = null;
    clearTimeout(this.resting);
    this.store.show(null);
    this.draw();
  }

  draw() {
    const past = this.store.past;
    this.banner.hidden = !past;
    if (!past) return;
    this.tick();
    const live = h("button", { type: "button" }, this.store.live.facts.live ? "Back to now" : "Back to its end");
    live.addEventListener("click", () => this.back());
    replace(this.banner, h("span", {}, h("b", {}, `As it was at ${absolute(past.time)}`), ", ", this.ago, ". "), h("a", { href: "#/time" }, "Another moment"), " ", live);
  }
}

const before = (store, at) => `${span(store.live.time - at)} before ${store.live.facts.live ? "now" : "its end"}`;

export function timeView(root, store, moments) {
  const slider = h("input", { type: "range", class: "slider", "aria-label": "Moment", step: "1" });
  const told = h("output", { class: "told" });
  const held = h("div", { "aria-live": "polite" });
  const problem = h("p", { class: "problem", hidden: true });
  const hold = h("button", { type: "button" }, "Hold this moment against others");
  const back = h("button", { type: "button", class: "quiet" }, store.live.facts.live ? "Back to now" : "Back to its end");
  let timer = 0;

  const chosen = () => (Number(slider.value) + 1) * 1e6 - 1; // all of a second
  const label = () => {
    const at = chosen();
    const text = Number(slider.value) < Number(slider.max) ? `${absolute(at)}, ${before(store, at)}` : store.live.facts.live ? "now" : `${absolute(at)}, its end`;
    told.textContent = text;
    slider.setAttribute("aria-valuetext", text);
  };
  const choose = async () => {
    problem.hidden = true;
    try {
      if (Number(slider.value) >= Number(slider.max)) moments.back();
      else await moments.go(chosen());
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
    }
  };
  slider.addEventListener("input", () => {
    label();
    clearTimeout(timer);
    timer = setTimeout(choose, 120);
  });
  hold.addEventListener("click", () => {
    const scene = store.scene;
    store.base = { ...scene, queues: new Map(scene.queues), jobs: new Map(scene.jobs), nodes: new Map(scene.nodes), facts: { ...scene.facts } };
    draw();
  });
  back.addEventListener("click", () => {
    moments.back();
    slider.value = slider.max;
    label();
  });
  root.append(h("h1", {}, "Time"), card("Moment", null,
    h("p", { class: "dim" }, store.live.facts.live ? "What this process has seen is remembered for an hour. " : "All of what was read can be chosen from. ", "Choose a moment, then look at any view: all of them show the cluster as it was then, and explain and rehearse it as of then. The address has the moment in it."),
    slider, h("p", {}, told), problem, h("p", { class: "line" }, hold, back)), held);

  const bounds = () => {
    slider.min = Math.floor(store.live.first / 1e6);
    slider.max = Math.max(Number(slider.min) + 1, Math.floor(store.live.time / 1e6));
  };
  const draw = () => replace(held, store.base ? difference(store.base, store.scene) : card("Two moments", null, empty("Hold a moment, then choose another: what differs between them is listed here.")));
  bounds();
  slider.value = store.past ? Math.floor(store.past.time / 1e6) : slider.max;
  label();
  return {
    update() {
      const atEnd = !store.past;
      bounds();
      if (atEnd) slider.value = slider.max;
      label();
      draw();
    },
    close: () => clearTimeout(timer),
  };
}

function difference(base, scene) {
  const jobs = [];
  for (const key of new Set([...base.jobs.keys(), ...scene.jobs.keys()])) {
    const before = base.jobs.get(key), after = scene.jobs.get(key);
    if (before?.phase !== after?.phase || before?.ready !== after?.ready) jobs.push([key, before, after]);
  }
  const queues = [];
  for (const name of new Set([...base.queues.keys(), ...scene.queues.keys()])) {
    const [then, now] = [base, scene].map((each) => each.queues.get(name)?.allocated || {});
    for (const resource of new Set([...Object.keys(then), ...Object.keys(now)])) {
      if (resource !== "pods" && (then[resource] || 0) !== (now[resource] || 0)) queues.push([name, resource, then[resource] || 0, now[resource] || 0]);
    }
  }
  const nodes = [...scene.nodes.values()].filter((node) => base.nodes.get(node.name)?.state !== node.state);
  const gone = [...base.nodes.keys()].filter((name) => !scene.nodes.has(name));
  const stand = (job) => (job ? [phase(job.phase), ` ${job.ready}/${job.minimum}`] : "not there");
  const order = base.time <= scene.time ? [base, scene] : [scene, base];
  return card(`${clock(base.time)} against ${clock(scene.time)}, ${span(order[1].time - order[0].time)} apart`,
    csvButton("moments", () => [["job", "before", "after"], ...jobs.map(([key, before, after]) => [key, before ? `${before.phase} ${before.ready}/${before.minimum}` : "", after ? `${after.phase} ${after.ready}/${after.minimum}` : ""])]),
    jobs.length ? [simple("Jobs that differ", ["job", `at ${clock(base.time)}`, `at ${clock(scene.time)}`], jobs.slice(0, MOST).map(([key, before, after]) => [jobLink(key, before || after ? `${(after || before).namespace}/${(after || before).title}` : key), stand(before), stand(after)])), jobs.length > MOST ? h("p", { class: "dim" }, `and ${counted(jobs.length - MOST, "more job")}; CSV has all`) : null] : empty("No job stands differently."),
    queues.length ? simple("Queues that hold something else", ["queue", "resource", `at ${clock(base.time)}`, `at ${clock(scene.time)}`], queues.map(([name, resource, before, after]) => [queueLink(name), resource, amount(resource, before), amount(resource, after)])) : null,
    nodes.length || gone.length ? simple("Nodes that differ", ["node", "state"], [...nodes.map((node) => [nodeLink(node.name), node.state || "Ready"]), ...gone.map((name) => [name, "gone"])]) : null);
}
