// Line charts. Dragging zooms, a slider sets the smoothing, and arrow keys show values.

import {exactAxis, linearAxis, logAxis, tickText} from "./axis.js";
import {h, labelled, s} from "./dom.js";
import {number} from "./format.js";

const HEIGHT = 260, LEFT = 56, RIGHT = 12, TOP = 10, BOTTOM = 40;  // pixels
const LEAST_DRAG = 8;      // minimum length of a drag, in pixels
const SMOOTHED_FROM = 12;  // minimum number of points for smoothing

/**
 * Creates charts that share their x axis, zoom and smoothing. A chart is {title, x, y, series,
 * zero, log, marks, xRange, yRange, factor}. A series is {name, points, colour, dash, opacity} with
 * points [x, y] in order of x; y is null if it is not finite. `zero`: unless false, the y axis
 * includes 0; `log`: a logarithmic axis can be selected; `factor`: multiplies the shown values.
 */
export function lineCharts(charts) {
  const drawn = charts.filter((chart) => chart.series.length > 0);
  if (drawn.length === 0) return null;
  const view = {range: null, smoothing: 0, logarithmic: false};
  const all = drawn.map((chart) => new LineChart(chart, view, () => update()));

  function update() {
    for (const one of all) one.draw();
  }

  const tools = [];
  if (drawn.some(
          (chart) =>
              !chart.xRange && chart.series.some((one) => one.points.length >= SMOOTHED_FROM))) {
    const field = h("input", {
      type: "range",
      name: "smoothing",
      min: 0,
      max: 0.99,
      step: 0.01,
      value: 0,
      oninput: () => {
        view.smoothing = Number(field.value);
        update();
      }
    });
    tools.push(labelled("Smoothing", field));
  }
  if (drawn.some((chart) => chart.log)) {
    const field = h("input", {
      type: "checkbox",
      name: "logarithmic",
      onchange: () => {
        view.logarithmic = field.checked;
        update();
      }
    });
    tools.push(labelled("Logarithmic", field));
  }
  return h(
      "div", {class: "charts"}, tools.length > 0 ? h("div", {class: "tools"}, tools) : null,
      h("div", {class: drawn.length > 1 ? "pair" : null}, all.map((one) => one.element)));
}

class LineChart {
  constructor(chart, view, changed) {
    Object.assign(this, {chart, view, changed});
    this.factor = chart.factor ?? 1;
    this.series = chart.series.map(
        (one) => ({
          ...one,
          hidden: false,
          points: one.points.map(([x, y]) => [x, y === null ? null : y * this.factor]),
        }));
    this.steps =
        [...new Set(this.series.flatMap((one) => one.points.map((point) => point[0])))].sort(
            (a, b) => a - b);
    this.cursor = null;  // an index in `steps`
    this.width = 0;
    this.svg =
        s("svg",
          {class: "plot", height: HEIGHT, tabindex: 0, role: "img", "aria-label": this.about()});
    this.output = h("output", {"aria-live": "polite"});
    this.whole =
        h("button", {type: "button", hidden: true, onclick: () => this.zoom(null)}, "Whole range");
    this.element =
        h("figure", {class: "lines"},
          h("figcaption", {class: "title"}, chart.title,
            chart.y ? h("span", {class: "soft"}, ` ${chart.y}`) : null, this.whole),
          this.svg, this.legend(), this.output);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.element);
  }

  about() {
    return this.chart.title +
        ". Arrow keys show values, plus and minus zoom, Escape shows the whole range.";
  }

  legend() {
    if (this.series.length < 2) return null;
    return h("ul", {class: "legend"}, this.series.map((one) => {
      const button =
          h("button", {
            type: "button",
            "aria-pressed": "true",
            onclick: () => {
              one.hidden = !one.hidden;
              button.setAttribute("aria-pressed", String(!one.hidden));
              this.draw();
            }
          },
            s("svg", {viewBox: "0 0 26 8", "aria-hidden": "true"},
              s("line",
                {class: style(one), x1: 0, y1: 4, x2: 26, y2: 4, "stroke-opacity": one.opacity})),
            one.name);
      return h("li", {}, button);
    }));
  }

  resize() {
    const width = Math.floor(this.element.clientWidth);
    if (width === 0 || width === this.width) return;
    this.width = width;
    this.draw();
  }

  /** Returns the points of a series, smoothed if smoothing is selected. */
  pointsOf(one) {
    return this.view.smoothing > 0 && !this.chart.xRange ?
        smoothed(one.points, this.view.smoothing) :
        one.points;
  }

  axes() {
    const {chart, view} = this;
    const [first, last] = chart.xRange ?? [0, this.steps.at(-1) ?? 1];
    const [from, to] = view.range ?? [first, last];
    const x = view.range ? exactAxis(from, to) :
        chart.xRange     ? linearAxis(first, last) :
                           exactAxis(first, last > first ? last : first + 1);
    if (chart.yRange) return {x, y: linearAxis(...chart.yRange)};
    let low = Infinity, high = -Infinity, positive = Infinity;
    for (const one of this.series) {
      if (one.hidden) continue;
      for (const [at, value] of this.pointsOf(one)) {
        if (value === null || at < from || at > to) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
        if (value > 0) positive = Math.min(positive, value);
      }
    }
    if (view.logarithmic && chart.log && positive < Infinity)
      return {x, y: logAxis(positive, high)};
    if (low > high) return {x, y: linearAxis(0, 1)};
    return {
      x,
      y: linearAxis(
          chart.zero === false ? low : Math.min(0, low),
          chart.zero === false ? high : Math.max(0, high))
    };
  }

  draw() {
    this.whole.hidden = this.view.range === null;
    if (this.width === 0) return;
    const {x, y} = this.axes();
    const field = {width: this.width - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM};
    this.place = {
      x,
      y,
      field,
      px: (value) => field.width * x.at(value),
      py: (value) => field.height * (1 - y.at(value))
    };
    this.svg.setAttribute("width", this.width);
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    const curves = s("svg", {x: LEFT, y: TOP, width: field.width, height: field.height});
    for (const one of this.series) {
      if (one.hidden) continue;
      const points = this.pointsOf(one);
      if (points !== one.points) curves.append(this.curve(one, one.points, 0.2));
      curves.append(this.curve(one, points, one.opacity ?? 1));
    }
    for (const mark of this.chart.marks ?? [])
      curves.append(
          s("circle", {class: "best", r: 5, cx: this.place.px(mark.x), cy: this.place.py(mark.y)},
            s("title", {}, mark.title)));
    this.over = s("g", {transform: `translate(${LEFT} ${TOP})`});
    this.svg.replaceChildren(...this.grid(), curves, this.over);
    this.drawCursor();
  }

  grid() {
    const {x, y, field, px, py} = this.place;
    const parts = [];
    for (const tick of y.ticks) {
      const at = TOP + py(tick);
      parts.push(
          s("line", {
            class: tick === 0 ? "axis" : "grid",
            x1: LEFT,
            x2: LEFT + field.width,
            y1: at,
            y2: at
          }),
          s("text", {class: "tick end", x: LEFT - 6, y: at + 4}, tickText(tick)));
    }
    for (const tick of x.ticks) {
      const at = LEFT + px(tick);
      parts.push(
          s("line", {class: "grid", x1: at, x2: at, y1: TOP, y2: TOP + field.height}),
          s("text", {
            class: at > this.width - 30 ? "tick end" : "tick middle",
            x: Math.min(at, this.width - 2),
            y: TOP + field.height + 16
          },
            tickText(tick)));
    }
    parts.push(
        s("text", {class: "name middle", x: LEFT + field.width / 2, y: HEIGHT - 6}, this.chart.x));
    return parts;
  }

  /** Draws a line with gaps at values that the axis cannot show; isolated points are dots. */
  curve(one, points, opacity) {
    const {y, px, py} = this.place;
    let path = "", length = 0;
    const lone = [];
    points.forEach(([at, value], i) => {
      if (value === null || !y.shows(value)) {
        length = 0;
        return;
      }
      path += `${length++ === 0 ? "M" : "L"}${px(at).toFixed(1)} ${py(value).toFixed(1)}`;
      const next = points[i + 1];
      if (length === 1 && (!next || next[1] === null || !y.shows(next[1])))
        lone.push(s("circle", {class: style(one), r: 3, cx: px(at), cy: py(value)}));
    });
    return s(
        "g", {opacity},
        s("path", {class: `curve ${style(one)}`, d: path}, s("title", {}, one.name)), lone);
  }

  drawCursor() {
    if (this.cursor === null) {
      this.over.replaceChildren();
      this.output.textContent = "";
      return;
    }
    const {x, y, field, px, py} = this.place;
    const step = this.steps[this.cursor], at = px(step);
    const marks = [s("line", {class: "cursor", x1: at, x2: at, y1: 0, y2: field.height})];
    const words = [];
    for (const one of this.series) {
      const points = this.pointsOf(one);
      if (one.hidden || points.length === 0 || step < points[0][0] || step > points.at(-1)[0])
        continue;
      const value = points[nearest(points, step, (point) => point[0])][1];
      words.push(`${one.name} ${value === null ? "not finite" : number(value)}`);
      if (value !== null && y.shows(value) && step >= x.low && step <= x.high)
        marks.push(s("circle", {class: style(one), cx: at, cy: py(value), r: 3.5}));
    }
    this.over.replaceChildren(...marks);
    this.output.textContent = `${this.chart.x} ${number(step, 7)}: ${words.join(" · ")}`;
  }

  listen() {
    let from = null;  // start of a drag, in pixels of the field
    const along = (event) => {
      const box = this.svg.getBoundingClientRect();
      return Math.min(Math.max(event.clientX - box.left - LEFT, 0), this.place.field.width);
    };
    const valueAt = (pixels) => this.place.x.value(pixels / this.place.field.width);
    const end = () => {
      from = null;
      this.drawCursor();
    };
    this.svg.addEventListener("pointerdown", (event) => {
      from = along(event);
      this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener("pointermove", (event) => {
      const at = along(event);
      if (from !== null && Math.abs(at - from) >= LEAST_DRAG) {
        this.over.replaceChildren(s("rect", {
          class: "drag",
          x: Math.min(at, from),
          width: Math.abs(at - from),
          y: 0,
          height: this.place.field.height
        }));
        return;
      }
      this.moveTo(nearest(this.steps, valueAt(at), (step) => step));
    });
    this.svg.addEventListener("pointerup", (event) => {
      const at = along(event);
      const isDrag = from !== null && Math.abs(at - from) >= LEAST_DRAG;
      const range = isDrag ? [valueAt(Math.min(at, from)), valueAt(Math.max(at, from))] : null;
      end();
      if (range) this.zoom(range);
    });
    this.svg.addEventListener("pointercancel", end);
    this.svg.addEventListener("pointerleave", () => {
      if (from === null) this.moveTo(null);
    });
    this.svg.addEventListener("dblclick", () => this.zoom(null));
    this.svg.addEventListener("blur", () => this.moveTo(null));
    this.svg.addEventListener("keydown", (event) => {
      if (this.key(event.key)) event.preventDefault();
    });
  }

  /** Handles a key. Returns false if the chart does not use it. */
  key(key) {
    const last = this.steps.length - 1, at = this.cursor ?? -1;
    const far = Math.max(1, Math.round(this.steps.length / 10));
    const moves = {
      ArrowLeft: at - 1,
      ArrowRight: at + 1,
      PageDown: at - far,
      PageUp: at + far,
      Home: 0,
      End: last
    };
    if (key in moves)
      this.moveTo(Math.min(Math.max(moves[key], 0), last));
    else if (key === "+" || key === "-")
      this.zoomBy(key === "+" ? 1 / 2 : 2);
    else if (key === "Escape" && this.cursor !== null)
      this.moveTo(null);
    else if (key === "Escape" && this.view.range)
      this.zoom(null);
    else
      return false;
    return true;
  }

  moveTo(cursor) {
    this.cursor = cursor;
    if (this.place) this.drawCursor();
  }

  zoom(range) {
    this.view.range = range;
    this.changed();
  }

  zoomBy(factor) {
    const {low, high} = this.place.x, last = this.chart.xRange?.[1] ?? this.steps.at(-1);
    const middle = this.cursor === null ? (low + high) / 2 : this.steps[this.cursor];
    const half = (high - low) * factor / 2;
    this.zoom(
        half * 2 >= last ? null : [Math.max(0, middle - half), Math.min(last, middle + half)]);
  }
}

function style({colour = 0, dash = 0}) { return `c${colour % 8} d${dash % 4}`; }

/** Returns the exponential moving average, corrected for its initial bias. */
function smoothed(points, weight) {
  let sum = 0, total = 0;
  return points.map(([x, y]) => {
    if (y === null) return [x, null];
    sum = weight * sum + (1 - weight) * y;
    total = weight * total + (1 - weight);
    return [x, sum / total];
  });
}

/** Returns the index of the item nearest to a value. */
function nearest(items, value, of) {
  let low = 0, high = items.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (of(items[middle]) < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low > 0 && value - of(items[low - 1]) < of(items[low]) - value ? low - 1 : low;
}
