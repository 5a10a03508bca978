// What line charts do in a browser: a cursor and the values at it.
#pragma once

#include <string_view>

namespace millrace::page {

inline constexpr std::string_view kChartScript = R"js(
"use strict";
for (const figure of document.querySelectorAll("figure.lines")) {
  const series = JSON.parse(figure.dataset.series).map(({ name, points }) => {
    const pairs = [];
    for (let i = 0; i < points.length; i += 2) pairs.push([points[i], points[i + 1]]);
    return { name, pairs };
  });
  const steps = [...new Set(series.flatMap(one => one.pairs.map(pair => pair[0])))].sort((a, b) => a - b);
  const output = figure.querySelector("output");
  const colours = [...figure.querySelectorAll(".legend line")].map(line => line.classList[0]);
  const text = value => value === null ? "not finite" : String(Number(value.toPrecision(4)));

  /// The position of the step nearest to `at`.
  function nearest(list, at, key) {
    let low = 0, high = list.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (key(list[middle]) < at) low = middle + 1; else high = middle;
    }
    return low > 0 && at - key(list[low - 1]) < key(list[low]) - at ? low - 1 : low;
  }

  for (const svg of figure.querySelectorAll("svg.plot")) {
    const [x0, x1] = svg.dataset.x.split(" ").map(Number);
    const [y0, y1, logarithmic] = svg.dataset.y.split(" ").map(Number);
    const box = svg.viewBox.baseVal, left = 56, top = 12, width = box.width - 68, height = box.height - 56;
    const placeX = x => left + width * (x - x0) / (x1 - x0);
    const placeY = y => top + height * (1 - (logarithmic ? Math.log(y / y0) / Math.log(y1 / y0) : (y - y0) / (y1 - y0)));
    const marks = document.createElementNS("http://www.w3.org/2000/svg", "g");
    svg.append(marks);
    let at = -1;

    function show(index) {
      at = Math.max(0, Math.min(steps.length - 1, index));
      const step = steps[at], words = [], x = placeX(step).toFixed(1);
      let drawn = `<line class="cursor" x1="${x}" x2="${x}" y1="${top}" y2="${top + height}"></line>`;
      series.forEach(({ name, pairs }, i) => {
        if (!pairs.length || step < pairs[0][0] || step > pairs[pairs.length - 1][0]) return;
        const value = pairs[nearest(pairs, step, pair => pair[0])][1];
        words.push(`${name} ${text(value)}`);
        if (value !== null && !(logarithmic && value <= 0))
          drawn += `<circle class="${colours[i]}" cx="${x}" cy="${placeY(value).toFixed(1)}" r="3.5"></circle>`;
      });
      marks.innerHTML = drawn;
      output.textContent = `${figure.dataset.xName} ${text(step)}: ${words.join(" · ")}`;
    }
    function clear() { marks.innerHTML = ""; output.textContent = ""; at = -1; }

    svg.addEventListener("pointermove", event => {
      const place = svg.getBoundingClientRect();
      const x = (event.clientX - place.left) * box.width / place.width;
      show(nearest(steps, x0 + (x - left) / width * (x1 - x0), step => step));
    });
    svg.addEventListener("pointerleave", clear);
    svg.addEventListener("blur", clear);
    svg.addEventListener("keydown", event => {
      const far = Math.max(1, Math.round(steps.length / 10));
      const moves = { ArrowLeft: -1, ArrowRight: 1, PageDown: -far, PageUp: far };
      if (event.key === "Escape") return clear();
      if (event.key === "Home") show(0);
      else if (event.key === "End") show(steps.length - 1);
      else if (event.key in moves) show(at < 0 ? 0 : at + moves[event.key]);
      else return;
      event.preventDefault();
    });
  }
}
)js";

}  // namespace millrace::page
