// How pages and their drawings look.
#pragma once

#include <string_view>

namespace millrace::page {

inline constexpr std::string_view kPageStyle = R"css(
:root { color-scheme: light dark; --ground: #ffffff; --raised: #f5f7f9; --ink: #171a1f; --soft: #5d6875;
  --line: #dde2e8; --blue: #2566b8; --orange: #c65d12; --green: #1b7f52; --red: #b53a3a; --grey: #8a94a0;
  --s0: #2566b8; --s1: #c65d12; --s2: #1b7f52; --s3: #8a3fa8; --s4: #b53a3a; --s5: #2b8a9b; --s6: #8a6a10; --s7: #6b7480; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14171b; --raised: #1d2127; --ink: #e6e9ed; --soft: #98a3b0; --line: #2f353d; --blue: #6aa5ec;
    --orange: #f0954c; --green: #55bf8c; --red: #ec7a7a; --grey: #7c8794;
    --s0: #6aa5ec; --s1: #f0954c; --s2: #55bf8c; --s3: #c98be6; --s4: #ec7a7a; --s5: #66c7d8; --s6: #d9b450; --s7: #a3adb9; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 19px; margin: 48px 0 4px; }
h3 { font-size: 15px; margin: 24px 0 4px; }
p { margin: 0 0 12px; max-width: 74ch; }
a { color: var(--blue); }
code { font: 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { background: var(--raised); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; overflow-x: auto;
  font: 13px/1.5 ui-monospace, monospace; }
nav { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 12px 0; }
footer { margin-top: 48px; padding-top: 12px; border-top: 1px solid var(--line); color: var(--soft); font-size: 13px; }
summary { cursor: pointer; }
:focus-visible { outline: 2px solid var(--blue); outline-offset: 2px; }
.soft { color: var(--soft); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(112px, 1fr)); gap: 10px; margin: 20px 0; }
.tile { background: var(--raised); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; }
.tile b { display: block; font-size: 24px; line-height: 1.25; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.tile.first { grid-column: span 2; } .tile.first b { font-size: 34px; }
.tile span { color: var(--soft); font-size: 13px; }
.verdict { border-left: 4px solid var(--grey); background: var(--raised); padding: 12px 16px; margin: 12px 0; }
.verdict.better { border-color: var(--green); } .verdict.worse { border-color: var(--red); }
.verdict.warning { border-color: var(--orange); }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 24px; }
figure { margin: 12px 0; } figcaption { color: var(--soft); font-size: 13px; }
figcaption.title { color: var(--ink); font-weight: 600; font-size: 14px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 8px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
table.narrow { max-width: 560px; }
table.wrapped td { white-space: normal; overflow-wrap: anywhere; vertical-align: top; }
thead th { position: sticky; top: 0; background: var(--ground); color: var(--soft); font-weight: 600; }
th:first-child, td:first-child, .left { text-align: left; }
tbody th { font-weight: 600; }
td.better { color: var(--green); } td.worse { color: var(--red); }
svg { display: block; } svg text { fill: var(--ink); font-family: system-ui, sans-serif; }
.chart, .plot { width: 100%; height: auto; font-size: 13px; }
.grid { stroke: var(--line); } .axis { stroke: var(--soft); }
svg .tick, svg .name, svg .note { fill: var(--soft); font-size: 12px; }
.middle { text-anchor: middle; } .end { text-anchor: end; }
svg .value { font-weight: 600; }
.bar { fill: var(--blue); } .bar.other { fill: var(--grey); } .track { fill: var(--raised); }
.curve { fill: none; stroke: var(--blue); stroke-width: 2; stroke-linejoin: round; }
.curve.recall { stroke: var(--orange); } .curve.f1 { stroke: var(--green); }
.key { font-weight: 600; } .key.precision { color: var(--blue); } .key.recall { color: var(--orange); }
.key.f1 { color: var(--green); }
circle.best { fill: var(--green); stroke: var(--ground); stroke-width: 2; }
.small { width: 50px; height: 18px; } .small polyline { fill: none; stroke: var(--blue); stroke-width: 1.2; }
.ap { width: 100px; height: 12px; } .whisker { stroke: var(--orange); stroke-width: 2; }
.right { fill: var(--blue); } .wrong { fill: var(--orange); }
line.better { stroke: var(--green); } circle.better { fill: var(--green); }
line.worse { stroke: var(--red); } circle.worse { fill: var(--red); }
line.unsure { stroke: var(--grey); } circle.unsure { fill: var(--grey); }
line.better, line.worse, line.unsure { stroke-width: 2; }
.lines .curve { stroke-width: 1.8; } .lines .cursor { stroke: var(--soft); } .lines output { display: block; min-height: 1.5em;
  font-size: 13px; font-variant-numeric: tabular-nums; }
.plot { overflow: visible; } .lines .plot { touch-action: pan-y; cursor: crosshair; }
.c0 { stroke: var(--s0); } .c1 { stroke: var(--s1); } .c2 { stroke: var(--s2); } .c3 { stroke: var(--s3); }
.c4 { stroke: var(--s4); } .c5 { stroke: var(--s5); } .c6 { stroke: var(--s6); } .c7 { stroke: var(--s7); }
circle.c0 { fill: var(--s0); } circle.c1 { fill: var(--s1); } circle.c2 { fill: var(--s2); } circle.c3 { fill: var(--s3); }
circle.c4 { fill: var(--s4); } circle.c5 { fill: var(--s5); } circle.c6 { fill: var(--s6); } circle.c7 { fill: var(--s7); }
.d1 { stroke-dasharray: 6 3; } .d2 { stroke-dasharray: 2 3; } .d3 { stroke-dasharray: 8 3 2 3; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; list-style: none; margin: 4px 0 0; padding: 0; font-size: 13px; }
.legend svg { display: inline-block; width: 26px; height: 8px; vertical-align: middle; margin-right: 6px; }
.legend line { stroke-width: 2.5; }
.scale { float: right; font-size: 13px; color: var(--soft); }
.lines:has(.scale :checked) .linear, .lines:not(:has(.scale :checked)) .log { display: none; }
.tools { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: end; margin: 12px 0; font-size: 13px; }
.tools label { color: var(--soft); max-width: 100%; }
.tools select, .tools input { display: block; margin-top: 2px; }
.tools select { max-width: 260px; } .tools select, .tools input, .view button { font: inherit; color: var(--ink); }
.tools select, .view button { background: var(--raised); border: 1px solid var(--line); border-radius: 6px; padding: 4px 8px; }
.tools output { color: var(--ink); font-variant-numeric: tabular-nums; }
.cards { list-style: none; margin: 0; padding: 0; display: grid; gap: 12px;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, var(--card, 260px)), 1fr)); }
.card { display: flex; flex-direction: column; justify-content: flex-start; width: 100%; height: 100%; padding: 6px; border: 1px solid var(--line); border-radius: 8px;
  background: var(--raised); color: inherit; font: inherit; text-align: left; cursor: zoom-in; }
.card b, .card small { display: block; overflow-wrap: anywhere; }
.card b { font-size: 13px; } .card small { font-size: 12px; color: var(--soft); }
.card .panes { width: 100%; } .panes { display: flex; gap: 4px; margin-bottom: 4px; }
.pane { flex: 1; position: relative; display: block; min-width: 0; align-self: start; }
.pane img { display: block; width: 100%; height: auto; border-radius: 3px; background: var(--line); }
.pane .lost { display: block; background: var(--line); border-radius: 3px; }
.pane svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: hidden; }
.pane path { fill-opacity: .18; stroke-width: 2; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
.pane path.box { fill-opacity: 0; }
.pane path.casing { stroke: #000; stroke-opacity: .55; stroke-width: 4; fill: none; }
.pane path.annotated { stroke-dasharray: 5 3; }
.pane path.missed { stroke-width: 3; stroke-dasharray: none; }
.pane svg text { fill: #fff; stroke: #000; paint-order: stroke; stroke-linejoin: round; font-weight: 600; }
.pane small { display: block; }
.view { width: min(96vw, 1500px); max-width: none; height: 94vh; max-height: none; padding: 0; border: 1px solid var(--line);
  border-radius: 10px; background: var(--ground); color: var(--ink); }
.view::backdrop { background: rgb(0 0 0 / .6); }
.view header { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; padding: 10px 14px; position: sticky; top: 0;
  background: var(--ground); z-index: 1; border-bottom: 1px solid var(--line); }
.view header b { flex: 1 1 200px; overflow-wrap: anywhere; } .view .body { padding: 14px; }
.view .body p { margin: 8px 0; } .view ul { columns: 240px; list-style: none; padding: 0; margin: 8px 0; font-size: 13px; }
.view li::before { content: ""; display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px;
  background: var(--c); }
.view .pane { margin: 0 auto; max-width: calc((94vh - 140px) * var(--aspect)); }
@media (max-width: 600px) { main { padding: 16px 14px 40px; } h2 { margin-top: 36px; } .view .panes { flex-direction: column; }
  .view .pane { width: 100%; } .tile.first b { font-size: 28px; } .tools select { max-width: 44vw; } }
@media print { main { max-width: none; padding: 0; } h2 { break-after: avoid; } nav, .tools, .scale { display: none; }
  .card, .tile, figure { break-inside: avoid; } .scroll { overflow: visible; } }
)css";

}  // namespace millrace::page
