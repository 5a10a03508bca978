#include "coco/accumulate.h"

#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "coco/recall_points.h"
#include "coco/summary.h"

namespace millrace::coco {
namespace {

/// A detection's place by falling score; of equals, by position.
struct Place {
  std::uint64_t fall;
  std::uint32_t detection;

  /// Ascends as scores fall, NaN last.
  static std::uint64_t fall_of(double score) {
    if (score != score) return std::numeric_limits<std::uint64_t>::max();
    constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
    const auto bits = std::bit_cast<std::uint64_t>(0.0 - score);  // never -0: that equals 0
    return bits & kSign ? ~bits : bits | kSign;
  }
  friend auto operator<=>(const Place&, const Place&) = default;
};

/// What one threshold and limit make of a category's detections, best first.
class Curve {
 public:
  struct Hit {
    double precision, score;
  };

  /// At most so many can be right.
  explicit Curve(std::size_t truths) { hits_.reserve(truths); }

  void add_wrong() { ++wrong_; }
  /// `wrong_everywhere` were wrong besides those that were added.
  void add_right(double wrong_everywhere, double score) {
    constexpr double kSpacing = std::numeric_limits<double>::epsilon();  // numpy.spacing(1)
    const auto right = static_cast<double>(hits_.size() + 1);
    hits_.push_back({right / (wrong_ + wrong_everywhere + right + kSpacing), score});
  }
  /// The right ones, each with the best precision from there on: it changes nowhere else.
  std::span<const Hit> finish() {
    for (std::size_t h = hits_.size(); h > 1; --h)
      hits_[h - 2].precision = std::max(hits_[h - 2].precision, hits_[h - 1].precision);
    return hits_;
  }

 private:
  std::vector<Hit> hits_;
  double wrong_ = 0;
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
    tbb::parallel_for(std::size_t{0}, layout_.categories, [&](std::size_t k) { order(k); });
    tbb::parallel_for(std::size_t{0}, layout_.categories * kAreas,
                      [&](std::size_t i) { accumulate(i / kAreas, i % kAreas); });
  }

 private:
  void order(std::size_t k) {
    for (std::size_t i = matches_.first[k]; i < matches_.first[k + 1]; ++i)
      order_[i] = {Place::fall_of(matches_.detections[i].score), static_cast<std::uint32_t>(i)};
    const auto begin = order_.begin();
    tbb::parallel_sort(begin + static_cast<std::ptrdiff_t>(matches_.first[k]),
                       begin + static_cast<std::ptrdiff_t>(matches_.first[k + 1]));
  }

  void accumulate(std::size_t k, std::size_t a) {
    const auto truths = static_cast<std::size_t>(matches_.truths[k][a]);
    if (truths == 0) return;
    std::vector<Curve> curves;
    curves.reserve(layout_.limits * kThresholds);
    while (curves.size() < layout_.limits * kThresholds) curves.emplace_back(truths);
    follow(k, a, curves);

    const RecallPoints needed(truths);
    const double best = matches_.first[k] == matches_.first[k + 1] ? 0 : best_score(k);
    for (std::size_t t = 0; t < kThresholds; ++t) {
      for (std::size_t m = 0; m < layout_.limits; ++m) {
        const auto hits = curves[m * kThresholds + t].finish();
        out_.recall[layout_.at(t, k, a, m)] =
            static_cast<double>(hits.size()) / static_cast<double>(truths);
        for (std::size_t r = 0; r < kRecalls; ++r) {
          const bool reached = needed[r] <= hits.size();
          const std::size_t at = layout_.at(t, r, k, a, m);
          out_.precision[at] = reached ? hits[needed[r] - 1].precision : 0;
          out_.scores[at] = reached ? hits[needed[r] - 1].score : 0;
        }
        out_.scores[layout_.at(t, 0, k, a, m)] = best;  // whatever it hit
      }
    }
  }

  /// Goes through a category's detections, best first.
  void follow(std::size_t k, std::size_t a, std::span<Curve> curves) const {
    constexpr unsigned kEvery = (1U << kThresholds) - 1;
    std::vector<double> wrong(layout_.limits, 0);  // at every threshold
    for (std::size_t i = matches_.first[k]; i < matches_.first[k + 1]; ++i) {
      const Scored& one = matches_.detections[order_[i].detection];
      const auto [hit, ignored] = one.outcomes[a];
      for (std::size_t m = layout_.limits; m-- > 0 && one.rank < out_.max_detections[m];) {
        if ((hit | ignored) == 0) {
          ++wrong[m];
          continue;
        }
        for (unsigned left = kEvery & ~unsigned{ignored}; left != 0; left &= left - 1) {
          const auto t = static_cast<std::size_t>(std::countr_zero(left));
          Curve& curve = curves[m * kThresholds + t];
          if (hit >> t & 1)
            curve.add_right(wrong[m], one.score);
          else
            curve.add_wrong();
        }
      }
    }
  }

  double best_score(std::size_t k) const {
    return matches_.detections[order_[matches_.first[k]].detection].score;
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

}  // namespace millrace::coco
