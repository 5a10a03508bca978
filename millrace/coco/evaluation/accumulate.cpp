#include "millrace/coco/evaluation/accumulate.h"

#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "millrace/coco/evaluation/summary.h"

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
  /// Gives each hit the best precision from there on: it changes nowhere else.
  void finish() {
    for (std::size_t h = hits_.size(); h > 1; --h)
      hits_[h - 2].precision = std::max(hits_[h - 2].precision, hits_[h - 1].precision);
  }
  const std::vector<Hit>& hits() const { return hits_; }

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
    tbb::parallel_for(std::size_t{0}, layout_.categories, [&](std::size_t k) {
      order(k);
      accumulate(k);
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

  void accumulate(std::size_t k) {
    Curves curves;
    curves.reserve(kAreas * layout_.limits * kThresholds);
    for (const std::int64_t truths : matches_.truths[k])
      for (std::size_t i = 0; i < layout_.limits * kThresholds; ++i)
        curves.emplace_back(static_cast<std::size_t>(truths));
    follow(k, curves);
    for (Curve& curve : curves) curve.finish();
    for (std::size_t t = 0; t < kThresholds; ++t) write(k, t, curves);
  }

  /// Goes through a category's detections, best first.
  void follow(std::size_t k, Curves& curves) const {
    std::vector<double> wrong(kAreas * layout_.limits, 0);  // at every threshold
    constexpr std::size_t kAhead = 8;                       // the order of scores is none in memory
    for (std::size_t i = matches_.first[k]; i < matches_.first[k + 1]; ++i) {
      if (i + kAhead < matches_.first[k + 1])
        __builtin_prefetch(&matches_.detections[order_[i + kAhead].detection]);
      const Scored& one = matches_.detections[order_[i].detection];
      std::size_t least = layout_.limits;  // that lets it in
      while (least > 0 && one.rank < out_.max_detections[least - 1]) --least;
      for (std::size_t a = 0; a < kAreas; ++a) {
        const auto [hit, ignored] = one.outcomes[a];
        const unsigned counted = kEveryThreshold & ~unsigned{ignored};
        const std::size_t begin = a * layout_.limits + least, end = (a + 1) * layout_.limits;
        if (hit == 0 && (counted == 0 || counted == kEveryThreshold)) {  // most are so
          for (std::size_t m = begin; m < end; ++m) wrong[m] += counted != 0;
          continue;
        }
        for (std::size_t m = begin; m < end; ++m) {
          for (unsigned left = counted; left != 0; left &= left - 1) {
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
  }

  /// Fills the rows of a category and threshold, in the order in which they lie in memory.
  void write(std::size_t k, std::size_t t, const Curves& curves) {
    const bool any = matches_.first[k] < matches_.first[k + 1];
    const double best = any ? matches_.detections[order_[matches_.first[k]].detection].score : 0;
    std::array<std::size_t, kAreas> needed;
    needed.fill(1);
    for (std::size_t r = 0; r < kRecalls; ++r) {
      for (std::size_t a = 0; a < kAreas; ++a) {
        const auto truths = static_cast<double>(matches_.truths[k][a]);
        if (truths == 0) continue;
        while (static_cast<double>(needed[a]) / truths < kRecallThresholds[r]) ++needed[a];
        for (std::size_t m = 0; m < layout_.limits; ++m) {
          const auto& hits = curves[(a * layout_.limits + m) * kThresholds + t].hits();
          const bool reached = needed[a] <= hits.size();
          const std::size_t at = layout_.at(t, r, k, a, m);
          out_.precision[at] = reached ? hits[needed[a] - 1].precision : 0;
          // Recall 0 is reached by the first detection, whatever it hit.
          out_.scores[at] = r == 0 ? best : reached ? hits[needed[a] - 1].score : 0;
          if (r == 0)
            out_.recall[layout_.at(t, k, a, m)] = static_cast<double>(hits.size()) / truths;
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

}  // namespace millrace::coco
