// Bars, histograms, intervals and heat maps.

import {linearAxis, roundUp, tickText} from "./axis.js";
import {h, s} from "./dom.js";
import {change} from "./format.js";

/** Creates a bar chart of rows { name, value, text, note, other }; the longest is full width. */
export function bars(rows, about) {
  if (rows.length === 0) return null;
  const most = Math.max(...rows.map((row) => row.value)) || 1;
  return h(
      "div", {class: "bars", role: "table", "aria-label": about},
      rows.map(
          (row) =>
              h("div", {role: "row"}, h("span", {role: "rowheader"}, row.name),
                h("span", {class: "track", "aria-hidden": "true"}, h("span", {
                    class: row.other ? "bar other" : "bar",
                    style: `width: ${(100 * row.value / most).toFixed(1)}%`
                  })),
                h("b", {role: "cell"}, row.text ?? tickText(row.value)),
                h("span", {class: "note", role: "cell"}, row.note ?? ""))));
}

function drawing(width, height, about, ...children) {
  return s(
      "svg",
      {class: "chart", width, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": about},
      ...children);
}

/** Creates a histogram; counts[i] belongs to the range from edges[i] to edges[i + 1]. */
export function histogram({edges, counts, unit, about}) {
  const left = 46, top = 10, width = 400, height = 150;
  const axis = linearAxis(0, Math.max(1, ...counts), 2);
  const step = width / counts.length;
  const y = (value) => top + height * (1 - axis.at(value));
  const every = Math.max(1, Math.ceil(edges.length / 8));
  return drawing(
      left + width + 16, top + height + 40, about,
      axis.ticks.map(
          (tick) =>
              [s("line", {
                 class: tick === 0 ? "axis" : "grid",
                 x1: left,
                 x2: left + width,
                 y1: y(tick),
                 y2: y(tick)
               }),
               s("text", {class: "tick end", x: left - 6, y: y(tick) + 4}, tickText(tick))]),
      counts.map(
          (count, i) =>
              s("rect", {
                class: "bar",
                x: left + step * i + 0.5,
                y: y(count),
                width: Math.max(step - 1, 0.5),
                height: top + height - y(count)
              },
                s("title", {}, `${tickText(edges[i])} to ${tickText(edges[i + 1])}: ${count}`))),
      edges.map(
          (edge, i) => i % every ?
              null :
              s("text", {class: "tick middle", x: left + step * i, y: top + height + 16},
                String(Number(edge.toPrecision(3))))),
      s("text", {class: "name middle", x: left + width / 2, y: top + height + 34}, unit));
}

/** Returns "better", "worse" or "unsure" for the confidence interval of a difference. */
export function leaning({low, high}) { return low > 0 ? "better" : high < 0 ? "worse" : "unsure"; }

/** Creates a chart of differences between fractions: rows { name, value, low, high }. */
export function intervals(rows, about) {
  const label = 150, field = 430, row = 20;
  const end = roundUp(Math.max(
      0.01,
      ...rows.flatMap(({low, high}) => [Math.abs(low), Math.abs(high)]).filter(Number.isFinite)));
  const x = (value) => label + field * (value + end) / (2 * end);
  const height = row * (rows.length + 2);
  return drawing(
      label + field + 70, height, about,
      [-end, -end / 2, 0, end / 2, end].map(
          (value) =>
              [s("line", {
                 class: value === 0 ? "axis" : "grid",
                 x1: x(value),
                 x2: x(value),
                 y1: row,
                 y2: height - row
               }),
               s("text", {class: "tick middle", x: x(value), y: 12},
                 value === 0 ? "0" : change(value, 0))]),
      rows.map((one, i) => {
        const y = row * (i + 1.5), style = leaning(one);
        return [
          s("text", {class: "label end", x: label - 8, y: y + 4}, shortened(one.name)),
          s("line", {class: style, x1: x(one.low), x2: x(one.high), y1: y, y2: y}),
          s("circle", {class: style, cx: x(one.value), cy: y, r: 4}, s("title", {}, one.name)),
          s("text", {class: "value end", x: label + field + 66, y: y + 4}, change(one.value))
        ];
      }));
}

function shortened(name, most = 22) {
  return name.length > most ? `${name.slice(0, most - 1)}…` : name;
}

/** Creates rows with a dot per value, mean and interval: {name, values, mean, low, high}. */
export function dots(rows, unit) {
  const left = 20, width = 640, row = 58, top = 8;
  const known = rows.flatMap(({values, low, high}) => [...values, low, high])
                    .filter((value) => value !== null);
  const axis = linearAxis(Math.min(...known), Math.max(...known));
  const x = (value) => left + width * axis.at(value), bottom = top + row * rows.length;
  return drawing(
      left + width + 30, bottom + 44, unit,
      axis.ticks.map(
          (tick) =>
              [s("line", {class: "grid", x1: x(tick), x2: x(tick), y1: top, y2: bottom}),
               s("text", {class: "tick middle", x: x(tick), y: bottom + 16},
                 tickText(100 * tick))]),
      s("text", {class: "name middle", x: left + width / 2, y: bottom + 36}, unit),
      rows.map((one, i) => {
        const y = top + row * i + 38;
        return [
          s("text", {class: "label", x: left, y: y - 18}, one.name),
          one.low === null ?
              null :
              s("line", {class: "unsure", x1: x(one.low), x2: x(one.high), y1: y, y2: y}),
          one.low === null ?
              null :
              s("line", {class: "unsure", x1: x(one.mean), x2: x(one.mean), y1: y - 9, y2: y + 9}),
          one.values.map(
              (value) =>
                  s("circle", {class: `c${i % 8}`, cx: x(value), cy: y, r: 5, "fill-opacity": 0.75},
                    s("title", {}, (100 * value).toFixed(2))))
        ];
      }));
}

/** Creates a small curve of fractions without axes, with `most` at the top. */
export function spark(values, most = Math.max(0.01, ...values)) {
  const points = values.map((value, i) => {
    const x = values.length === 1 ? 25 : 50 * i / (values.length - 1);
    return `${x.toFixed(1)},${(17 - 16 * Math.max(0, value) / most).toFixed(1)}`;
  });
  return s(
      "svg", {class: "small", viewBox: "0 0 50 18", "aria-hidden": "true"},
      s("polyline", {points: points.join(" ")}));
}

/** Creates a bar for a fraction, with its interval if it is known. */
export function shareBar(share, interval = null) {
  const whisker = interval && Number.isFinite(interval.low) ?
      s("line", {class: "whisker", x1: 100 * interval.low, x2: 100 * interval.high, y1: 6, y2: 6}) :
      null;
  return s(
      "svg", {class: "ap", viewBox: "0 0 100 12", "aria-hidden": "true"},
      s("rect", {class: "track", width: 100, height: 8, y: 2}),
      s("rect", {class: "bar", width: 100 * Math.max(0, share), height: 8, y: 2}), whisker);
}

/**
 * Creates a square matrix of counts with named rows and columns, coloured by the fraction of the
 * row's sum; the diagonal is correct. Arrow keys move from cell to cell;
 * `open(row, column)` is called for a selected cell.
 */
export function heatMap(names, counts, open) {
  const last = names.length - 1;
  const cells = [];
  const rows = counts.map((row, r) => {
    const sum = row.reduce((a, b) => a + b, 0);
    cells.push(row.map((count, c) => cell(count, sum, r, c)));
    return h(
        "tr", {}, h("th", {scope: "row", title: names[r]}, h("span", {}, names[r])),
        cells[r].map((one) => h("td", {}, one)));
  });

  function cell(count, sum, r, c) {
    const share = sum > 0 ? count / sum : 0;
    const about = `${names[r]} as ${names[c]}: ${count} (${(100 * share).toFixed(1)} %)`;
    const strength = count === 0 ? 0 : 0.08 + 0.92 * Math.sqrt(share);
    return h(
        "button", {
          type: "button",
          tabindex: r === 0 && c === 0 ? 0 : -1,
          title: about,
          "aria-label": about,
          class: `${r === c && r < last ? "right" : "wrong"}${strength > 0.55 ? " strong" : ""}`,
          style: `--strength: ${strength.toFixed(3)}`,
          onclick: () => open(r, c),
          onkeydown: (event) => {
            const [down, across] = {
              ArrowLeft: [0, -1],
              ArrowRight: [0, 1],
              ArrowUp: [-1, 0],
              ArrowDown: [1, 0]
            }[event.key] ??
                [0, 0];
            const next = cells[r + down]?.[c + across];
            if (!next || next === event.target) return;
            event.preventDefault();
            event.target.tabIndex = -1;
            next.tabIndex = 0;
            next.focus();
          }
        },
        count > 0 ? String(count) : "");
  }

  return h(
      "div", {class: "scroll"},
      h("table", {class: `heat${names.length > 24 ? " dense" : ""}`},
        h("thead", {},
          h("tr", {}, h("th"),
            names.map((name) => h("th", {scope: "col", title: name}, h("span", {}, name))))),
        h("tbody", {}, rows)));
}
