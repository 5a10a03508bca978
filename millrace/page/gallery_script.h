// What galleries do in a browser.
#pragma once

#include <string_view>

namespace millrace::page {

inline constexpr std::string_view kGalleryScript = R"js(
"use strict";
for (const root of document.querySelectorAll("div.gallery")) {
  const FOUND = 0, ANNOTATED = 1;
  const data = JSON.parse(root.querySelector("script").textContent);
  const tools = root.querySelector(".tools"), list = root.querySelector(".cards"), count = root.querySelector(".count");
  const pictures = data.pictures.map((one, index) => ({
    ...one, index, item: list.children[index], card: list.children[index].firstElementChild,
    image: list.children[index].querySelector("img, .lost"),
    shapes: one.shapes.map(([kind, category, score, x, y, w, h, note, outline, foundAt]) =>
      ({ kind, category, score, x, y, w, h, note, outline, foundAt })),
  }));
  if (!pictures.length) continue;
  const shapes = pictures.flatMap(one => one.shapes);
  const has = kind => shapes.some(one => one.kind === kind);
  const both = has(FOUND) && has(ANNOTATED);
  const judged = both && shapes.some(one => one.note || one.foundAt >= 0);
  const nameOf = category => data.categories[category] ?? `class ${category}`;
  const hueOf = category => `hsl(${((35 + 137.508 * category) % 360).toFixed(0)} 90% 62%)`;
  const html = text => text.replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const number = value => String(Number(value.toPrecision(3)));

  // The tools: those that make a difference.
  const fields = {};
  function select(name, label, options) {
    const field = document.createElement("select");
    for (const [value, text] of options) field.append(new Option(text, value));
    add(name, label, field);
  }
  function add(name, label, field) {
    const around = document.createElement("label");
    around.append(label, field);
    field.name = name;
    fields[name] = field;
    tools.append(around);
  }
  if (both) select("show", "Show", [["beside", "found beside annotated"], ["over", "both in one picture"],
    ["found", "found"], ["annotated", "annotated"]]);
  if (data.categories.length > 1) {
    const used = new Map();
    for (const one of pictures)
      for (const category of new Set(one.shapes.map(shape => shape.category)))
        used.set(category, (used.get(category) ?? 0) + 1);
    select("category", "Class", [["", "all classes"], ...[...used.keys()].sort((a, b) => a - b)
      .map(category => [category, `${nameOf(category)} (${used.get(category)})`])]);
  }
  if (data.tags.length) {
    select("tag", "Only", [["", "all pictures"], ...data.tags.map((tag, i) =>
      [i, `${tag} (${pictures.filter(one => one.tags.includes(i)).length})`])]);
  }
  if (data.figures.length) {
    select("sort", "Sort by", [["", "as given"], ...data.figures.flatMap((name, i) =>
      [[`${i} -1`, `${name}, highest first`], [`${i} 1`, `${name}, lowest first`]])]);
  }
  if (judged) select("colour", "Colours", [["class", "by class"], ["verdict", "right and wrong"]]);
  if (has(FOUND)) {
    const field = document.createElement("input");
    Object.assign(field, { type: "range", min: 0, max: 1, step: 0.01, value: data.score });
    add("score", "Least score ", field);
    const output = document.createElement("output");
    field.before(output);
    fields.scoreText = output;
  }
  const sizes = document.createElement("input");
  Object.assign(sizes, { type: "range", min: 120, max: 480, step: 20, value: both ? 320 : 220 });
  add("size", "Size", sizes);
  tools.hidden = false;
  tools.addEventListener("submit", event => event.preventDefault());

  const threshold = () => fields.score ? Number(fields.score.value) : 0;
  const isMissed = shape => shape.kind === ANNOTATED && (shape.foundAt >= 0 ? shape.foundAt < Math.max(threshold(), 1e-9) : shape.note === "missed");

  /// The shapes that the tools leave.
  function visible(picture) {
    const category = fields.category ? fields.category.value : "";
    return picture.shapes.filter(one => (category === "" || one.category === Number(category)) &&
      (one.kind === ANNOTATED || one.score >= threshold()));
  }
  function colourOf(shape) {
    if (!fields.colour || fields.colour.value === "class") return hueOf(shape.category);
    if (shape.kind === ANNOTATED) return isMissed(shape) ? "#ff5a4f" : "#4fd18b";
    return shape.note ? "#ffb02e" : "#4fd18b";
  }
  function wordsOf(shape) {
    const notes = [];
    if (shape.kind === FOUND) notes.push(shape.score.toFixed(2));
    if (isMissed(shape)) notes.push("missed");
    else if (shape.note) notes.push(shape.note);
    return `${nameOf(shape.category)} ${notes.join(", ")}`.trim();
  }
  function pathOf(shape) {
    return shape.outline || `M${shape.x} ${shape.y}h${shape.w}v${shape.h}h${-shape.w}z`;
  }

  /// A picture's panes: its image once or twice, with shapes. With `unit`, pixels of the image to a
  /// pixel of the screen, also their names.
  function panes(picture, large) {
    const mode = fields.show ? fields.show.value : has(FOUND) ? "found" : "annotated";
    const kinds = { beside: [[FOUND], [ANNOTATED]], over: [[FOUND, ANNOTATED]], found: [[FOUND]], annotated: [[ANNOTATED]] }[mode];
    const shown = visible(picture);
    return kinds.map(wanted => {
      const pane = document.createElement("span"), image = picture.image.cloneNode();
      pane.className = "pane";
      pane.style.setProperty("--aspect", picture.w / picture.h);
      if (large) image.alt = `${picture.title}, ${wanted.map(kind => ["found", "annotated"][kind]).join(" and ")}`;
      const mine = shown.filter(one => wanted.includes(one.kind)).sort((a, b) => b.w * b.h - a.w * a.h);
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      svg.setAttribute("viewBox", `0 0 ${picture.w} ${picture.h}`);
      svg.setAttribute("preserveAspectRatio", "none");
      svg.setAttribute("aria-hidden", "true");
      svg.innerHTML = mine.map(shape => {
        const d = html(pathOf(shape)), box = shape.outline ? "" : " box", colour = colourOf(shape);
        const style = shape.kind === FOUND ? "found" : isMissed(shape) ? "missed" : wanted.length > 1 ? "annotated" : "";
        return `${large ? `<path class="casing" d="${d}"></path>` : ""}<path class="${style}${box}" stroke="${colour}" fill="${colour}" d="${d}"><title>${html(wordsOf(shape))}</title></path>`;
      }).join("");
      pane.append(image, svg);
      if (large) {
        const title = document.createElement("small");
        title.textContent = wanted.length > 1 ? "found, annotated dashed" : ["found", "annotated"][wanted[0]];
        pane.append(title);
        pane.shapes = mine;
      } else if (kinds.length > 1) {
        pane.title = ["found", "annotated"][wanted[0]];
      }
      return pane;
    });
  }

  // The grid. One card can be reached by the tabulator, the others by arrows.
  let order = pictures, current = pictures[0], enlarged = false;
  function place(picture, focus) {
    current.card.tabIndex = -1;
    current = picture;
    current.card.tabIndex = 0;
    if (focus) current.card.focus();
  }
  function update() {
    const category = fields.category ? fields.category.value : "", tag = fields.tag ? fields.tag.value : "";
    if (fields.scoreText) fields.scoreText.textContent = threshold().toFixed(2);
    const [figure, direction] = fields.sort && fields.sort.value ? fields.sort.value.split(" ").map(Number) : [-1, 0];
    list.style.setProperty("--card", `${sizes.value}px`);
    order = pictures.filter(one => (tag === "" || one.tags.includes(Number(tag))) && (category === "" || visible(one).length));
    const key = one => one.figures[figure] ?? Infinity * direction;
    if (direction) order.sort((a, b) => (key(a) === key(b) ? 0 : key(a) < key(b) ? -direction : direction) || a.index - b.index);
    const shown = new Set(order);
    for (const one of pictures) {
      one.item.hidden = !shown.has(one);
      if (!shown.has(one)) continue;
      one.card.querySelector(".panes").replaceChildren(...panes(one, false));
    }
    list.append(...order.map(one => one.item));
    count.textContent = `${order.length} of ${pictures.length} ${pictures.length === 1 ? "picture" : "pictures"}. Enter enlarges; arrow keys go on.`;
    if (order.length && !shown.has(current)) place(order[0], false);
  }
  let waits = false;
  tools.addEventListener("input", () => {
    if (!waits) requestAnimationFrame(() => { waits = false; update(); });
    waits = true;
  });
  for (const one of pictures) one.card.tabIndex = -1;
  place(current, false);
  list.addEventListener("focusin", event => {
    const picture = pictures.find(one => one.card === event.target);
    if (picture && !enlarged) place(picture, false);  // closing the larger view focuses where it was opened
  });
  list.addEventListener("keydown", event => {
    const at = order.indexOf(current);
    const above = order.filter(one => one.card.offsetTop === order[0].card.offsetTop).length;
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -above, ArrowDown: above, Home: -at, End: order.length - 1 - at };
    if (!(event.key in moves) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const to = order[at + moves[event.key]];
    if (to) place(to, true);
  });

  // The larger view.
  const view = document.createElement("dialog");
  view.className = "view";
  view.innerHTML = `<header><b></b><span class="soft"></span><button type="button">Previous</button>` +
    `<button type="button">Next</button><button type="button">Close</button></header>` +
    `<div class="body"><div class="panes"></div><p></p><ul></ul></div>`;
  root.append(view);
  const [previous, next, close] = view.querySelectorAll("button");
  function enlarge(picture) {
    place(picture, false);
    const at = order.indexOf(picture);
    view.setAttribute("aria-label", picture.title);
    view.querySelector("b").textContent = picture.title;
    view.querySelector(".soft").textContent = `${at + 1} of ${order.length}`;
    const figures = data.figures.map((name, i) => [name, picture.figures[i]]).filter(pair => pair[1] !== null)
      .map(([name, value]) => `${name} ${number(value)}`);
    view.querySelector("p").textContent = [figures.join(", "), picture.caption].filter(Boolean).join(" · ");
    view.querySelector(".panes").replaceChildren(...panes(picture, true));
    view.querySelector("ul").innerHTML = visible(picture).sort((a, b) => a.kind - b.kind || b.score - a.score)
      .map(one => `<li style="--c: ${colourOf(one)}">${both ? ["found", "annotated"][one.kind] + ": " : ""}${html(wordsOf(one))}</li>`).join("");
    enlarged = true;
    if (!view.open) view.showModal();
    label();
  }
  /// Names beside shapes, as large on the screen as other text.
  function label() {
    for (const pane of view.querySelectorAll(".pane")) {
      const svg = pane.querySelector("svg"), box = svg.viewBox.baseVal, width = svg.getBoundingClientRect().width;
      if (!width) continue;
      const size = 13 * box.width / width;
      for (const old of svg.querySelectorAll("text")) old.remove();
      svg.insertAdjacentHTML("beforeend", pane.shapes.map(one =>
        `<text font-size="${size}" stroke-width="${size / 4}" x="${one.x + size / 4}" y="${Math.max(one.y + size, size)}">${html(wordsOf(one))}</text>`).join(""));
    }
  }
  addEventListener("resize", () => { if (view.open) label(); });
  const step = by => { const to = order[order.indexOf(current) + by]; if (to) enlarge(to); };
  list.addEventListener("click", event => {
    const card = event.target.closest(".card");
    if (card) enlarge(pictures.find(one => one.card === card));
  });
  previous.addEventListener("click", () => step(-1));
  next.addEventListener("click", () => step(1));
  close.addEventListener("click", () => view.close());
  view.addEventListener("click", event => { if (event.target === view) view.close(); });
  view.addEventListener("close", () => { enlarged = false; current.card.focus(); });
  view.addEventListener("keydown", event => {
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 };
    if (event.key === "Home") enlarge(order[0]);
    else if (event.key === "End") enlarge(order[order.length - 1]);
    else if (event.key in moves) step(moves[event.key]);
    else return;
    event.preventDefault();
  });
  update();
}
)js";

}  // namespace millrace::page
