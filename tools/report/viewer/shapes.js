// Photos with the shapes of detections and annotations, clipped to the photo.

import {h, s} from "./dom.js";

export const FOUND = "found";
export const TRUTH = "truth";
export const TITLES = {
  [FOUND]: "detected",
  [TRUTH]: "annotated"
};

/** Returns an image's shapes of the view's class; detections have at least the view's score. */
export function visible(image, view) {
  const wanted = (one) => view.class === null || one.class === view.class;
  return {
    [FOUND]: image.found.filter((one) => wanted(one) && one.score >= view.score),
    [TRUTH]: image.truth.filter(wanted),
  };
}

/** Returns true if no detection with a sufficient score matches the object; false if unknown. */
export function isMissed(shape, view) {
  return shape.found_at !== undefined && shape.found_at < Math.max(view.score, 1e-9);
}

/** Returns a colour whose hue differs between classes. */
function hue(category) { return `hsl(${((35 + 137.508 * category) % 360).toFixed(0)} 90% 62%)`; }

export function colourOf(kind, shape, view) {
  if (view.colour === "class") return hue(shape.class);
  const isWrong = kind === FOUND ? Boolean(shape.note) : isMissed(shape, view);
  return isWrong ? (kind === FOUND ? "#ffb02e" : "#ff5a4f") : "#4fd18b";
}

export function wordsOf(kind, shape, view, classes) {
  const notes = [];
  if (kind === FOUND) notes.push(shape.score.toFixed(2));
  if (kind === TRUTH && isMissed(shape, view))
    notes.push("missed");
  else if (shape.note)
    notes.push(shape.note);
  return `${classes[shape.class] ?? `class ${shape.class}`} ${notes.join(", ")}`.trim();
}

/** Returns the kinds of shapes in each pane of a display mode. */
export function panesOf(show) {
  return {
    beside: [[FOUND], [TRUTH]],
    over: [[FOUND, TRUTH]],
    [FOUND]: [[FOUND]],
    [TRUTH]: [[TRUTH]]
  }[show];
}

function pathOf({box: [x, y, width, height], outline}) {
  if (!outline) return `M${x} ${y}h${width}v${height}h${- width}z`;
  return outline.map((ring) => `M${ring.slice(0, 2).join(" ")}L${ring.slice(2).join(" ")}z`)
      .join("");
}

/** Creates a photo with shapes of some kinds, largest first; `isLarge` adds dark edges. */
export function pane(image, kinds, view, classes, isLarge) {
  const shown = visible(image, view);
  const shapes = kinds.flatMap((kind) => shown[kind].map((shape) => ({kind, shape})));
  shapes.sort((a, b) => b.shape.box[2] * b.shape.box[3] - a.shape.box[2] * a.shape.box[3]);
  const about = `${image.name}, ${kinds.map((kind) => TITLES[kind]).join(" and ")}`;
  const photo = image.jpeg ?
      h("img", {alt: about, src: `data:image/jpeg;base64,${image.jpeg}`, decoding: "async"}) :
      h("span", {class: "lost", role: "img", "aria-label": `${about}: no picture`});
  const paths = shapes.map(({kind, shape}) => {
    const colour = colourOf(kind, shape, view), d = pathOf(shape);
    const style = kind === FOUND ? FOUND :
        isMissed(shape, view)    ? "missed" :
        kinds.length > 1         ? "annotated" :
                                   "";
    return [
      isLarge ? s("path", {class: "casing", d}) : null,
      s("path",
        {class: `${style}${shape.outline ? "" : " box"}`.trim(), stroke: colour, fill: colour, d},
        s("title", {}, wordsOf(kind, shape, view, classes)))
    ];
  });
  const svg =
      s("svg", {
        viewBox: `0 0 ${image.width} ${image.height}`,
        preserveAspectRatio: "none",
        "aria-hidden": "true"
      },
        paths);
  const element =
      h("span", {class: "pane", style: `--aspect: ${image.width / image.height}`},
        h("span", {class: "photo"}, photo, svg));
  return {element, svg, shapes};
}
