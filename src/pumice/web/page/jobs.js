// All jobs as one table, and one job: its life, its pods, why it waits, what would start it, and what a change would do.

import { life } from "./charts.js";
import { card, copyButton, csvButton, empty, h, link, nodeLink, place, pngButton, queueLink, replace } from "./dom.js";
import { ask } from "./link.js";
import { simple, Table } from "./table.js";
import { whatIf } from "./whatif.js";
import { absolute, amounts, counted, phase, time } from "./words.js";

const PODS = 200;
const PAUSE = 1500; // milliseconds between two looks at pods

export function jobList(root, store, _name, query) {
  const columns = [
    { name: "job", label: "Job", value: (row) => `${row.namespace}/${row.title}`, cell: (row) => link(place("jobs", `${row.namespace}/${row.name}`), `${row.namespace}/${row.title}`, { class: "name", tabindex: "-1" }), title: (row) => `${row.namespace}/${row.name}`, wide: true },
    { name: "queue", label: "Queue", value: (row) => row.queue, cell: (row) => row.queue, narrow: false },
    { name: "phase", label: "Phase", value: (row) => row.phase, cell: (row) => phase(row.phase) },
    { name: "ready", label: "Ready/min", value: (row) => row.ready, plain: (row) => `${row.ready}/${row.minimum}`, cell: (row) => `${row.ready}/${row.minimum}`, numeric: true },
    { name: "members", label: "Of", value: (row) => row.members, cell: (row) => row.members, numeric: true, narrow: false },
    { name: "holds", label: "Holds", value: (row) => row.held.cpu || 0, plain: (row) => amounts(row.held), cell: (row) => amounts(row.held), narrow: false },
    { name: "waits", label: "Waits", value: (row) => (row.since === null ? null : -row.since), plain: (row) => (row.since === null ? "" : absolute(row.since)), cell: (row) => (row.since === null ? "" : time(row.since, "wait")), numeric: true },
    { name: "why", label: "Why", value: (row) => row.reason, cell: (row) => row.reason, title: (row) => row.reason, wide: true, narrow: false },
    { name: "created", label: "Created", value: (row) => row.created, plain: (row) => absolute(row.created), cell: (row) => time(row.created), numeric: true, narrow: "widest" },
  ];
  const table = new Table({
    name: "jobs", label: "jobs", columns, order: "waits", descending: true, query: query.get("q") || "",
    text: (row) => `${row.namespace}/${row.title} ${row.name} queue:${row.queue} phase:${row.phase} ${row.phase} ${row.since === null ? "" : "waiting"} ${row.reason}`,
    open: (key) => (location.hash = place("jobs", key)),
    changed: (text) => store.stay(text ? `#/jobs?q=${encodeURIComponent(text)}` : "#/jobs"),
  });
  root.append(h("h1", {}, "Jobs"), h("p", { class: "hint" }, "Words narrow the table, such as ", h("code", {}, "waiting"), ", ", h("code", {}, "queue:research"), " or a part of a name or a reason."), table.element);
  return {
    update: (changed) => changed.has("jobs") && table.update(store.scene.jobs),
    close: () => table.close(),
  };
}

export function jobView(root, store, key) {
  const head = h("div", {});
  const lived = h("div", {});
  const why = h("div", { "aria-live": "polite" });
  const pods = h("div", {});
  const change = whatIf(store, { job: key });
  const again = h("button", { type: "button", class: "quiet small" }, "Ask again");
  again.addEventListener("click", () => explain());
  root.append(h("p", { class: "trail" }, h("a", { href: "#/jobs" }, "Jobs"), " / "), head, why, lived, pods, change.element);
  let detail = { pods: [], moments: [] }, seen = null, timer = 0, asked = "", closed = false;

  async function explain() {
    const written = store.scene.jobs.get(key)?.reason, asked = { what: "job", name: key, ...store.then() };
    const cause = written ? h("p", { class: "cause" }, written) : null;
    replace(why, card("Why", null, cause, empty("Running its next cycles in memory, to say more …")));
    try {
      const told = await ask("/api/explain", { ...asked, search: "no" });
      if (closed) return;
      replace(why, explained(told, again, told.answer.cause ? h("p", { class: "empty" }, "Looking for the smallest change that would start it …") : null));
      if (!told.answer.cause) return;
      try {
        const searched = await ask("/api/explain", asked);
        if (!closed) replace(why, explained(searched, again));
      } catch (problem) {
        if (!closed) replace(why, explained(told, again, h("p", { class: "problem" }, `The smallest change is not known: ${problem.message}`)));
      }
    } catch (problem) {
      if (!closed) replace(why, card("Why", again, cause, cause ? h("p", { class: "dim" }, "This is what was written on it; more cannot be said:") : null, h("p", { class: "problem" }, problem.message)));
    }
  }

  async function fetchPods() {
    try {
      detail = await ask("/api/job", { name: key, ...store.then() });
    } catch {
      detail = { pods: [], moments: [] };
    }
    if (!closed) drawPods();
  }

  function drawPods() {
    const job = store.scene.jobs.get(key);
    if (!job) return;
    replace(pods, card("Pods", csvButton(`pods-${job.title}`, () => [["pod", "phase", "node", "created", "placed", "started"], ...detail.pods.map((pod) => [pod.name, pod.phase, pod.node, ...[pod.created, pod.placed, pod.started].map((at) => (at ? absolute(at) : ""))])]),
      detail.pods.length ? [simple("Pods of this job", ["pod", "phase", "node", "asks for", "created", "placed", "started"], detail.pods.slice(0, PODS).map((pod) => [
        pod.name, [phase(pod.going ? "Terminating" : pod.phase)], pod.node ? nodeLink(pod.node) : "–", amounts(pod.request) || "–", time(pod.created), time(pod.placed), time(pod.started)])),
        detail.pods.length > PODS ? h("p", { class: "dim" }, `and ${counted(detail.pods.length - PODS, "more pod")}; CSV has all`) : null]
        : empty(`It has no pods ${store.past ? "at that moment" : "now"}. Its controller makes them when it is let in.`)));
    const moments = told(job, detail, store.scene.evictions);
    replace(lived, card("Life", pngButton(`life-${job.title}`, () => [["", lived.querySelector("svg")]]), h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Time line" }, life(moments, store.now())),
      h("details", {}, h("summary", {}, `${counted(moments.length, "moment")} as text`), h("ol", { class: "list" }, moments.map((each) => h("li", {}, time(each.at), ` ${each.what}`))))));
  }

  return {
    update(changed) {
      const job = store.scene.jobs.get(key);
      if (!job) {
        replace(head, h("h1", {}, key), empty(store.past ? "It is not there at that moment." : "There is no such job any more. It may have ended and been cleaned up; the time line at the top may still show it."));
        for (const each of [why, lived, pods]) replace(each);
        return;
      }
      if (job === seen && !changed.has("evictions")) return;
      const fresh = seen === null;
      seen = job;
      replace(head, h("h1", {}, `${job.namespace}/${job.title}`), h("p", { class: "facts" }, phase(job.phase), h("span", {}, "queue ", queueLink(job.queue)), h("span", {}, `${job.ready} of ${counted(job.members, "pod")} placed, ${job.minimum} needed`), job.nominated ? h("span", {}, `room is held for ${job.nominated}`) : null, job.restarts ? h("span", { class: "dim" }, `${counted(job.restarts, "pod")} made again`) : null,
        job.since !== null ? h("span", { class: "warm" }, "waits ", time(job.since, "wait")) : null, h("span", { class: "dim" }, "created ", time(job.created)), amounts(job.held) ? h("span", {}, `holds ${amounts(job.held)}`) : null,
        job.name !== job.title ? h("span", { class: "dim" }, `group ${job.name}`) : null));
      clearTimeout(timer);
      timer = setTimeout(fetchPods, fresh ? 0 : PAUSE);
      const standing = `${job.phase} ${job.reason}`;
      if (asked !== standing && (fresh || job.since === null)) {
        asked = standing;
        explain();
      }
    },
    close() {
      closed = true;
      clearTimeout(timer);
      change.close();
    },
  };
}

// What is known to have happened to a job, in its order.
function told(job, detail, evictions) {
  const moments = [{ at: job.created, what: "created", label: "created", state: "waits" }];
  const phases = { Inqueue: ["let in", "held"], Running: ["runs", "runs"], Completed: ["ended", "done"], Unknown: ["lost members", "waits"], Pending: ["waits again", "waits"], HeldRoom: ["room held", "held"], Restarted: ["pods made again", "held"] };
  for (const [at, name] of detail.moments) {
    const [label, state] = phases[name] || [name, ""];
    moments.push({ at, what: name === "HeldRoom" || name === "Restarted" ? label : `${label} (phase ${name})`, label, state });
  }
  const first = (field) => detail.pods.map((pod) => pod[field]).filter(Boolean).sort((a, b) => a - b);
  const created = first("created"), placed = first("placed"), started = first("started");
  if (created.length) moments.push({ at: created[0], what: `${counted(created.length, "pod")} made, the first then`, label: "pods made", state: "held" });
  if (placed.length) moments.push({ at: placed[0], what: `first of ${counted(placed.length, "pod")} placed`, label: "placed", state: "placed" });
  if (started.length) moments.push({ at: started[0], what: `first of ${counted(started.length, "pod")} started`, label: "runs", state: "runs" });
  const mine = new Set(detail.pods.map((pod) => pod.name));
  for (const each of evictions) {
    if (each.namespace === job.namespace && (each.victim === job.name || mine.has(each.pod))) {
      moments.push({ at: each.time, what: `${each.pod} evicted${each.claimant ? ` for ${each.claimant}` : ""}${each.action ? ` by ${each.action}` : ""}`, label: "evicted", bad: true, state: "waits" });
    }
  }
  const ranks = ["created", "let in", "pods made", "placed", "runs"];
  return moments.filter((each) => each.at).sort((a, b) => a.at - b.at || ranks.indexOf(a.label) - ranks.indexOf(b.label));
}

function explained({ answer, lines }, again, searching = null) {
  const tools = [copyButton(() => lines.join("\n")), again];
  const search = answer.search;
  const trials = search ? [...search.enough, ...search.notEnough] : [];
  return card("Why", tools,
    h("p", { class: "cause" }, answer.cause || (answer.explanation ? `It ${answer.explanation.state}.` : answer.refused || "You may not read what a scheduler reads; what is written on it stands below.")),
    search ? h("p", { class: "smallest" }, search.nothingToChange ? `Nothing to change: ${search.nothingToChange}` : search.smallest ? [h("b", {}, "Smallest change that would start it: "), search.smallest] : trials.length ? "No change that was tried would start it." : "Nothing to try: no object here could be changed so that it starts.") : null,
    searching,
    trials.length ? h("details", {}, h("summary", {}, `${counted(trials.length, "change")} that were tried`), simple("Changes that were tried", ["", "change", "then"], trials.map((trial) => [trial.enough ? h("span", { class: "chip good" }, "enough") : h("span", { class: "chip waits" }, "not enough"), trial.change, outcome(trial.verdict)]))) : null,
    h("details", {}, h("summary", {}, "Everything that explain says"), h("pre", { tabindex: "0" }, lines.join("\n"))),
    answer.notes.map((note) => h("p", { class: "dim" }, `note: ${note}`)),
    h("p", { class: "small dim" }, `as of ${answer.time}, with ${answer.configuration}, scheduler ${answer.schedulers.join(", ")}`));
}

function outcome(verdict) {
  if (verdict.standing === "waits") return verdict.reason || "it waits";
  if (verdict.standing === "is let in") return verdict.reason;
  const where = `${counted(verdict.placed, "pod")} on ${verdict.nodes.slice(0, 3).join(", ")}${verdict.nodes.length > 3 ? ` and ${verdict.nodes.length - 3} more` : ""}`;
  return verdict.evicted.length ? `${where}, once ${counted(verdict.evicted.length, "pod")} had to go` : where;
}
