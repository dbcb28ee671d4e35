// The configuration in force and what its check says; a file that is dropped here is compared with it on the cluster as it is.

import { card, copyButton, empty, h, replace } from "./dom.js";
import { ask, post } from "./link.js";
import { compared } from "./whatif.js";
import { counted, time } from "./words.js";

const LARGEST = 500000;

export function policy(root, store) {
  const shown = h("div", { "aria-live": "polite" }, empty("Reading the configuration …"));
  const result = h("div", { "aria-live": "polite" });
  const file = h("input", { type: "file", accept: ".yaml,.yml,.json,.conf", "aria-label": "Configuration to compare" });
  const drop = h("div", { class: "drop" }, h("p", {}, "Drop a configuration here, or choose one, to see what it would decide differently on this cluster: "), file);
  let closed = false;

  async function compare(chosen) {
    if (chosen.size > LARGEST) return replace(result, h("p", { class: "problem" }, `${chosen.name} has ${chosen.size} bytes; a configuration has at most ${LARGEST}.`));
    replace(result, empty(`Simulating the cluster with the configuration in force and with ${chosen.name} …`));
    try {
      const found = await post("/api/what-if", { type: "what-if", config: await chosen.text() }, store.then());
      if (!closed) replace(result, compared(found));
    } catch (problem) {
      if (!closed) replace(result, h("pre", { class: "problem", tabindex: "0" }, problem.message));
    }
    return undefined;
  }
  file.addEventListener("change", () => file.files.length && compare(file.files[0]));
  drop.addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files.length) compare(event.dataTransfer.files[0]);
  });
  root.append(h("h1", {}, "Policy"), shown, card("Compare", null, drop, result));

  (async () => {
    try {
      const found = await ask("/api/policy", store.then());
      if (closed) return;
      replace(shown, card("In force", copyButton(() => found.text),
        h("p", { class: "facts" }, h("span", {}, `from ${found.source}`), h("span", {}, `scheduler ${found.schedulers.join(", ")}`), h("span", { class: "dim" }, found.since ? ["since ", time(found.since)] : "since when is not known here")),
        found.given && store.past ? h("p", { class: "dim" }, "The page was started with this file (--config): every moment is shown and explained with the file as it is now.") : null,
        h("p", {}, "Actions, in their order: ", found.actions.map((each) => [h("span", { class: "chip" }, each), " "])),
        h("ol", { class: "list numbered" }, found.tiers.map((tier) => h("li", {}, tier.map((each) => [h("span", { class: "chip" }, each), " "])))),
        found.warnings.length ? h("ul", { class: "list" }, found.warnings.map((each) => h("li", { class: "bad" }, each))) : h("p", { class: "good" }, "Its check finds nothing wrong."),
        found.leftOut.length ? h("p", { class: "warm" }, `Explained without ${found.leftOut.join(", ")}, not provided here.`) : null,
        h("details", { open: true }, h("summary", {}, `${counted(found.text.split("\n").length - 1, "line")} as they come to`), h("pre", { tabindex: "0" }, found.text))));
    } catch (problem) {
      if (!closed) replace(shown, card("In force", null, h("p", { class: "problem" }, problem.message)));
    }
  })();
  return { update() {}, close: () => (closed = true) };
}
