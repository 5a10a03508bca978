// Creates elements. Text is never parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on"))
      element.addEventListener(name.slice(2), value);
    else
      element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined));
  return element;
}

/** Creates an HTML element. `on...` are listeners; null, undefined and false are skipped. */
export function h(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** Creates an SVG element, like `h`. */
export function s(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

export function section(id, title, ...children) {
  return h(
      "section", {id, "aria-labelledby": `${id}-title`}, h("h2", {id: `${id}-title`}, title),
      ...children);
}

export function soft(...children) { return h("p", {class: "soft"}, ...children); }

/** Creates a highlighted sentence. `kind`: "", "better", "worse" or "warning". */
export function verdict(kind, ...children) {
  return h("p", {class: `verdict ${kind}`.trim()}, ...children);
}

export function details(summary, open, ...children) {
  return h("details", {open}, h("summary", {}, summary), ...children);
}

/** Places elements beside each other if there is room. */
export function pair(...children) { return h("div", {class: "pair"}, ...children); }

/** Creates tiles of large values above their names, the first one larger. */
export function tiles(all) {
  return h(
      "div", {class: "tiles"},
      all.map(
          ([value, name]) => h("div", {class: "tile"}, h("b", {}, value), h("span", {}, name))));
}

/** Creates a label with its field. */
export function labelled(name, field, ...more) {
  return h("label", {}, h("span", {}, name, ...more), field);
}

export function select(name, options) {
  return h("select", {name}, options.map(([value, text]) => h("option", {value}, text)));
}
