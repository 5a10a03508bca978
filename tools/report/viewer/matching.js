// Matches detections to objects by the rule of the confusion matrix (docs/evaluation.md).

const LEAST_IOU = 0.5;
export const BACKGROUND = -1;

function overlap([ax, ay, aw, ah], [bx, by, bw, bh]) {
  const width = Math.min(ax + aw, bx + bw) - Math.max(ax, bx);
  const height = Math.min(ay + ah, by + bh) - Math.max(ay, by);
  return Math.max(0, width) * Math.max(0, height);
}

function iou(a, b) {
  const shared = overlap(a, b);
  return shared / (a[2] * a[3] + b[2] * b[3] - shared);
}

/**
 * Returns pairs [object class, detection class] for an image's objects and its detections with a
 * score of at least `score`; BACKGROUND replaces an unmatched object or detection. In descending
 * order of score, each detection is matched to the unmatched object of any class with the highest
 * IoU, at least 0.5; if IoUs are equal, the detection's own class has priority. An unmatched
 * detection is ignored if at least half of its box is in a crowd of its class.
 */
export function confusions(image, score) {
  const objects = image.truth.filter((one) => !one.crowd).map((one) => ({...one, taken: false}));
  const crowds = image.truth.filter((one) => one.crowd);
  const pairs = [];
  for (const found of image.found.filter((one) => one.score >= score)
           .sort((a, b) => b.score - a.score)) {
    let best = null, most = LEAST_IOU;
    for (const object of objects) {
      if (object.taken) continue;
      const shared = iou(found.box, object.box);
      if (shared > most || (shared === most && (best === null || object.class === found.class))) {
        best = object;
        most = shared;
      }
    }
    if (best) {
      best.taken = true;
      pairs.push([best.class, found.class]);
    } else if (!crowds.some(
                   (crowd) => crowd.class === found.class &&
                       overlap(found.box, crowd.box) >= LEAST_IOU * found.box[2] * found.box[3])) {
      pairs.push([BACKGROUND, found.class]);
    }
  }
  for (const object of objects)
    if (!object.taken) pairs.push([object.class, BACKGROUND]);
  return pairs;
}
