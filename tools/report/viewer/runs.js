// One run, or several runs that are compared with the first run (docs/runs.md).

import {classParts, confusionParts, curveParts, differences, errorParts, notes, scoreTiles} from "./analysis.js";
import {bars, spark} from "./bars.js";
import {details, h, pair, section, soft, verdict} from "./dom.js";
import {change, counted, duration, interval, percent} from "./format.js";
import {Gallery} from "./gallery.js";
import {lineCharts} from "./lines.js";
import {table} from "./table.js";

const LEVELS = [0.5, 0.75, 0.9, 0.95, 1];  // fractions of the best AP
const code = (text) => h("code", {}, text);

/** Returns the page of kind "runs". */
export function runsPage({runs}) {
  const scored = runs.filter((run) => run.scores);
  const one = runs.length === 1 ? runs[0] : null;
  const parts =
      scored.map((run, i) => ({run, parts: partsOf(run, one ? "pictures" : `pictures-${i + 1}`)}));
  return {
    title: one ? one.name : `Runs ${runs.map((run) => run.name).join(", ")}`,
    top: [...runs.map(standing), ...runs.map(reason), one?.scores ? scoresOf(one) : null],
    sections: [
      one ? null : comparison(runs),
      overTime(runs),
      losses(runs),
      speed(runs),
      heads(runs),
      ...(one ?
              parts.flatMap(
                  (of) => of.parts.map(({id, title, content}) => section(id, title, ...content))) :
              parts.map(
                  ({run, parts: all}) => section(
                      `run-${runs.indexOf(run) + 1}`, run.name, scoresOf(run),
                      all.map(({title, content}) => details(title, false, ...content))))),
      configuration(runs),
      environment(runs),
      scored.length > 0 ? notes(scored[0].scores.boxes) : null,
    ],
  };
}

function standing(run) {
  return h(
      "div", {},
      verdict(
          run.standing === "broken" ? "warning" : "", h("b", {}, run.name),
          `: ${run.standing_text}.`),
      run.log_end ? details("End of log.txt", true, h("pre", {tabindex: 0}, run.log_end)) : null,
      run.remarks.length ? h("ul", {}, run.remarks.map((remark) => h("li", {}, `${remark}.`))) :
                           null);
}

function reason(run) {
  return run.no_scores ? verdict("warning", h("b", {}, run.name), `: ${run.no_scores}.`) : null;
}

/** Shows the newest scores in large digits, with their step and weights. */
function scoresOf({scores: {step, weights, detections, boxes, masks, contradiction}}) {
  return h(
      "div", {},
      soft(
          `Scores of step ${step}`, weights ? `, weights of ${weights}` : "",
          ` over ${counted(boxes.images, "image")}, ${counted(detections, "detection")}`,
          masks ? "; boxes, then masks." : "."),
      scoreTiles(boxes), masks ? scoreTiles(masks) : null, contradictionText(step, contradiction));
}

/** Warns if a run logged a different AP when it was evaluated. */
function contradictionText(step, contradiction) {
  if (!contradiction) return null;
  const {logged, now} = contradiction;
  return verdict(
      "warning", `metrics.jsonl has AP ${percent(logged, 2)} at step ${step}, but the detections `,
      `now score ${percent(now, 2)}: the annotations have changed, or some images could not be `,
      "read then.");
}

/** Returns the analysis of a run's newest detections, as parts with titles. */
function partsOf({scores}, id) {
  const {boxes, masks, pictures} = scores;
  const gallery = new Gallery(id, pictures);
  const show = (k) => gallery.only(
      `${boxes.per_class[k].name}.`,
      (image) => [...image.found, ...image.truth].some((one) => one.class === k));
  const of = (parts, ...more) => (
      masks ?
          [
            h("h3", {}, "Boxes"), ...parts(boxes, ...more), details("Masks", false, ...parts(masks))
          ] :
          parts(boxes, ...more));
  return [
    {id: "errors", title: "Cost of errors", content: of(errorParts)},
    {id: "curves", title: "Precision and recall", content: of(curveParts)},
    {id: "classes", title: "Classes", content: of(classParts, show)},
    {id: "confusions", title: "Confusions", content: of(confusionParts, gallery)},
    {
      id: "images",
      title: "Best and worst images",
      content: [
        soft(
            `${gallery.images.length} of ${counted(boxes.images, "image")}, worst first, at the `,
            "score of the best F1. Objects and detections are matched at IoU .50: a ",
            "detection is correct or an error of one of the types above; an object is missed ",
            "if no detection with the minimum score matches it."),
        pictures.problem ? verdict("warning", pictures.problem) : null, gallery.element
      ]
    },
  ];
}

// Metrics over steps

function metricNames(runs, wanted) {
  return [...new Set(runs.flatMap((run) => Object.keys(run.metrics)))].filter(wanted).sort();
}

/** For one run, returns a chart with a line per metric; for several, a chart per metric. */
function charts(runs, names, like) {
  const there = names.filter((name) => runs.some((run) => run.metrics[name]));
  if (there.length === 0) return [];
  if (runs.length === 1)
    return [{
      x: "step",
      ...like,
      series: there.map(
          (name, i) => ({name, colour: i, dash: Math.floor(i / 8), points: runs[0].metrics[name]}))
    }];
  return there.map((name) => ({
                     x: "step",
                     ...like,
                     title: name,
                     series: runs.flatMap(
                         (run, r) => (
                             run.metrics[name] ?
                                 [{name: run.name, colour: r, dash: r, points: run.metrics[name]}] :
                                 []))
                   }));
}

/** Returns charts, which are collapsed if there are several runs. */
function folded(runs, title, all) {
  if (all.length === 0) return null;
  return runs.length === 1 ? lineCharts(all) : details(title, false, lineCharts(all));
}

const isScore = (name, ...scores) =>
    scores.some((score) => name.endsWith(`bbox/${score}`) || name.endsWith(`segm/${score}`));

function overTime(runs) {
  const of = (...scores) => metricNames(runs, (name) => isScore(name, ...scores));
  const main = of("AP");
  const title = "Scores over time";
  if (main.length === 0)
    return section(
        "scores", title, h("p", {}, "No evaluation yet; [callbacks.evaluate] sets the interval."));
  const like = {title: "AP", y: "per cent", factor: 100};
  const sizes = charts(runs, of("APs", "APm", "APl"), {...like, title: "AP by size of objects"});
  const shown = runs.length === 1 ?
      [lineCharts([...charts(runs, of("AP", "AP50", "AP75"), like), ...sizes])] :
      [
        lineCharts(charts(runs, main, like)),
        folded(
            runs, "AP50, AP75, and AP by size of objects",
            [...charts(runs, of("AP50", "AP75"), like), ...sizes])
      ];
  const metric = main.includes("bbox/AP") ? "bbox/AP" : main[0];
  return section(
      "scores", title,
      runs.filter((run) => run.limited)
          .map((run) => verdict("warning", runs.length > 1 ? `${run.name}: ` : "", run.limited)),
      ...shown, timeToAccuracy(runs, metric), runs.map((run) => classesOverTime(runs, run)));
}

/** Shows when each run first reached fractions of the best AP that all runs reach. */
function timeToAccuracy(runs, metric) {
  const series =
      runs.map((run) => run.evaluations.filter((one) => one.values[metric] !== undefined));
  const bests = series.filter((all) => all.length > 0)
                    .map((all) => Math.max(...all.map((one) => one.values[metric] ?? -1)));
  const common = Math.min(...bests);
  if (!(common > 0 && common < Infinity)) return null;
  const hasPrice = series.flat().some((one) => one.price !== null);
  const rows = LEVELS.map(
      (share) => ({
        share,
        first: series.map((all) => all.find((one) => one.values[metric] >= share * common))
      }));
  const columns = [{
    name: "AP",
    get: (row) => row.share * common,
    show: (value, row) =>
        h("span", {}, `${percent(value)} `,
          h("span", {class: "soft"},
            `(${100 * row.share} % of the best${runs.length > 1 ? " value that all reach" : ""})`))
  }];
  runs.forEach((run, r) => {
    const whose = runs.length > 1 ? `${run.name}: ` : "";
    const column = (name, key, show) =>
        columns.push({name: whose + name, get: (row) => row.first[r]?.[key] ?? null, show});
    column("step", "step");
    column("epoch", "epoch", (value) => value?.toFixed(2) ?? "");
    column("time", "seconds", (value) => duration(value));
    if (hasPrice) column("price", "price", (value) => value?.toFixed(2) ?? "");
  });
  return h(
      "div", {}, h("h3", {}, "Time to accuracy"),
      soft(
          `First evaluation with at least this ${metric}. Time includes training and evaluation `,
          "since the run began, without pauses before it was resumed."),
      table({columns, rows, style: "narrow"}));
}

function classesOverTime(runs, run) {
  return Object.entries(run.class_scores).filter(([, all]) => all.length > 1).map(([iou, all]) => {
    const rows = Object.keys(all.at(-1).ap)
                     .map((id) => {
                       const values = all.map((one) => one.ap[id] ?? -1);
                       const [before, last] = values.slice(-2), known = last >= 0 && before >= 0;
                       return {
                         name: run.class_names[id] ?? `category ${id}`,
                         values,
                         last,
                         before,
                         change: known ? last - before : null,
                         best: Math.max(...values)
                       };
                     })
                     .filter((row) => row.best >= 0);
    const share = (name, key) => ({name, get: (row) => row[key], show: (value) => percent(value)});
    const whose = runs.length > 1 ? `${run.name}: each` : "Each";
    return details(
        `${whose} class over time (${iou === "bbox" ? "boxes" : "masks"}, ` +
            `${counted(all.length, "evaluation")}, steps ${all[0].step} to ${all.at(-1).step})`,
        rows.length <= 20, table({
          rows,
          search: "class",
          sort: {column: 1, down: false},
          columns: [
            {name: "class", get: (row) => row.name}, share("AP now", "last"),
            share("previous evaluation", "before"), {
              name: "change",
              get: (row) => row.change,
              show: (value) => (value === null ? "" : change(value, 1))
            },
            share("best", "best"), {
              name: "over time",
              words: true,
              get: (row) => row.last,
              show: (_, row) => spark(row.values)
            }
          ]
        }));
  });
}

function losses(runs) {
  const names = metricNames(runs, (name) => name.startsWith("loss") || name.startsWith("val/"));
  if (names.length === 0)
    return section("losses", "Losses", h("p", {}, "No losses in metrics.jsonl yet."));
  const like = {title: "Losses", log: true};
  const norm = charts(runs, ["gradient_norm"], {title: "Gradient norm", log: true});
  const rate = charts(runs, ["lr"], {title: "Learning rate"});
  const shown =
      runs.length === 1 ? [lineCharts([...charts(runs, names, like), ...rate, ...norm])] : [
        lineCharts([...charts(runs, ["loss"], like), ...rate]),
        folded(
            runs, "Individual losses and gradient norm",
            [...charts(runs, names.filter((name) => name !== "loss"), like), ...norm])
      ];
  const bad = runs.map((run) => [run.name, run.metrics.bad_steps?.at(-1)[1] ?? 0])
                  .filter(([, count]) => count > 0);
  return section(
      "losses", "Losses", ...shown,
      bad.map(
          ([name, count]) => verdict(
              "warning", `${name}: ${count} steps had a non-finite gradient and were skipped.`)));
}

function speed(runs) {
  const rate = charts(runs, ["time/images_per_s"], {title: "Images per second", y: "images/s"});
  const parts = charts(
      runs, ["time/data_wait_s", "time/step_s", "time/sync_s", "time/callbacks_s"],
      {title: "Seconds per step", y: "s", log: true});
  const went = runs.filter((run) => run.time_parts.length > 0).map((run) => {
    const sum = run.time_parts.reduce((total, [, seconds]) => total + seconds, 0);
    const about = runs.length > 1 ? `Time by activity, ${run.name}` : "Time by activity";
    return h(
        "figure", {}, h("figcaption", {class: "title"}, about),
        bars(
            run.time_parts.map(([name, seconds]) => ({
                                 name,
                                 value: seconds,
                                 text: `${percent(seconds / sum)} %`,
                                 note: duration(seconds)
                               })),
            about));
  });
  const memory = metricNames(runs, (name) => name.startsWith("time/") && name.endsWith("_mib"));
  const devices = [
    ...charts(runs, memory, {title: "Memory", y: "MiB"}),
    ...charts(
        runs, metricNames(runs, (name) => name.endsWith("_busy")),
        {title: "GPU utilization", y: "per cent", factor: 100})
  ];
  const shown = runs.length === 1 ?
      [lineCharts([...rate, ...parts, ...devices]), pair(went)] :
      [lineCharts([...rate, ...devices]), pair(went), folded(runs, "Seconds per step", parts)];
  const peaks =
      runs.filter((run) => run.peak_memory_mib > 0)
          .map((run) => `Peak memory of ${run.name}: ${Math.round(run.peak_memory_mib)} MiB.`);
  return section(
      "speed", "Speed and memory",
      rate.length + parts.length + went.length === 0 ?
          h("p", {}, "No rates in metrics.jsonl yet.") :
          null,
      ...shown,
      memory.length === 0 ?
          soft(["Memory per step was not recorded; enable [callbacks.resources].", ...peaks].join(
              " ")) :
          soft(peaks.join(" ")));
}

function heads(runs) {
  const groups = new Map();
  for (const name of metricNames(
           runs, (one) => one.includes("/") && !/^(time|val)\/|bbox\/|segm\//.test(one))) {
    const counts = runs.some((run) => run.metrics[name]?.some((point) => point[1] > 1.5));
    const key = `${name.split("/")[0]}, ${counts ? "counts" : "shares"}`;
    groups.set(key, [...groups.get(key) ?? [], name]);
  }
  if (groups.size === 0) return null;
  const all = [...groups].sort().flatMap(
      ([title, names]) =>
          charts(runs, names, {title, y: title.endsWith("counts") ? "count" : "share"}));
  return section(
      "heads", "Heads",
      details("Accuracies, recall and counts of the heads", false, lineCharts(all)));
}

// Several runs

/** Shows the final scores of several runs, and their differences from the first run. */
function comparison(runs) {
  const verdicts = runs.flatMap(
      (run) =>
          (run.verdicts ?? [])
              .map(
                  ({of, text, leaning: style}) => verdict(
                      style, h("b", {}, `${run.name}, ${of} versus ${runs[0].name}. `), text)));
  const stat = (name, i) => ({
    name,
    get: (run) => {
      const value = run.scores?.boxes.stats[i];
      return value >= 0 ? value : null;
    },
    show: (value) => percent(value)
  });
  const difference = (run) => run.scores?.boxes.versus?.difference.AP;
  return section(
      "comparison", "Comparison",
      verdicts.length ?
          verdicts :
          verdict(
              "warning",
              "No verdict: this requires detections of two runs on the same images and classes."),
      table({
        rows: runs,
        columns: [
          {name: "run", get: (run) => run.name},
          stat("AP", 0),
          {
            name: "difference",
            get: (run) => difference(run)?.value ?? null,
            show: (value) => (value === null ? "" : change(value))
          },
          {
            name: "95 % interval",
            get: (run) => difference(run)?.low ?? null,
            show: (_, run) => (difference(run) ? interval(difference(run)) : "")
          },
          {
            name: "p",
            get: (run) => run.scores?.boxes.versus?.p ?? null,
            show: (value) => value?.toFixed(3) ?? ""
          },
          stat("AP50", 1),
          stat("AP75", 2),
          stat("small", 3),
          stat("medium", 4),
          stat("large", 5),
          stat("AR", 8),
          {
            name: "mask AP",
            get: (run) => run.scores?.masks?.stats[0] ?? null,
            show: (value) => (value === null ? "" : percent(value))
          },
          {name: "step", get: (run) => run.scores?.step ?? run.step},
          {name: "time", get: (run) => run.seconds, show: (value) => duration(value)},
          {
            name: "device-hours",
            get: (run) => run.device_hours,
            show: (value) => (value > 0 ? value.toFixed(2) : "")
          },
        ]
      }),
      soft(
          "A verdict accounts for the choice of the validation images: whether other images of ",
          "the same kind could reverse the difference. It does not account for randomness in ",
          "training: two runs that differ only in their seed may differ as much. If a decision ",
          "depends on a small difference, train each side with several seeds."),
      runs.filter((run) => run.scores?.boxes.versus)
          .map(
              (run) => details(
                  `${run.name} versus ${runs[0].name} by class`, runs.length === 2,
                  ...differences(run.scores.boxes))));
}

// Configurations and machines

/** Shows the values that differ between runs. */
function configurationDifferences(runs) {
  const values = runs.map((run) => new Map(run.config.map(([key, value]) => [key, value])));
  const keys = [...new Set(values.flatMap((one) => [...one.keys()]))].sort();
  const rows = keys.filter((key) => new Set(values.map((one) => one.get(key))).size > 1);
  if (rows.length === 0) return h("p", {}, "The configurations are equal.");
  return h(
      "div", {}, h("p", {}, `Values that differ: ${rows.length}.`), table({
        rows,
        style: "wrapped",
        columns: [
          {name: "key", get: (key) => key},
          ...runs.map((run, r) => ({
                        name: run.name,
                        words: true,
                        get: (key) => values[r].get(key) ?? null,
                        show: (value) =>
                            (value === null ? h("span", {class: "soft"}, "not set") : code(value))
                      }))
        ]
      }));
}

/** Shows values with their sources: first the values that were set, then the defaults. */
function values({config}) {
  const isDefault = ([, , from]) => !from || from === "default";
  const recorded = config.some(([, , from]) => from);
  const columns = [
    {name: "key", get: ([key]) => key},
    {name: "value", words: true, get: (one) => one[1], show: code},
    {name: "from", words: true, get: (one) => one[2], show: (from) => from ?? ""}
  ];
  const given = config.filter((one) => !isDefault(one)), others = config.filter(isDefault);
  return [
    given.length ? table({columns, rows: given, style: "wrapped"}) : null,
    others.length ?
        details(
            recorded ? counted(others.length, "default value", "default values") :
                       `${counted(others.length, "value")}; this run did not record their origins`,
            false, table({columns, rows: others, style: "wrapped", search: "key"})) :
                       null
  ];
}

function configuration(runs) {
  const known = runs.filter((run) => run.config.length > 0);
  return section(
      "configuration", "Configuration", runs.length > 1 ? configurationDifferences(runs) : null,
      known.length === 0 ? h("p", {}, "No configuration in the run folder.") : null,
      known.map(
          (run) => (runs.length > 1 ? details(run.name, false, ...values(run)) : values(run))));
}

function environment(runs) {
  const facts = runs.map((run) => new Map(run.facts));
  const names = [...new Set(runs.flatMap((run) => run.facts.map(([name]) => name)))];
  return section("environment", "Environment", table({
                   rows: names,
                   style: "wrapped",
                   columns: [
                     {name: "", get: (name) => name},
                     ...runs.map((run, r) => ({
                                   name: run.name,
                                   words: true,
                                   get: (name) => facts[r].get(name) ?? null,
                                   show: (value) => (value === null ? "" : code(value))
                                 }))
                   ]
                 }));
}
