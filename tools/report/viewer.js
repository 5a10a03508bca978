// Renders the JSON of the page according to its kind (README.md).

import {analysisPage} from "./viewer/analysis.js";
import {h} from "./viewer/dom.js";
import {inspectionPage} from "./viewer/inspection.js";
import {predictionsPage} from "./viewer/predictions.js";
import {runsPage} from "./viewer/runs.js";
import {studyPage} from "./viewer/study.js";

const LISTED_FROM = 3;  // minimum number of sections for a list
const KINDS = {
  analysis: analysisPage,
  inspection: inspectionPage,
  predictions: predictionsPage,
  runs: runsPage,
  study: studyPage
};

function show({kind, made_by: madeBy, ...data}) {
  const page = KINDS[kind](data);
  const sections = page.sections.filter(Boolean);
  const list = sections.length < LISTED_FROM ?
      null :
      h("nav", {"aria-label": "Sections"},
        sections.map((one) => h("a", {href: `#${one.id}`}, one.querySelector("h2").textContent)));
  document.title = page.title;
  document.getElementById("page").replaceChildren(
      h("h1", {}, page.title), page.subtitle ? h("p", {class: "soft"}, page.subtitle) : "",
      list ?? "", ...page.top.flat(Infinity).filter(Boolean), ...sections,
      h("footer", {}, page.footer ? `${page.footer} ` : "", "Made by ", h("code", {}, madeBy),
        "."));
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

show(JSON.parse(document.getElementById("data").textContent));
