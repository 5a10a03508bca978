#include "millrace/coco/evaluation/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/coco/evaluation/summary.h"

namespace millrace::coco {
namespace {

/// The beginning of a partial result. The digest covers all bytes after it.
struct PartialHeader {
  char name[8] = {'m', 'r', 'e', 'v', 'a', 'l', '2', '\0'};
  std::uint64_t digest = 0;
  std::uint64_t setting = 0;
};

/// Precedes the detections of each image.
struct ImageHeader {
  std::uint32_t image = 0, unknown_categories = 0;
  std::uint64_t detections = 0;
};

template <typename T>
void put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Removes a value from the front of `bytes`. Returns false if there are too few bytes.
template <typename T>
bool take(std::string_view& bytes, T& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return true;
}

[[noreturn]] void fail(std::int64_t image_id, std::string_view why) {
  throw Error(fmt::format("evaluation: image {}: {}", image_id, why));
}

}  // namespace

Evaluator::Evaluator(std::shared_ptr<const Dataset> truth, EvaluateOptions options)
    : truth_(std::move(truth)),
      plan_(std::make_unique<const Plan>(*truth_, std::move(options))),
      state_(truth_->images.size()),
      matches_(truth_->images.size()) {}

Evaluator::~Evaluator() = default;

void Evaluator::add(std::int64_t image_id, std::span<const Detection> found) {
  const Image* image = truth_->find_image(image_id);
  if (!image) fail(image_id, "not in " + truth_->source);
  for (const Detection& one : found)
    if (one.image_id != image_id)
      fail(image_id, fmt::format("a detection belongs to image {}", one.image_id));
  const auto position = static_cast<std::size_t>(image - truth_->images.data());

  const Detections all(found);
  std::vector<std::uint32_t> indices(found.size());
  std::iota(indices.begin(), indices.end(), 0U);
  ImageMatches matches;
  const std::uint32_t unknown = match_image(*plan_, *image, all, indices, matches);

  const std::lock_guard lock(mutex_);
  if (state_[position].added) fail(image_id, "already added");
  state_[position] = {true, unknown};
  matches_[position] = std::move(matches);
}

std::size_t Evaluator::images() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count(state_, true, &State::added));
}

std::uint64_t Evaluator::setting() const {
  std::uint64_t all = digest(truth_->images.data(), truth_->images.size_bytes(), 0);
  all = digest(truth_->categories.data(), truth_->categories.size_bytes(), all);
  all = digest(truth_->annotations.data(), truth_->annotations.size_bytes(), all);
  const EvaluateOptions& options = plan_->options;
  if (is_of_masks(options.iou)) {
    all = digest(truth_->coordinates.data(), truth_->coordinates.size_bytes(), all);
    all = digest(truth_->polygon_ends.data(), truth_->polygon_ends.size_bytes(), all);
    all = digest(truth_->runs.data(), truth_->runs.size_bytes(), all);
  }
  if (options.iou == IouType::keypoints) {
    all = digest(truth_->keypoints.data(), truth_->keypoints.size_bytes(), all);
    all = digest(options.sigmas, all);
  }
  if (options.federated)
    all = digest(truth_->category_lists.data(), truth_->category_lists.size_bytes(), all);
  const std::uint32_t choices[] = {static_cast<std::uint32_t>(options.iou),
                                   static_cast<std::uint32_t>(options.area), options.class_agnostic,
                                   options.federated};
  all = digest(options.max_detections, digest(choices, sizeof choices, all));
  all = digest(options.category_ids, all);
  for (const AreaRange& range : options.area_ranges)
    all = digest(std::vector{range.low, range.high}, all);
  return digest(options.recall_thresholds, digest(options.iou_thresholds, all));
}

std::string Evaluator::partial() const {
  std::string body;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < state_.size(); ++i) {
      if (!state_[i].added) continue;
      put(body, ImageHeader{static_cast<std::uint32_t>(i), state_[i].unknown_categories,
                            matches_[i].detections.size()});
      for (const Scored& one : matches_[i].detections) put(body, one);
      for (const Outcome& one : matches_[i].outcomes) put(body, one);
    }
  }
  PartialHeader header;
  header.setting = setting();
  header.digest = digest(body.data(), body.size(), header.setting);
  std::string bytes;
  bytes.reserve(sizeof header + body.size());
  put(bytes, header);
  return bytes + body;
}

void Evaluator::merge(std::string_view partial) {
  PartialHeader header;
  const PartialHeader expected;
  if (!take(partial, header) || std::memcmp(header.name, expected.name, sizeof header.name) != 0 ||
      digest(partial.data(), partial.size(), header.setting) != header.digest)
    throw Error("evaluation: damaged partial result");
  if (header.setting != setting())
    throw Error(
        "evaluation: the partial result has another data set or other options than that of " +
        truth_->source);

  const Extent& extent = plan_->extent;
  const std::uint64_t bytes = sizeof(Scored) + extent.outcomes() * sizeof(Outcome);
  std::vector<std::pair<ImageHeader, ImageMatches>> images;
  while (!partial.empty()) {
    auto& [image, matches] = images.emplace_back();
    bool good = take(partial, image) && image.image < state_.size() &&
                image.detections <= partial.size() / bytes;
    if (good) {
      matches.detections.resize(image.detections);
      matches.outcomes.resize(image.detections * extent.outcomes());
    }
    for (Scored& one : matches.detections)
      good = good && take(partial, one) && one.category < extent.categories &&
             one.image == image.image;
    for (Outcome& one : matches.outcomes) good = good && take(partial, one);
    if (!good) throw Error("evaluation: damaged partial result");
  }

  const std::lock_guard lock(mutex_);
  for (const auto& [image, matches] : images)
    if (state_[image.image].added) fail(truth_->images[image.image].id, "in two partial results");
  for (auto& [image, matches] : images) {
    state_[image.image] = {true, image.unknown_categories};
    matches_[image.image] = std::move(matches);
  }
}

Matches Evaluator::matches(std::vector<std::uint32_t>& images) const {
  const std::lock_guard lock(mutex_);
  Matches matches = gather(matches_, plan_->extent);
  images.clear();
  for (std::size_t i = 0; i < state_.size(); ++i) {
    if (!state_[i].added) continue;
    images.push_back(static_cast<std::uint32_t>(i));
    count_truths(*plan_, truth_->images[i], matches.truths);
  }
  return matches;
}

Evaluation Evaluator::result(Scope scope) const {
  const std::lock_guard lock(mutex_);
  Matches matches = gather(matches_, plan_->extent);
  for (std::size_t i = 0; i < state_.size(); ++i) {
    matches.unknown_categories += state_[i].unknown_categories;
    if (state_[i].added || scope == Scope::all)
      count_truths(*plan_, truth_->images[i], matches.truths);
  }
  return accumulate(*plan_, matches);
}

}  // namespace millrace::coco
