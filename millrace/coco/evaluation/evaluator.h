// The evaluator for detections that come image by image, on one process or many.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/coco/evaluation/evaluate.h"
#include "millrace/coco/evaluation/matching.h"

namespace millrace::coco {

/// Scores detections as they come and keeps only what they hit. The result has the same bits as
/// `evaluate` of all of them at once, for any order of images, number of threads and split over
/// evaluators that are merged. Any thread may call anything.
class Evaluator {
 public:
  /// Which images the figures are about: those that were added, or all of the data set, as if
  /// nothing had been found in those that were not.
  enum class Scope { added, all };

  /// Throws std::invalid_argument as `evaluate`.
  Evaluator(std::shared_ptr<const Dataset> truth, EvaluateOptions options);
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// Takes all that was found in an image, in any order: matched at once, by the calling thread.
  /// Categories that the data set lacks are left out and counted. Throws Error naming the image: it
  /// is not in the data set, was added before, or a detection names another image, has neither box
  /// nor mask, or no mask where areas are taken from masks.
  void add(std::int64_t image_id, std::span<const Detection> found);

  /// The images that were added or merged.
  std::size_t images() const;

  /// All that is known, for `merge` elsewhere: on machines of the same byte order. Equal states
  /// give equal bytes.
  std::string partial() const;

  /// Adds what another evaluator of the same data set and options gave. Throws Error and changes
  /// nothing where it is of others, broken, or has an image that is here already.
  void merge(std::string_view partial);

  Evaluation result(Scope scope = Scope::added) const;

 private:
  struct State {
    bool added = false;
    std::uint32_t unknown_categories = 0;
  };

  std::uint64_t setting() const;  // a digest of data set and options

  std::shared_ptr<const Dataset> truth_;
  EvaluateOptions options_;
  mutable std::mutex mutex_;  // guards what follows, an entry an image
  std::vector<State> state_;
  std::vector<std::vector<Scored>> outcomes_;  // by category and falling score
};

}  // namespace millrace::coco
