// What a change would do, rehearsed in memory and never applied: a node drained, a manifest pasted, another configuration.

import { card, copyButton, h, replace } from "./dom.js";
import { post } from "./link.js";
import { simple } from "./table.js";
import { counted } from "./words.js";

export function whatIf(store, { job, node }) {
  const result = h("div", { "aria-live": "polite" });
  let closed = false;
  const run = async (question) => {
    replace(result, h("p", { class: "empty" }, "Simulating the cluster twice, as it is and with the change, until nothing more happens …"));
    try {
      const found = await post("/api/what-if", question, store.then());
      if (!closed) replace(result, compared(found));
    } catch (problem) {
      if (!closed) replace(result, h("p", { class: "problem" }, problem.message));
    }
  };
  const parts = [];
  if (node) {
    const button = h("button", { type: "button" }, `What if ${node} were drained?`);
    button.addEventListener("click", () => run({ type: "what-if", drain: [node] }));
    parts.push(h("p", {}, button));
  } else {
    const drain = h("input", { type: "text", placeholder: "name of a node", "aria-label": "Node to drain", spellcheck: "false" });
    const drained = h("form", { class: "line" }, h("label", {}, "Drain "), drain, h("button", { type: "submit" }, "What if"));
    drained.addEventListener("submit", (event) => {
      event.preventDefault();
      if (drain.value.trim()) run({ type: "what-if", drain: [drain.value.trim()] });
    });
    parts.push(drained);
  }
  const text = h("textarea", { rows: "6", placeholder: "apiVersion: …", "aria-label": "Manifests to apply", spellcheck: "false" });
  const pasted = h("form", {}, h("p", {}, h("label", {}, "Or paste manifests that would be applied, such as the job or its queue as you would change it:")), text, h("p", {}, h("button", { type: "submit" }, "What if")));
  pasted.addEventListener("submit", (event) => {
    event.preventDefault();
    if (text.value.trim()) run({ type: "what-if", manifests: text.value });
  });
  parts.push(job || node ? h("details", {}, h("summary", {}, "Manifests"), pasted) : pasted);
  return { element: card("What if", null, h("p", { class: "dim" }, `The change is rehearsed in a process of its own${store.past ? ", on the cluster as it was then" : ""}. Nothing is written to the cluster.`), parts, result), run, close: () => (closed = true) };
}

const fares = (outcome) => {
  if (!outcome.pods) return outcome.standing;
  const gone = outcome.evicted.length ? `, ${outcome.evicted.length} evicted` : "";
  return `${outcome.standing} (${outcome.placed} of ${outcome.pods})${gone}`;
};

export function compared({ comparison, lines }) {
  return [
    h("p", { class: "smallest" }, lines[lines.length - 1], " ", copyButton(() => lines.join("\n"))),
    comparison.jobs.length ? simple("Jobs that fare differently", ["job", "queue", "before", "after", "why"], comparison.jobs.slice(0, 100).map((each) => [each.job, each.after.queue || each.before.queue, fares(each.before), fares(each.after), each.after.reason])) : null,
    comparison.jobs.length > 100 ? h("p", { class: "dim" }, `and ${counted(comparison.jobs.length - 100, "more job")}`) : null,
    comparison.queues.length ? simple("Queues that hold something else", ["queue", "resource", "before", "after"], comparison.queues.map((each) => [each.queue, each.resource, each.before, each.after])) : null,
  ];
}
