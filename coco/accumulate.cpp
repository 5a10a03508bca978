#include "coco/accumulate.h"

#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "coco/summary.h"

namespace millrace::coco {
namespace {

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
    std::iota(order_.begin(), order_.end(), 0U);
    tbb::parallel_for(std::size_t{0}, layout_.categories, [&](std::size_t k) { order(k); });
    tbb::parallel_for(std::size_t{0}, layout_.categories * kAreas, [&](std::size_t i) {
      for (std::size_t m = 0; m < layout_.limits; ++m) accumulate(i / kAreas, i % kAreas, m);
    });
  }

 private:
  struct Item {
    double score;
    Outcome outcome;
  };
  struct Hit {
    double precision, score;
  };

  /// A category's detections by falling score; ties stay in the order of images.
  void order(std::size_t k) {
    const auto begin = order_.begin();
    tbb::parallel_sort(begin + static_cast<std::ptrdiff_t>(matches_.first[k]),
                       begin + static_cast<std::ptrdiff_t>(matches_.first[k + 1]),
                       [&](std::uint32_t a, std::uint32_t b) {
                         const double left = matches_.detections[a].score,
                                      right = matches_.detections[b].score;
                         if (scores_higher(left, right)) return true;
                         return !scores_higher(right, left) && a < b;
                       });
  }

  void accumulate(std::size_t k, std::size_t a, std::size_t m) {
    const auto truths = static_cast<double>(matches_.truths[k][a]);
    if (truths == 0) return;
    std::vector<Item> items;
    items.reserve(matches_.first[k + 1] - matches_.first[k]);
    for (std::size_t i = matches_.first[k]; i < matches_.first[k + 1]; ++i) {
      const Scored& one = matches_.detections[order_[i]];
      if (one.rank < out_.max_detections[m]) items.push_back({one.score, one.outcomes[a]});
    }
    for (std::size_t t = 0; t < kThresholds; ++t) {
      const auto hits = hits_of(items, t);
      out_.recall[layout_.at(t, k, a, m)] = static_cast<double>(hits.size()) / truths;
      for (std::size_t r = 0; r < kRecalls; ++r) {
        out_.precision[layout_.at(t, r, k, a, m)] = out_.scores[layout_.at(t, r, k, a, m)] = 0;
      }
      if (items.empty()) continue;
      // Recall 0 is reached by the first detection, whatever it hit.
      out_.precision[layout_.at(t, 0, k, a, m)] = hits.empty() ? 0 : hits[0].precision;
      out_.scores[layout_.at(t, 0, k, a, m)] = items[0].score;
      for (std::size_t r = 1, h = 0; r < kRecalls; ++r) {
        while (h < hits.size() && static_cast<double>(h + 1) / truths < kRecallThresholds[r]) ++h;
        if (h == hits.size()) break;
        out_.precision[layout_.at(t, r, k, a, m)] = hits[h].precision;
        out_.scores[layout_.at(t, r, k, a, m)] = hits[h].score;
      }
    }
  }

  /// The hits at one threshold with the best precision from there on. Recall and the envelope of precision change
  /// nowhere else.
  static std::vector<Hit> hits_of(const std::vector<Item>& items, std::size_t t) {
    constexpr double kSpacing = std::numeric_limits<double>::epsilon();  // numpy.spacing(1)
    std::vector<Hit> hits;
    double right = 0, wrong = 0;
    for (const Item& item : items) {
      if (item.outcome.ignored >> t & 1) continue;
      if (item.outcome.hit >> t & 1) {
        ++right;
        hits.push_back({right / (wrong + right + kSpacing), item.score});
      } else {
        ++wrong;
      }
    }
    for (std::size_t h = hits.size(); h > 1; --h) {
      hits[h - 2].precision = std::max(hits[h - 2].precision, hits[h - 1].precision);
    }
    return hits;
  }

  const Matches& matches_;
  Evaluation& out_;
  Layout layout_;
  std::vector<std::uint32_t> order_;
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
