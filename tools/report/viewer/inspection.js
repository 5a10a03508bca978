// The input of a training run, from `trainer inspect --json` and its images (docs/data-checks.md).

import {histogram} from "./bars.js";
import {h, pair, section, tiles, verdict} from "./dom.js";
import {counted, percent} from "./format.js";
import {Gallery} from "./gallery.js";
import {table} from "./table.js";

/** Returns the page of kind "inspection". */
export function inspectionPage(found) {
  const {batches, learned, val} = found;
  const data = found.train ?? learned;
  const remarks = [...found.remarks].sort((a, b) => b.warning - a.warning);
  return {
    title: "Training input",
    subtitle: h("code", {}, found.config),
    top: [
      overview(found, data),
      remarks.map(
          (one) =>
              h("p", {class: one.warning ? "verdict warning" : "verdict", id: one.name}, one.text)),
      found.notes.map((note) => h("p", {}, note))
    ],
    sections: [
      section("batches", "Batches", ...batchParts(batches)),
      learned.histograms ?
          section(
              "figures", "Figures",
              h("p", {},
                `${counted(learned.images, "image")} of ${learned.name}: ${learned.seen}.`),
              pair(Object.values(learned.histograms).map(histogramFigure))) :
          null,
      learned.anchors ? section("anchors", "Anchor coverage", ...anchorParts(learned.anchors)) :
                        null,
      section("classes", "Classes", classTable(data, val)),
      ...found.splits.map(
          ({id, name, images, seen, pictures}) =>
              section(id, `Images of ${name}`, ...photoParts(id, images, seen, pictures))),
    ],
  };
}

function overview({batches, learned}, data) {
  const all = [
    [data.images, data.from_batches ? "images drawn" : "images"], [data.objects, "objects"],
    [data.classes.length, data.classes.length === 1 ? "class" : "classes"]
  ];
  if (data.images > 0) all.push([(data.objects / data.images).toFixed(1), "objects per image"]);
  all.push([`${percent(batches.padding_share, 0)} %`, "padding in batches"]);
  const anchors = learned.anchors?.find((one) => one.size === "all");
  if (anchors)
    all.push([`${percent(anchors.none / anchors.objects)} %`, "of the objects without an anchor"]);
  return tiles(all);
}

function batchParts({files, skipped, skipped_reasons: reasons, pictures}) {
  const gallery = new Gallery("batches-gallery", pictures);
  const drawn = counted(files.length, "drawn batch", "drawn batches");
  return [
    h("p", {},
      "First training batches as the detector receives them: after all stages, with the boxes and ",
      "masks to learn. Stripes are padding. ",
      `${counted(gallery.images.length, "image")} of ${drawn} here; `,
      `${files.join(", ")} in this folder `, files.length === 1 ? "shows it" : "show them",
      " with masks and names."),
    skipped > 0 ? h("p", {}, `${counted(skipped, "sample")} skipped: ${reasons.join("; ")}`) : null,
    gallery.element,
  ];
}

function histogramFigure({title, unit, meaning, bins}) {
  return h(
      "figure", {}, h("figcaption", {class: "title"}, title),
      histogram({...bins, unit, about: `${title}: ${meaning}`}), h("figcaption", {}, meaning));
}

function anchorParts(anchors) {
  const share = (name, of) => ({
    name: `${name}, %`,
    get: (one) => (one.objects > 0 ? of(one) : null),
    show: (value) => percent(value)
  });
  const part = (name, key) => share(name, (one) => one[key] / one.objects);
  const [all, ...sizes] = anchors;
  return [
    table({
      rows: [...sizes, all],
      style: "narrow",
      columns: [
        {name: "pixels seen", get: (one) => one.size}, {name: "objects", get: (one) => one.objects},
        part("learned", "foreground"), part("by best anchors alone", "low_quality"),
        part("by no anchor", "none"), share("recall at 0.5", (one) => one.recall50),
        share("recall at 0.7", (one) => one.recall70)
      ]
    }),
    h("p", {},
      "Learned: an anchor reaches the foreground IoU threshold. By best anchors alone: none does, ",
      "but the anchors with the highest IoU learn the object anyway. By no anchor: these anchors ",
      "overlap another object more. Recall: share of the objects that the anchors themselves ",
      "would find as proposals, before regression.")
  ];
}

function classTable(data, val) {
  const rows = data.classes.map((one, k) => ({...one, val: val?.classes[k]}));
  const columns = [
    {name: "class", get: (one) => one.name}, {name: "objects", get: (one) => one.objects},
    {name: "images", get: (one) => one.images}
  ];
  if (val)
    columns.push(
        {name: `objects, ${val.name}`, get: (one) => one.val.objects},
        {name: `images, ${val.name}`, get: (one) => one.val.images});
  return table({columns, rows, search: "class", style: "narrow", sort: {column: 1, down: true}});
}

function photoParts(id, images, seen, pictures) {
  const shown = pictures.images.length;
  if (shown === 0) {
    return [h("p", {}, "No images: they are known only after decoding.")];
  }
  return [
    h("p", {}, `${shown} of ${counted(images, "image")}: `,
      "extremes (see their tags), one image of each of the ",
      "rarest classes, and some at regular intervals. ", `Object sizes: ${seen}.`),
    new Gallery(`${id}-gallery`, pictures).element,
  ];
}
