#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <array>
#include <bit>

#include "millrace/coco/evaluation/precision_envelope.h"

namespace millrace::coco {
namespace {

/// A detection's place by falling score; of equals, by position.
struct Place {
  std::uint64_t fall;
  std::uint32_t detection;
  bool operator<(const Place& other) const {
    return fall != other.fall ? fall < other.fall : detection < other.detection;
  }
};

/// Precision over recall of a category's detections, best first, for one threshold and limit.
struct Curve {
  void add_right(std::uint64_t wrong_everywhere, double score, const RecallPoints& points) {
    ++right;
    const auto reached = envelope.hit(right, right + wrong + wrong_everywhere, points);
    while (scored <= reached) scores[scored++] = score;
  }

  PrecisionEnvelope envelope;
  std::array<double, kRecalls> scores{};  // score of the hit that reaches each recall
  std::size_t scored = 0;                 // recalls that are reached
  std::uint64_t right = 0;
  std::uint64_t wrong = 0;  // besides those that are wrong at every threshold
};

/// Turns matches into the tables of precision and recall.
class Accumulator {
 public:
  Accumulator(const Matches& matches, Evaluation& out)
      : matches_(matches), out_(out), layout_(out) {
    out_.recall.assign(kThresholds * layout_.categories * kAreas * layout_.limits, -1);
    out_.precision.assign(out_.recall.size() * kRecalls, -1);
    out_.scores = out_.precision;
  }

  void run() {
    order_.resize(matches_.detections.size());
    tbb::parallel_for(std::size_t{0}, layout_.categories, [&](std::size_t k) {
      order(k);
      Curves curves(kAreas * layout_.limits * kThresholds);
      follow(k, curves);
      for (std::size_t t = 0; t < kThresholds; ++t) write(k, t, curves);
    });
  }

 private:
  using Curves = std::vector<Curve>;  // (A, M, T)

  void order(std::size_t k) {
    const auto begin = order_.begin() + static_cast<std::ptrdiff_t>(matches_.first[k]);
    const auto end = order_.begin() + static_cast<std::ptrdiff_t>(matches_.first[k + 1]);
    auto i = static_cast<std::uint32_t>(matches_.first[k]);
    for (auto place = begin; place != end; ++place, ++i)
      *place = {score_fall(matches_.detections[i].score), i};
    tbb::parallel_sort(begin, end);
  }

  /// Goes through a category's detections, best first.
  void follow(std::size_t k, Curves& curves) const {
    std::vector<RecallPoints> points;
    for (const std::int64_t truths : matches_.truths[k])
      points.emplace_back(static_cast<std::uint64_t>(std::max<std::int64_t>(truths, 1)));
    std::vector<std::uint64_t> wrong(kAreas * layout_.limits, 0);  // at every threshold
    constexpr std::size_t kAhead = 8;  // detections to prefetch: in memory they are not by score
    for (std::size_t i = matches_.first[k]; i < matches_.first[k + 1]; ++i) {
      if (i + kAhead < matches_.first[k + 1])
        __builtin_prefetch(&matches_.detections[order_[i + kAhead].detection]);
      const Scored& one = matches_.detections[order_[i].detection];
      std::size_t least = layout_.limits;  // the least limit that it is within
      while (least > 0 && one.rank < out_.max_detections[least - 1]) --least;
      for (std::size_t a = 0; a < kAreas; ++a) {
        const auto [hit, ignored] = one.outcomes[a];
        const unsigned counted = kEveryThreshold & ~unsigned{ignored};
        const std::size_t begin = a * layout_.limits + least, end = (a + 1) * layout_.limits;
        if (hit == 0 && (counted == 0 || counted == kEveryThreshold)) {  // as most are
          for (std::size_t m = begin; m < end; ++m) wrong[m] += counted != 0;
          continue;
        }
        for (std::size_t m = begin; m < end; ++m)
          for (unsigned left = counted; left != 0; left &= left - 1) {
            const auto t = static_cast<std::size_t>(std::countr_zero(left));
            Curve& curve = curves[m * kThresholds + t];
            if (hit >> t & 1)
              curve.add_right(wrong[m], one.score, points[a]);
            else
              ++curve.wrong;
          }
      }
    }
  }

  /// Fills the rows of a category and threshold, in the order in which they lie in memory.
  void write(std::size_t k, std::size_t t, const Curves& curves) {
    const bool any = matches_.first[k] < matches_.first[k + 1];
    const double best = any ? matches_.detections[order_[matches_.first[k]].detection].score : 0;
    std::vector<std::array<double, kRecalls>> precision;  // (A, M)
    for (std::size_t i = 0; i < kAreas * layout_.limits; ++i)
      precision.push_back(curves[i * kThresholds + t].envelope.at_recalls());
    for (std::size_t r = 0; r < kRecalls; ++r) {
      for (std::size_t a = 0; a < kAreas; ++a) {
        if (matches_.truths[k][a] == 0) continue;
        for (std::size_t m = 0; m < layout_.limits; ++m) {
          const std::size_t at = layout_.at(t, r, k, a, m), i = a * layout_.limits + m;
          const Curve& curve = curves[i * kThresholds + t];
          out_.precision[at] = precision[i][r];
          // Recall 0 is reached by the first detection, whatever it hit.
          out_.scores[at] = r == 0 ? best : curve.scores[r];
          if (r == 0)
            out_.recall[layout_.at(t, k, a, m)] =
                static_cast<double>(curve.right) / static_cast<double>(matches_.truths[k][a]);
        }
      }
    }
  }

  const Matches& matches_;
  Evaluation& out_;
  Layout layout_;
  std::vector<Place> order_;  // as the matches, each category by falling score
};

}  // namespace

Evaluation accumulate(const Dataset& truth, const Matches& matches,
                      const EvaluateOptions& options) {
  Evaluation result;
  result.max_detections = options.max_detections;
  result.unknown_images = matches.unknown_images;
  result.unknown_categories = matches.unknown_categories;
  if (options.class_agnostic)
    result.category_ids = {-1};  // as pycocotools
  else
    for (const Category& category : truth.categories) result.category_ids.push_back(category.id);
  Accumulator(matches, result).run();
  summarize(result);
  return result;
}

Evaluation evaluate(const Dataset& truth, const Detections& detections,
                    const EvaluateOptions& options, std::span<const std::int64_t> image_ids) {
  const EvaluateOptions valid = checked(options);
  return in_arena(valid.threads, [&] {
    return accumulate(truth, match(truth, detections, valid, image_ids), valid);
  });
}

}  // namespace millrace::coco
