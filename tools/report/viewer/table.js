// Tables that can be sorted by mouse or keyboard with the buttons in their column headers.

import {h} from "./dom.js";
import {DASH} from "./format.js";

const FILTERED_FROM = 20;  // minimum number of rows for a search field

/**
 * Creates a table. `columns`: {name, get(row), show(value, row), words}. `get` returns the value
 * to sort by: a number, a string, or null, which is sorted last. `show` returns a string or an
 * element; the default is the value. Columns with `words` are left-aligned. The first cell of a
 * row is its header. `sort`: initial order {column, down}. `search`: name of the rows in a field
 * that searches their first cells; empty = no field.
 */
export function table({columns, rows, sort = null, search = "", style = ""}) {
  const body = h("tbody");
  const heads = columns.map(
      (column, i) =>
          h("th", {
            scope: "col",
            class: column.words || i === 0 ? "left" : null,
          },
            h("button", {type: "button", onclick: () => sortBy(i)}, column.name)));
  const lines = rows.map((row) => ({row, line: lineOf(columns, row)}));
  let order = sort;
  let wanted = "";

  function sortBy(column) {
    const again = order && order.column === column;
    order = {column, down: again ? !order.down : !columns[column].words && column > 0};
    draw();
  }

  function draw() {
    heads.forEach((head, i) => {
      if (order && order.column === i)
        head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else
        head.removeAttribute("aria-sort");
    });
    const shown =
        lines.filter(({row}) => String(columns[0].get(row)).toLowerCase().includes(wanted));
    if (order)
      shown.sort(
          (a, b) => compare(
              columns[order.column].get(a.row), columns[order.column].get(b.row), order.down));
    body.replaceChildren(...shown.map(({line}) => line));
  }

  draw();
  const whole =
      h("div", {class: "scroll", tabindex: 0},
        h("table", {class: style || null}, h("thead", {}, h("tr", {}, heads)), body));
  if (!search || rows.length < FILTERED_FROM) return whole;
  const field = h("input", {
    type: "search",
    placeholder: `Find ${search}`,
    "aria-label": `Find ${search}`,
    oninput: () => {
      wanted = field.value.toLowerCase();
      draw();
    }
  });
  return h("div", {}, h("div", {class: "tools"}, field), whole);
}

function lineOf(columns, row) {
  return h("tr", {}, columns.map((column, i) => {
    const value = column.get(row);
    const shown = column.show ? column.show(value, row) : value ?? DASH;
    return i === 0 ? h("th", {scope: "row"}, shown) :
                     h("td", {class: column.words ? "left" : null}, shown);
  }));
}

function compare(a, b, down) {
  const missing = (value) => value === null || value === undefined || Number.isNaN(value);
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  const order = typeof a === "number" && typeof b === "number" ?
      a - b :
      String(a).localeCompare(String(b), "en", {numeric: true});
  return down ? -order : order;
}
