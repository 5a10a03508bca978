// Variants with several seeds, from the JSON of `trainer study --json` (docs/study.md).

import {dots} from "./bars.js";
import {h, section, verdict} from "./dom.js";
import {change, counted, duration, interval, percent} from "./format.js";
import {table} from "./table.js";

/** Returns "box AP50" for "bbox/AP50". */
function titleOf(figure) { return figure.replace("bbox/", "box ").replace("segm/", "mask "); }

/** Returns the page of kind "study". */
export function studyPage({study}) {
  return {
    title: `Study of ${study.name}`,
    subtitle: [
      `${study.done} of ${counted(study.runs, "run")} done; ${counted(study.images, "image")}, `,
      counted(study.maths_threads, "math thread"),
    ],
    top: [verdicts(study), study.left_out.map((remark) => verdict("warning", remark))],
    sections: [
      section("seeds", "Seeds", ...seeds(study)),
      section("figures", "Metrics", figures(study)),
      study.differences.length > 0 ?
          section("differences", `Differences from ${study.variants[0].name}`, differences(study)) :
          null,
      section("runs", "Runs", runs(study)),
    ],
    footer:
        "The interval and p of a difference account for randomness in training and the choice of " +
        "images; those of the bootstrap are from " +
        `${study.draws} resamples of seeds and images, and are imprecise with few seeds.`,
  };
}

function verdicts({differences: all}) {
  return all.map(
      (one) => verdict(
          !one.real              ? "" :
              one.difference > 0 ? "better" :
                                   "worse",
          h("b", {}, `${one.variant} versus ${one.against}, ${titleOf(one.figure)}. `),
          one.sentence));
}

const figuresOf = (variant) => Object.entries(variant.figures);

function seeds({variants}) {
  return [["bbox/AP", null], ["segm/AP", "Masks"]].flatMap(([figure, heading]) => {
    const rows = variants.filter((one) => one.figures[figure]).map(({name, figures: all}) => {
      const {values, mean, mean_low: low, mean_high: high} = all[figure];
      return {name, values, mean, low, high};
    });
    if (rows.length === 0) return [];
    return [
      heading ? h("h3", {}, heading) : null,
      dots(rows, `${titleOf(figure)}; one dot per seed, line: 95 % interval of the mean`)
    ];
  });
}

function figures({variants}) {
  const share = (name, key) => ({name, get: (one) => one[key], show: (value) => percent(value, 2)});
  const rows = variants.flatMap(
      (variant) =>
          figuresOf(variant).map(([figure, one]) => ({variant: variant.name, figure, ...one})));
  return table({
    rows,
    search: "variant",
    columns: [
      {name: "variant", get: (one) => one.variant},
      {name: "figure", words: true, get: (one) => titleOf(one.figure)}, share("mean", "mean"),
      share("sd", "sd"), share("min", "min"), share("max", "max"), {
        name: "95 % of the mean",
        get: (one) => one.mean_low,
        show: (low, one) =>
            (low === null ? percent(null) : `${percent(low, 2)} .. ${percent(one.mean_high, 2)}`)
      }
    ]
  });
}

function differences({differences: rows}) {
  return table({
    rows,
    search: "variant",
    columns: [
      {name: "variant", get: (one) => one.variant},
      {name: "figure", words: true, get: (one) => titleOf(one.figure)},
      {name: "difference", get: (one) => one.difference, show: (value) => change(value)},
      {name: "95 % interval", get: (one) => one.low, show: (_, one) => interval(one)},
      {name: "p", get: (one) => one.p, show: (value) => value?.toFixed(3) ?? ""},
      {
        name: "bootstrap interval",
        get: (one) => one.bootstrap.low,
        show: (_, one) => interval(one.bootstrap)
      },
      {
        name: "bootstrap p",
        get: (one) => one.bootstrap.p,
        show: (value) => value?.toFixed(3) ?? ""
      },
      {name: "sd over seeds", get: (one) => one.seeds_sd, show: (value) => percent(value, 2)},
      {name: "sd over images", get: (one) => one.images_sd, show: (value) => percent(value, 2)},
    ]
  });
}

function runs({variants}) {
  const rows = variants.flatMap(
      (variant) => variant.seeds.map((seed, i) => ({
                                       variant: variant.name,
                                       seed,
                                       seconds: variant.seconds[i],
                                       folder: variant.folders[i],
                                       box: variant.figures["bbox/AP"]?.values[i] ?? null,
                                       mask: variant.figures["segm/AP"]?.values[i] ?? null
                                     })));
  return table({
    rows,
    search: "variant",
    columns: [
      {name: "variant", get: (one) => one.variant}, {name: "seed", get: (one) => one.seed},
      {name: "box AP", get: (one) => one.box, show: (value) => percent(value, 2)},
      {name: "mask AP", get: (one) => one.mask, show: (value) => percent(value, 2)},
      {name: "time", get: (one) => one.seconds, show: (value) => duration(value)}, {
        name: "run",
        words: true,
        get: (one) => one.folder,
        show: (folder) => h("a", {href: `${encodeURI(folder)}/report.html`}, folder)
      }
    ]
  });
}
