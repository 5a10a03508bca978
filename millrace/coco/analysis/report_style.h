// How pages and their drawings look.
#pragma once

#include <string_view>

namespace millrace::coco {

inline constexpr std::string_view kReportStyle = R"css(
:root { color-scheme: light dark; --ground: #ffffff; --raised: #f5f7f9; --ink: #171a1f; --soft: #5d6875;
  --line: #dde2e8; --blue: #2566b8; --orange: #c65d12; --green: #1b7f52; --red: #b53a3a; --grey: #8a94a0; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14171b; --raised: #1d2127; --ink: #e6e9ed; --soft: #98a3b0; --line: #2f353d; --blue: #6aa5ec;
    --orange: #f0954c; --green: #55bf8c; --red: #ec7a7a; --grey: #7c8794; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 19px; margin: 48px 0 4px; }
p { margin: 0 0 12px; max-width: 74ch; }
.soft { color: var(--soft); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(112px, 1fr)); gap: 10px; margin: 20px 0; }
.tile { background: var(--raised); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; }
.tile b { display: block; font-size: 24px; line-height: 1.25; font-variant-numeric: tabular-nums; }
.tile.first { grid-column: span 2; } .tile.first b { font-size: 34px; }
.tile span { color: var(--soft); font-size: 13px; }
.verdict { border-left: 4px solid var(--grey); background: var(--raised); padding: 12px 16px; margin: 12px 0; }
.verdict.better { border-color: var(--green); } .verdict.worse { border-color: var(--red); }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 24px; }
figure { margin: 12px 0; } figcaption { color: var(--soft); font-size: 13px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 8px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
table.narrow { max-width: 560px; }
thead th { position: sticky; top: 0; background: var(--ground); color: var(--soft); font-weight: 600; }
th:first-child, td:first-child, .left { text-align: left; }
tbody th { font-weight: 600; }
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
@media print { main { max-width: none; padding: 0; } h2 { break-after: avoid; } }
)css";

}  // namespace millrace::coco
