// The detections of `trainer predict` in photos and videos (docs/predict.md).

import {h, section, tiles, verdict} from "./dom.js";
import {counted} from "./format.js";
import {Gallery} from "./gallery.js";
import {table} from "./table.js";

/** Returns the page of kind "predictions". */
export function predictionsPage({score, photos, videos}) {
  const all = h("code", {}, photos ? "detections.json" : "NAME.jsonl");
  return {
    title: "Detections",
    subtitle: [`Objects with a score of at least ${score}; `, all, " contains all."],
    top: photos ? [overview(photos), failures(photos.failed)] : [],
    sections: [
      photos ? section("classes", "Classes", classTable(photos.classes)) : null,
      photos ? section("photos", "Photos", ...photoParts(photos)) : null,
      videos.length > 0 ? section("videos", "Videos", ...videoParts(videos)) : null,
    ],
  };
}

function overview({count, objects, empty}) {
  return tiles([
    [objects, "objects"],
    [count, count === 1 ? "photo" : "photos"],
    [empty, "without objects"],
    [(count > 0 ? objects / count : 0).toFixed(1), "objects per photo"],
  ]);
}

function failures({count, first}) {
  return count > 0 ? verdict("warning", `${counted(count, "file")} failed: ${first.join("; ")}`) :
                     null;
}

function classTable(classes) {
  if (classes.length === 0) return h("p", {}, "No detections.");
  return table({
    rows: classes,
    search: "class",
    style: "narrow",
    sort: {column: 1, down: true},
    columns: [
      {name: "class", get: (one) => one.name}, {name: "objects", get: (one) => one.objects},
      {name: "photos", get: (one) => one.photos}
    ]
  });
}

function photoParts({count, pictures}) {
  const shown = pictures.images.length;
  return [
    shown < count ?
        h("p", {}, `${shown} of ${count} photos, at regular intervals, to keep the page below `,
          "5 MB. The folder has an image for each photo.") :
        null,
    new Gallery("found", pictures, "photo").element,
  ];
}

function videoParts(videos) {
  const said = ({counts, fault}) => {
    const found =
        Object.entries(counts ?? {}).map(([name, count]) => `${count} ${name}`).join(", ") ||
        "nothing";
    return fault ? `${found}; ${fault}` : found;
  };
  return [
    table({
      rows: videos,
      style: "wrapped",
      columns: [
        {name: "video", get: ({name}) => `${name}.mp4`},
        {name: "frames", get: ({frames}) => frames},
        {name: "objects, summed over all frames", words: true, get: said}
      ]
    }),
    ...videos.filter(({frames}) => frames > 0)
        .map(
            ({name}) =>
                h("figure", {}, h("video", {
                    controls: true,
                    preload: "metadata",
                    src: `./${encodeURIComponent(`${name}.mp4`)}`
                  }),
                  h("figcaption", {}, `${name}.mp4`))),
  ];
}
