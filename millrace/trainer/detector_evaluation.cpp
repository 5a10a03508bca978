#include "millrace/trainer/detector_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <utility>

#include "millrace/base/clock.h"
#include "millrace/base/errors.h"
#include "millrace/base/events/event_ring.h"
#include "millrace/coco/data/records.h"
#include "millrace/detector/make_detector.h"

namespace millrace {
namespace {

/// The annotations of the detector's classes.
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

/// The id of the last of so many images; 0: of all.
std::int64_t last_of(const coco::Dataset& truth, std::int64_t count) {
  if (count == 0 || count >= std::ssize(truth.images))
    return std::numeric_limits<std::int64_t>::max();
  return truth.images[static_cast<std::size_t>(count - 1)].id;
}

std::string ids(const Batch& batch) {
  std::string text;
  for (const auto& image : batch.images)
    text += (text.empty() ? "" : ", ") + std::to_string(image.image_id);
  return text;
}

}  // namespace

DetectorEvaluation::DetectorEvaluation(const DataSplit& split, EvaluationRun run)
    : DetectorEvaluation(truth_of(split), split.category_ids, std::move(run)) {}

DetectorEvaluation::DetectorEvaluation(const std::shared_ptr<const coco::Dataset>& truth,
                                       std::vector<std::int64_t> category_ids, EvaluationRun run)
    : run_(std::move(run)),
      last_image_(last_of(*truth, run_.max_images)),
      category_ids_(std::move(category_ids)),
      boxes_(truth, {.iou = coco::IouType::box}),
      masks_(truth, {.iou = coco::IouType::mask}) {
  if (!run_.proposals) return;
  proposals_.emplace(
      truth, coco::EvaluateOptions{.class_agnostic = true, .max_detections = {100, 300, 1000}});
  if (!truth->categories.empty()) any_category_ = truth->categories.front().id;
}

bool DetectorEvaluation::detect(Detector& detector, std::unique_ptr<DataFlow<Batch>> flow) {
  title_ = detector.title;
  gives_masks_ = detector.gives_masks();
  return go_through(std::move(flow), run_.watch, [&](const Batch& batch) {
    const Event event(EventKind::evaluation, "detect", "images " + ids(batch));
    bool has_enough = false;
    DetectionNotes notes;
    auto found = detect_with(detector, batch, proposals_ ? &notes : nullptr);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto id = batch.images[i].image_id;
      if (id <= last_image_) add(id, std::move(found[i]));
      if (id <= last_image_ && proposals_) add_proposals(id, notes.proposals[i]);
      has_enough |= id >= last_image_;
    }
    return !has_enough;
  });
}

void DetectorEvaluation::add(std::int64_t image_id, std::vector<DetectedObject> objects) {
  std::vector<coco::Detection> boxes, masks;
  for (auto& object : objects) {
    auto mask = std::exchange(object.mask, {});
    auto box = as_coco(std::move(object), image_id, category_ids_);
    if (box.category_id == kNoCategory) continue;  // of a class that is not evaluated
    boxes.push_back(std::move(box));
    if (mask.counts.empty()) continue;
    masks.push_back(boxes.back());
    masks.back().mask = std::move(mask);
  }
  boxes_.add(image_id, boxes);
  masks_.add(image_id, masks);
  found_ += std::ssize(boxes);
  masked_ += std::ssize(masks);
  if (!run_.keep_detections) return;
  for (const auto& one : masks.size() == boxes.size() ? masks : boxes) detections_.add(one);
}

void DetectorEvaluation::add_proposals(std::int64_t image_id,
                                       const std::vector<DetectedObject>& proposals) {
  std::vector<coco::Detection> boxes;
  for (const auto& one : proposals) boxes.push_back(as_coco(one, image_id, {any_category_}));
  proposals_->add(image_id, boxes);
}

std::string DetectorEvaluation::partial() const {
  const auto boxes = boxes_.partial(), masks = masks_.partial();
  const auto proposals = proposals_ ? proposals_->partial() : "";
  return fmt::format("{} {} {} {} {}\n", found_, masked_, boxes.size(), masks.size(),
                     proposals.size()) +
         boxes + masks + proposals + detections_.partial();
}

void DetectorEvaluation::merge(std::string_view partial) {
  std::int64_t found = 0, masked = 0;
  std::size_t boxes = 0, masks = 0, proposals = 0;
  const auto head = partial.substr(0, partial.find('\n'));
  partial.remove_prefix(std::min(head.size() + 1, partial.size()));
  if (std::istringstream words{std::string(head)};
      !(words >> found >> masked >> boxes >> masks >> proposals) || boxes > partial.size() ||
      masks > partial.size() - boxes || proposals > partial.size() - boxes - masks)
    throw Error("evaluation: the partial result is broken");
  boxes_.merge(partial.substr(0, boxes));
  masks_.merge(partial.substr(boxes, masks));
  if (proposals_) proposals_->merge(partial.substr(boxes + masks, proposals));
  detections_.append_partial(partial.substr(boxes + masks + proposals));
  found_ += found;
  masked_ += masked;
}

bool DetectorEvaluation::join(const Cluster& cluster, bool whole) {
  if (cluster.size() == 1) return whole;
  const auto partials = cluster.gather("evaluation", whole ? partial() : "");
  if (std::ranges::count(partials, "") > 0) return false;
  for (std::size_t other = 1; cluster.is_chief() && other < partials.size(); ++other)
    merge(partials[other]);
  if (cluster.is_chief()) detections_.sort_by_image();
  return true;
}

DetectorScores DetectorEvaluation::scores() {
  if (masked_ != 0 && masked_ != found_)
    throw Error(fmt::format("{} gave masks for {} of {} objects; it must for all or for none",
                            title_, masked_, found_));
  using Scope = coco::Evaluator::Scope;
  const auto scope = run_.max_images > 0 ? Scope::added : Scope::all;
  DetectorScores scores;
  scores.boxes = boxes_.result(scope);
  // Where nothing was found, only the detector can tell.
  if (gives_masks_ && masked_ == found_) scores.masks = masks_.result(scope);
  if (proposals_) scores.proposals = proposals_->result(scope);
  scores.detections = std::move(detections_);
  scores.images = static_cast<std::int64_t>(boxes_.images());
  scores.found = found_;
  scores.seconds = seconds_since(began_);
  return scores;
}

}  // namespace millrace
