#include "trainer/detector_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "coco/records.h"

namespace millrace {
namespace {

/// The annotations of the classes that the detector knows: the others are not its task.
std::shared_ptr<const coco::Dataset> truth_of(const DataSplit& split) {
  const auto& all = *split.annotations;
  const auto counts = [&](std::int64_t category) {
    return std::ranges::count(split.category_ids, category) > 0;
  };
  if (std::ranges::all_of(all.categories, counts, &coco::Category::id)) return split.annotations;
  coco::Records part;
  for (const auto& category : all.categories)
    if (counts(category.id)) part.add_category(category.id, all.text(category.name));
  for (const auto& image : all.images) {
    part.add_image(image.id, all.text(image.file_name), image.width, image.height);
    for (const auto& object : all.objects(image))
      if (counts(object.category_id)) part.add(object, all.segmentation(object));
  }
  return assemble(std::move(part), all.source);
}

}  // namespace

DetectorEvaluation::DetectorEvaluation(const DataSplit& split, EvaluationRun run)
    : run_(std::move(run)), category_ids_(split.category_ids), truth_(truth_of(split)) {}

bool DetectorEvaluation::detect(Detector& detector, DataFlow<Batch>& flow) {
  while (!has_enough()) {
    if (run_.cancelled()) return false;
    const auto batch = flow.next();
    if (!batch) break;
    auto found = detector.detect(batch->value);
    if (found.size() != batch->value.size())
      throw Error(fmt::format("the detector answered for {} of {} images", found.size(),
                              batch->value.size()));
    for (std::size_t i = 0; i < found.size() && !has_enough(); ++i)
      add(batch->value.images[i].image_id, std::move(found[i]));
  }
  return true;
}

void DetectorEvaluation::add(std::int64_t image_id, std::vector<DetectedObject> objects) {
  seen_.push_back(image_id);
  for (auto& object : objects)
    detections_.push_back(as_coco(std::move(object), image_id, category_ids_));
  images_ += 1;
}

DetectorScores DetectorEvaluation::scores() {
  DetectorScores scores;
  scores.images = images_;
  scores.found = std::ssize(detections_);
  if (run_.max_images <= 0)
    seen_.clear();  // every image of the data set, also those that could not be read
  const auto score = [&](coco::IouType iou) {
    return coco::evaluate(*truth_, detections_, {.iou = iou, .threads = run_.threads}, seen_);
  };
  scores.boxes = score(coco::IouType::box);
  const bool has_masks = std::any_of(detections_.begin(), detections_.end(),
                                     [](const auto& d) { return !d.mask.counts.empty(); });
  if (has_masks || detections_.empty()) scores.masks = score(coco::IouType::mask);
  if (run_.keep_detections) scores.detections = std::move(detections_);
  scores.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  return scores;
}

}  // namespace millrace
