// An evaluation's analysis, from `trainer coco-eval --analyze --json` (docs/evaluation.md).

import {bars, heatMap, intervals, leaning, shareBar, spark} from "./bars.js";
import {details, h, section, soft, tiles, verdict} from "./dom.js";
import {change, counted, DASH, interval, percent} from "./format.js";
import {lineCharts} from "./lines.js";
import {BACKGROUND, confusions} from "./matching.js";
import {table} from "./table.js";

const KINDS = ["class", "location", "both", "duplicate", "background", "missed"];
// Indices in COCO's stats.
const TILES = {
  1: "AP50",
  2: "AP75",
  3: "AP small",
  4: "AP medium",
  5: "AP large",
  8: "AR"
};
const NAMED_PAIRS = 12, DRAWN_CLASSES = 30;
const SCORE_DIGITS = 4;  // digits of scores in images

export function scoreTiles(analysis) {
  const ap = analysis.bootstrap?.AP;
  const sure = ap && Number.isFinite(ap.low) ?
      `95 % interval ${percent(ap.low)} to ${percent(ap.high)}` :
      "IoU .50 to .95";
  return tiles([
    [`${percent(analysis.stats[0])} AP`, sure],
    ...Object.entries(TILES).map(([i, name]) => [percent(analysis.stats[i]), name])
  ]);
}

export function differences(analysis) {
  const {versus, per_class: classes} = analysis;
  const rows = versus.category_ap.map((one, k) => ({name: classes[k].name, ...one}))
                   .filter((one) => Number.isFinite(one.value) && one.value !== 0)
                   .sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const all = counted(classes.length, "class", "classes");
  const drawn = rows.slice(0, DRAWN_CLASSES).sort((a, b) => b.value - a.value);
  if (Number.isFinite(versus.difference.AP.value))
    drawn.unshift({name: "all classes", ...versus.difference.AP});
  return [
    h("figure", {}, intervals(drawn, "AP difference by class"),
      h("figcaption", {}, "AP difference with its 95 % interval, ",
        `for the ${drawn.length - 1} of ${all} with the largest difference, from ${versus.draws} `,
        "bootstrap samples of the images, the same for both. About one in twenty classes without ",
        "a real difference is coloured by chance.")),
    details("All classes", false, table({
              rows,
              search: "class",
              sort: {column: 1, down: true},
              columns: [
                {name: "class", get: (one) => one.name},
                {
                  name: "AP difference",
                  get: (one) => one.value,
                  show: (value, one) => h("span", {class: leaning(one)}, change(value))
                },
                {name: "95 % interval", get: (one) => one.low, show: (_, one) => interval(one)},
                {name: "p", get: (one) => one.p, show: (value) => value.toFixed(3)},
              ]
            })),
  ];
}

function versusSection(analysis, name) {
  const {versus} = analysis;
  const style = !versus.significant ? "" : versus.difference.AP.value > 0 ? "better" : "worse";
  return section(
      "versus", `Compared with ${name}`, verdict(style, versus.sentence), ...differences(analysis));
}

export function errorParts({errors}) {
  const rows =
      KINDS.map((kind) => ({
                  name: kind,
                  value: errors[kind].cost,
                  text: percent(errors[kind].cost),
                  note: counted(errors[kind].count, kind === "missed" ? "object" : "detection")
                }));
  rows.push(
      {
        name: "all wrong",
        value: errors.false_positives.cost,
        text: percent(errors.false_positives.cost),
        other: true
      },
      {
        name: "all unfound",
        value: errors.false_negatives.cost,
        text: percent(errors.false_negatives.cost),
        other: true
      });
  return [
    soft(
        "AP50 that would be gained by fixing only the errors of one type (TIDE, arXiv ",
        "2008.08115). The gains are not additive."),
    bars(rows, "AP50 lost by error type")
  ];
}

export function curveParts({curves, operating_point: best}) {
  const precision = curves.mean.map(
      ({iou, precision: values}, t) => ({
        name: `IoU ${iou.toFixed(2)}`,
        opacity: 1 - 0.75 * t / (curves.mean.length - 1),
        points: values.flatMap((value, r) => (value < 0 ? [] : [[curves.recall[r], value]]))
      }));
  const charts = [{
    title: "Precision over recall, mean over classes",
    x: "recall",
    y: "precision",
    xRange: [0, 1],
    yRange: [0, 1],
    series: precision
  }];
  if (curves.score?.length) {
    const scores = curves.score.map((point) => point[0]);
    charts.push({
      title: "Precision, recall and F1 over all classes, at IoU .50",
      x: "minimum score",
      y: "share",
      xRange: [Math.min(0, ...scores), Math.max(1, ...scores)],
      yRange: [0, 1],
      series: ["precision", "recall", "F1"].map(
          (name, i) => ({
            name,
            colour: i,
            points:
                curves.score.map((point) => [point[0], point[i + 1]]).sort((a, b) => a[0] - b[0])
          })),
      marks: [{
        x: best.score,
        y: best.f1,
        title: `best F1 ${best.f1.toFixed(3)} at score ${best.score.toFixed(3)}`
      }]
    });
  }
  return [
    lineCharts(charts),
    soft(
        `Best F1 at score ${best.score.toFixed(3)}: ${best.f1.toFixed(3)}, ` +
        `precision ${best.precision.toFixed(3)}, recall ${best.recall.toFixed(3)}.`)
  ];
}

function costliestError(errors) {
  const kind = KINDS.reduce((most, one) => (errors[one].cost > errors[most].cost ? one : most));
  return errors[kind].cost > 0 ? {kind, cost: errors[kind].cost} : null;
}

/** Shows AP by class and size. `show(class)` opens the class's images; null = no images. */
export function classParts({per_class: classes, bootstrap}, show = null) {
  const share = (name) => (one) => (one.stats[name] < 0 ? null : one.stats[name]);
  const stat = (name, key) => ({name, get: share(key), show: (value) => percent(value)});
  const rows = classes.map(
      (one, k) =>
          ({...one, k, interval: bootstrap?.category_ap[k], worst: costliestError(one.errors)}));
  return [
    soft(
        "Lowest AP first; click a column heading to sort. ",
        bootstrap ? "The line in the bar is the 95 % interval. " : "",
        "The curve is precision over recall at IoU .50; the costliest error is the type that ",
        "costs the class the most AP50."),
    table({
      rows,
      search: "class",
      sort: {column: 3, down: false},
      columns: [
        {
          name: "class",
          get: (one) => one.name,
          show: (name, one) =>
              (show ?
                   h("button", {type: "button", class: "link", onclick: () => show(one.k)}, name) :
                   name)
        },
        {name: "objects", get: (one) => one.objects},
        {name: "detections", get: (one) => one.detections},
        stat("AP", "AP"),
        {
          name: "",
          words: true,
          get: share("AP"),
          show: (value, one) => shareBar(value ?? 0, one.interval)
        },
        stat("AP50", "AP50"),
        stat("AP75", "AP75"),
        stat("small", "APs"),
        stat("medium", "APm"),
        stat("large", "APl"),
        stat("AR", "AR100"),
        {
          name: "curve",
          words: true,
          get: share("AP50"),
          show: (_, one) => (one.precision50 ? spark(one.precision50, 1) : "")
        },
        {
          name: "costliest error",
          words: true,
          get: (one) => one.worst?.kind ?? null,
          show: (kind) => kind ?? ""
        },
        {
          name: "costs",
          get: (one) => one.worst?.cost ?? null,
          show: (cost) => (cost === null ? "" : percent(cost))
        },
      ]
    }),
  ];
}

/** Shows confusions between classes. A cell opens its images in the gallery; null = no gallery. */
export function confusionParts({confusion, per_class: classes}, gallery = null) {
  const names = [...classes.map((one) => one.name), "background"];
  const status = h("p", {class: "soft", role: "status"});
  const parts = [soft(
      `Detections with a score of at least ${confusion.score.toFixed(3)} (the best F1), each with `,
      "the object that it overlaps most, at IoU .50. Background as class: there is no object. ",
      "Class as background: not detected.", gallery ? " Select a cell to see its images." : "")];
  const pairs = confusion.pairs ?? pairsOf(confusion.matrix);
  const score = Number(confusion.score.toPrecision(SCORE_DIGITS));

  function open(truth, found) {
    const pair = [truth, found].map((k) => (k === classes.length ? BACKGROUND : k));
    const title = `${names[truth]} confused with ${names[found]}`;
    const count = confusion.matrix?.[truth][found] ??
        pairs.find((one) => one.truth === truth && one.found === found).count;
    const holds = (image) =>
        confusions(image, score).some(([a, b]) => a === pair[0] && b === pair[1]);
    const there = gallery?.images.filter(holds).length ?? 0;
    const lost = gallery && there === 0 ? "; none of these images is on this page" : "";
    status.textContent = `${title}: ${counted(count, "time")}${lost}.`;
    if (there > 0) gallery.only(`${title}: ${counted(count, "time")} in all images.`, holds);
  }

  const named = pairs.slice(0, NAMED_PAIRS);
  if (named.length > 0)
    parts.push(table({
      rows: named,
      style: "narrow",
      columns: [
        {name: "object", get: (one) => names[one.truth]},
        {
          name: "detected as",
          words: true,
          get: (one) => names[one.found],
          show: (name, one) =>
              (gallery ?
                   h("button",
                     {type: "button", class: "link", onclick: () => open(one.truth, one.found)},
                     name) :
                   name)
        },
        {name: "times", get: (one) => one.count},
        {
          name: "share of its objects",
          get: (one) => one.share,
          show: (value) => `${percent(value)} %`
        },
      ]
    }));
  parts.push(status);
  if (confusion.matrix && classes.length > 1)
    parts.push(
        h("figure", {}, heatMap(names, confusion.matrix, open),
          h("figcaption", {},
            "Rows: annotated class; columns: detected class; colour strength: share of the row.")));
  return parts;
}

/** Returns the confused pairs of classes, most frequent first. */
function pairsOf(matrix) {
  const pairs = [];
  matrix.slice(0, -1).forEach((row, truth) => {
    const objects = row.reduce((a, b) => a + b, 0);
    row.slice(0, -1).forEach((count, found) => {
      if (count > 0 && truth !== found) pairs.push({truth, found, count, share: count / objects});
    });
  });
  return pairs.sort((a, b) => b.count - a.count || b.share - a.share);
}

export function notes({bootstrap, images}) {
  const name = (text) => h("b", {}, text);
  return section(
      "notes", "How to read this",
      h("p", {},
        "AP, AR and their variants are COCO's, in per cent, equal to pycocotools'. A false ",
        "positive is a ", name("class"),
        " error if it matches an object of a different class (IoU .5), a ", name("location"),
        " error if its IoU with an object of its class is too low (.1 to .5), ", name("both"),
        " if this applies to an object of a different class, a ", name("duplicate"),
        " if a detection with a higher score matches the object, ", name("background"),
        " if there is no object nearby. An object is ", name("missed"),
        " if no detection would match it after correcting class or location."),
      bootstrap ? h("p", {}, "Intervals are basic bootstrap intervals from ",
                    `${counted(bootstrap.draws, "sample")} of `,
                    `${counted(images, "image")} with replacement.`) :
                  null);
}

const IOUS = {
  bbox: "Boxes",
  segm: "Masks",
  boundary: "Boundaries"
};

/** Returns the page of kind "analysis". */
export function analysisPage({analysis, truth, detections, versus}) {
  const sum = (key) => analysis.per_class.reduce((total, one) => total + one[key], 0);
  return {
    title: `${detections}: evaluation`,
    subtitle:
        `${IOUS[analysis.iou] ?? DASH} against ${truth}: ${counted(analysis.images, "image")}, ` +
        `${counted(sum("objects"), "object")}, ${counted(sum("detections"), "detection")}`,
    top: [scoreTiles(analysis)],
    sections: [
      analysis.versus ? versusSection(analysis, versus) : null,
      section("errors", "Cost of errors", ...errorParts(analysis)),
      section("curves", "Precision and recall", ...curveParts(analysis)),
      section("classes", "Classes", ...classParts(analysis)),
      section("confusions", "Confusions", ...confusionParts(analysis)),
      notes(analysis),
    ],
  };
}
