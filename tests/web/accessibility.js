// What keeps somebody from using a page by keys or with a screen reader, as far as a program can tell. Gives a list of findings.
(() => {
  const found = [];
  const seen = (element) => element.getClientRects().length > 0 && getComputedStyle(element).visibility !== "hidden";
  const named = (element) => {
    const by = element.getAttribute("aria-labelledby");
    const label = by ? by.split(/\s+/).map((id) => document.getElementById(id)?.textContent || "").join("") : element.getAttribute("aria-label");
    const own = [...(element.labels || [])].map((each) => each.textContent).join("");
    const images = [...element.querySelectorAll("img[alt]")].map((each) => each.alt).join("");
    return (label || own || element.textContent || images || element.title || "").trim();
  };
  const told = (element) => `${element.tagName.toLowerCase()}${element.id ? "#" + element.id : ""}${element.className && element.className.baseVal === undefined ? "." + element.className : ""} ${(element.textContent || "").slice(0, 40)}`;

  if (!document.documentElement.lang) found.push("the page names no language");
  if (!document.title) found.push("the page has no title");
  if (document.querySelectorAll("main").length !== 1) found.push("there is not one main part");
  const headings = [...document.querySelectorAll("h1, h2, h3, h4")].filter((each) => !each.closest("dialog"));
  if (headings.filter((each) => each.tagName === "H1").length !== 1) found.push(`there are ${headings.filter((each) => each.tagName === "H1").length} first headings`);
  headings.reduce((before, each) => {
    const level = Number(each.tagName[1]);
    if (level > before + 1) found.push(`heading ${told(each)} skips a level`);
    return level;
  }, 0);
  for (const each of document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0'], [role='img']")) {
    if (seen(each) && !named(each)) found.push(`${told(each)} has no name`);
  }
  for (const each of document.querySelectorAll("img")) if (each.getAttribute("alt") === null) found.push("an image has no alternative");
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  for (const id of new Set(ids)) if (ids.filter((each) => each === id).length > 1) found.push(`id ${id} is not unique`);
  for (const each of document.querySelectorAll("th")) if (!each.scope) found.push(`${told(each)} heads neither row nor column`);
  for (const each of document.querySelectorAll("a a, a button, button a, button button")) found.push(`${told(each)} stands inside another`);
  if (document.documentElement.scrollWidth > innerWidth + 1) found.push(`the page is ${document.documentElement.scrollWidth} wide in a window of ${innerWidth}`);

  const numbers = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const part = (each) => ((each /= 255) <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = numbers(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const judged = new Set();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !seen(element) || element.closest(".unseen, svg, noscript, option") || judged.has(element)) continue;
    judged.add(element);
    const style = getComputedStyle(element);
    const [a, b] = [light(numbers(style.color)), light(behind(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) found.push(`${told(element)} has a contrast of ${ratio.toFixed(2)}`);
  }
  return found;
})()
