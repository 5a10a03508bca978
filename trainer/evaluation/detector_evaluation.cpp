#include "millrace/trainer/evaluation/detector_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/events/event_ring.h"
#include "millrace/coco/data/records.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/trainer/cluster/gather_values.h"

namespace millrace {

inline auto members(EvaluationPart& part) {
  return std::tie(part.objects, part.masks, part.box_matches, part.mask_matches,
                  part.boundary_matches, part.proposal_matches, part.detections);
}

namespace {

/// Returns the annotations of the detector's classes.
std::shared_ptr<const coco::Dataset> truth_of(const DataSplit& split) {
  const auto& all = *split.annotations;
  const auto counts = [&](std::int64_t category) {
    return std::ranges::count(split.category_ids, category) > 0;
  };
  if (std::ranges::all_of(all.categories, counts, &coco::Category::id)) return split.annotations;
  std::map<std::int64_t, std::int64_t> own;
  for (const auto& category : all.categories)
    if (counts(category.id)) own.emplace(category.id, category.id);
  std::vector<std::size_t> images(all.images.size());
  std::iota(images.begin(), images.end(), std::size_t{0});
  return coco::subset(all, images, own);
}

/// Returns the id of the last of the first `count` images; the maximum id for 0 or for all images.
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
    : run_(std::move(run)),
      truth_(truth_of(split)),
      last_image_(last_of(*truth_, run_.max_images)),
      category_ids_(split.category_ids),
      limit_(limit_cost(split, run_)),
      boxes_(truth_,
             coco::options_for(*split.annotations, coco::IouType::box, run_.max_detections)),
      masks_(truth_,
             coco::options_for(*split.annotations, coco::IouType::mask, run_.max_detections)) {
  if (run_.boundary)
    boundaries_.emplace(truth_, coco::options_for(*split.annotations, coco::IouType::boundary,
                                                  run_.max_detections));
  if (!run_.proposals) return;
  proposals_.emplace(
      truth_, coco::EvaluateOptions{.class_agnostic = true, .max_detections = {100, 300, 1000}});
  if (!truth_->categories.empty()) any_category_ = truth_->categories.front().id;
}

bool DetectorEvaluation::detect(Detector& detector, std::unique_ptr<DataFlow<Batch>> flow) {
  title_ = detector.title();
  gives_masks_ = detector.gives_masks();
  return go_through(std::move(flow), run_.watch, [&](const Batch& batch) {
    const Event event(EventKind::evaluation, "detect", "images " + ids(batch));
    bool has_enough = false;
    DetectionNotes notes;
    auto found = detector.detect(batch, proposals_ ? &notes : nullptr);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto id = batch.images[i].image_id;
      if (id <= last_image_) add(id, std::move(found[i]));
      if (id <= last_image_ && proposals_) add_proposals(id, notes.proposals[i]);
      has_enough |= id >= last_image_;
    }
    run_.so_far(boxes_);
    return !has_enough;
  });
}

void DetectorEvaluation::add(std::int64_t image_id, std::vector<DetectedObject> objects) {
  std::vector<coco::Detection> boxes, masks;
  for (auto& object : objects) {
    auto mask = std::exchange(object.mask, {});
    auto box = as_coco(std::move(object), image_id, category_ids_);
    if (box.category_id == kNoCategory) continue;  // object of a class that is not evaluated
    boxes.push_back(std::move(box));
    if (mask.counts.empty()) continue;
    masks.push_back(boxes.back());
    masks.back().mask = std::move(mask);
  }
  boxes_.add(image_id, boxes);
  masks_.add(image_id, masks);
  if (boundaries_) boundaries_->add(image_id, masks);
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

EvaluationPart DetectorEvaluation::part() const {
  return {found_,
          masked_,
          boxes_.partial(),
          masks_.partial(),
          boundaries_ ? boundaries_->partial() : "",
          proposals_ ? proposals_->partial() : "",
          detections_.partial()};
}

void DetectorEvaluation::merge(const EvaluationPart& part) {
  boxes_.merge(part.box_matches);
  masks_.merge(part.mask_matches);
  if (boundaries_) boundaries_->merge(part.boundary_matches);
  if (proposals_) proposals_->merge(part.proposal_matches);
  detections_.append_partial(part.detections);
  found_ += part.objects;
  masked_ += part.masks;
}

bool DetectorEvaluation::join(const Cluster& cluster, bool whole) {
  if (cluster.size() == 1) return whole;
  const auto parts =
      gather_values(cluster, "evaluation", whole ? std::optional(part()) : std::nullopt);
  if (!std::ranges::all_of(parts, [](const auto& one) { return one.has_value(); })) return false;
  for (std::size_t other = 1; cluster.is_chief() && other < parts.size(); ++other)
    merge(*parts[other]);
  if (cluster.is_chief()) detections_.sort_by_image();
  return true;
}

DetectorScores DetectorEvaluation::scores() {
  if (masked_ != 0 && masked_ != found_)
    throw Error(fmt::format(
        "{} returned masks for {} of {} objects; it must return them for all or for none", title_,
        masked_, found_));
  using Scope = coco::Evaluator::Scope;
  const auto scope = run_.max_images > 0 ? Scope::added : Scope::all;
  DetectorScores scores;
  scores.boxes = boxes_.result(scope);
  // If nothing was found, only the detector can tell whether it gives masks.
  if (gives_masks_ && masked_ == found_) {
    scores.masks = masks_.result(scope);
    if (boundaries_) scores.boundaries = boundaries_->result(scope);
  }
  if (proposals_) scores.proposals = proposals_->result(scope);
  scores.detections = std::move(detections_);
  scores.images = static_cast<std::int64_t>(boxes_.images());
  scores.found = found_;
  scores.limit = limit_;
  scores.seconds = seconds_since(began_);
  return scores;
}

}  // namespace millrace
