#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_invoke.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>

#include "millrace/coco/evaluation/precision_envelope.h"
#include "millrace/coco/evaluation/summary.h"

namespace millrace::coco {
namespace {

/// The sort key of a detection: falling score, then position.
struct Place {
  std::uint64_t score_key;
  std::uint32_t detection;
};

/// Sorts places that are ordered by position. `spare` is memory of the same size.
void sort_places(std::span<Place> places, std::span<Place> spare) {
  constexpr std::size_t kFew = 256;  // size below which a comparison sort is as fast
  if (places.size() < kFew) {
    std::ranges::stable_sort(places, {}, &Place::score_key);
    return;
  }
  // Radix sort, last digit first, skipping digits with equal values everywhere.
  constexpr unsigned kDigitBits = 11;
  constexpr std::size_t kDigits = (64 + kDigitBits - 1) / kDigitBits, kValues = 1U << kDigitBits;
  const auto digit = [](const Place& place, std::size_t i) {
    return static_cast<std::size_t>(place.score_key >> (i * kDigitBits)) % kValues;
  };
  std::array<std::array<std::uint32_t, kValues>, kDigits> begins{};
  for (const Place& place : places)
    for (std::size_t i = 0; i < kDigits; ++i) ++begins[i][digit(place, i)];
  std::span<Place> from = places, to = spare;
  for (std::size_t i = 0; i < kDigits; ++i) {
    auto& begin = begins[i];
    if (begin[digit(from[0], i)] == from.size()) continue;
    for (std::uint32_t sum = 0; std::uint32_t & one : begin) sum += std::exchange(one, sum);
    for (const Place& place : from) to[begin[digit(place, i)]++] = place;
    std::swap(from, to);
  }
  if (from.data() != places.data()) std::ranges::copy(from, places.begin());
}

/// Computes the tables of precision and recall from matches.
class Accumulator {
 public:
  Accumulator(const Matches& matches, Evaluation& out)
      : matches_(matches),
        out_(out),
        extent_(matches.extent),
        layout_{out.recall_thresholds.size(), extent_.categories, extent_.areas,
                out.max_detections.size()},
        recalls_(out.recall_thresholds),
        in_order_(std::ranges::is_sorted(out.recall_thresholds)) {
    const std::size_t rows =
        extent_.thresholds * layout_.categories * layout_.areas * layout_.limits;
    out_.recall.assign(rows, -1);
    tbb::parallel_invoke([&] { out_.precision.assign(rows * layout_.recalls, -1); },
                         [&] { out_.scores.assign(rows * layout_.recalls, -1); });
  }

  void run() {
    // Largest categories first, so that no thread is left with a large one at the end.
    std::vector<std::size_t> categories(layout_.categories);
    std::iota(categories.begin(), categories.end(), std::size_t{0});
    std::ranges::stable_sort(categories, std::greater(),
                             [&](std::size_t k) { return matches_.of(k).size(); });
    tbb::enumerable_thread_specific<Worker> workers;
    const auto one = [&](std::size_t i) {
      const std::size_t k = categories[i];
      Worker& worker = workers.local();
      order(k, worker);
      worker.curves.reset(layout_.areas * layout_.limits * extent_.thresholds, recalls_.size());
      follow(k, worker);
      for (std::size_t t = 0; t < extent_.thresholds; ++t) write(k, t, worker);
    };
    tbb::parallel_for(std::size_t{0}, categories.size(), one, tbb::simple_partitioner());
  }

 private:
  /// Precision over recall of a category's detections, best first, for one IoU threshold and one
  /// detection limit.
  struct Curve {
    Curve(std::span<double> precision, std::span<double> of_hits)
        : envelope(precision), best(precision), scores(of_hits) {}

    void add_right(std::uint64_t wrong_everywhere, double score, const RecallPoints& points) {
      ++right;
      const auto reached = envelope.hit(right, right + wrong + wrong_everywhere, points);
      while (scored <= reached) scores[scored++] = score;
    }

    PrecisionEnvelope envelope;
    std::span<double> best;
    std::span<double> scores;  // score of the hit that reaches each recall threshold
    std::size_t scored = 0;    // number of recall thresholds reached
    std::uint64_t right = 0;
    std::uint64_t wrong = 0;  // excluding detections that are wrong at every threshold
  };

  /// The curves of a category, [A, M, T], in reused memory.
  class Curves {
   public:
    void reset(std::size_t count, std::size_t recalls) {
      memory_.assign(count * recalls * 2, 0);
      curves_.clear();
      double* at = memory_.data();
      for (std::size_t i = 0; i < count; ++i, at += 2 * recalls)
        curves_.emplace_back(std::span(at, recalls), std::span(at + recalls, recalls));
    }
    Curve& operator[](std::size_t i) { return curves_[i]; }

   private:
    std::vector<double> memory_;
    std::vector<Curve> curves_;
  };

  /// The memory of a thread, reused for each of its categories.
  struct Worker {
    std::vector<Place> order;  // detections of the category by falling score
    std::vector<Place> spare;
    Curves curves;
    std::vector<Curve*> columns;  // see `write`
  };

  void order(std::size_t k, Worker& worker) const {
    const auto own = matches_.of(k);
    worker.order.clear();
    worker.order.reserve(own.size());
    for (const std::uint32_t i : own)
      worker.order.push_back({descending_score_key(matches_.detections[i].score), i});
    worker.spare.resize(own.size());
    sort_places(worker.order, worker.spare);
  }

  /// Adds a category's detections to the curves, best first.
  void follow(std::size_t k, Worker& worker) const {
    const auto& order = worker.order;
    Curves& curves = worker.curves;
    const std::size_t areas = layout_.areas, limits = layout_.limits, words = extent_.words();
    std::vector<RecallPoints> points;
    for (const std::int64_t truths : truths_of(k))
      points.emplace_back(static_cast<std::uint64_t>(std::max<std::int64_t>(truths, 1)), recalls_);
    // [A, words, M] Number of detections that are wrong at every threshold of a word, by the
    // smallest limit that includes them.
    std::vector<std::uint64_t> wrong(areas * words * limits, 0);
    constexpr std::size_t kAhead = 8;  // detections to prefetch, since they are not stored by score
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i + kAhead < order.size()) {
        const std::size_t next = order[i + kAhead].detection;
        __builtin_prefetch(&matches_.detections[next]);
        __builtin_prefetch(&matches_.outcomes[next * extent_.outcomes()]);
      }
      const std::size_t at = order[i].detection;
      const Scored& one = matches_.detections[at];
      std::size_t least = limits;  // index of the smallest limit that includes the detection
      while (least > 0 && one.rank < out_.max_detections[least - 1]) --least;
      if (least == limits) continue;
      const Outcome* outcome = &matches_.outcomes[at * extent_.outcomes()];
      for (std::size_t a = 0; a < areas; ++a)
        for (std::size_t w = 0; w < words; ++w, ++outcome) {
          const unsigned all = extent_.all_bits(w), counted = all & ~unsigned{outcome->ignored};
          std::uint64_t* const wrong_here = wrong.data() + (a * words + w) * limits;
          if (outcome->hit == 0 && (counted == 0 || counted == all)) {  // the usual case
            wrong_here[least] += counted != 0;
            continue;
          }
          std::uint64_t wrong_everywhere = 0;
          for (std::size_t m = 0; m < limits; ++m) {
            wrong_everywhere += wrong_here[m];
            if (m < least) continue;
            for (unsigned left = counted; left != 0; left &= left - 1) {
              const auto bit = static_cast<std::size_t>(std::countr_zero(left));
              Curve& curve = curves[(a * limits + m) * extent_.thresholds + w * kWordBits + bit];
              if (outcome->hit >> bit & 1)
                curve.add_right(wrong_everywhere, one.score, points[a]);
              else
                ++curve.wrong;
            }
          }
        }
    }
  }

  /// Fills the table rows of a category and threshold in memory order.
  void write(std::size_t k, std::size_t t, Worker& worker) {
    const bool any = !worker.order.empty();
    const double best = any ? matches_.detections[worker.order[0].detection].score : 0;
    const auto truths = truths_of(k);
    std::vector<Curve*>& curves = worker.columns;  // [A, M]; nullptr if there are no objects
    curves.clear();
    for (std::size_t a = 0; a < layout_.areas; ++a)
      for (std::size_t m = 0; m < layout_.limits; ++m) {
        if (truths[a] == 0) {
          curves.push_back(nullptr);
          continue;
        }
        Curve& curve = worker.curves[(a * layout_.limits + m) * extent_.thresholds + t];
        curve.envelope.finish();
        curve.scores[0] = best;  // the first detection reaches recall 0, whatever it hit
        out_.recall[layout_.at(t, k, a, m)] =
            static_cast<double>(curve.right) / static_cast<double>(truths[a]);
        if (!in_order_) curve.scored = std::max<std::size_t>(curve.scored, any);
        curves.push_back(&curve);
      }
    for (std::size_t r = 0; r < layout_.recalls; ++r) {
      const std::size_t position = recalls_.position(r), row = layout_.at(t, r, k, 0, 0);
      double* const precision = &out_.precision[row];
      double* const scores = &out_.scores[row];
      for (std::size_t i = 0; i < curves.size(); ++i) {
        if (!curves[i]) continue;
        Curve& curve = *curves[i];
        // pycocotools stops at the first recall threshold, in the given order, that is not reached.
        if (!in_order_ && position >= curve.scored) curve.scored = 0;
        const bool ended = !in_order_ && curve.scored == 0;
        precision[i] = ended ? 0 : curve.best[position];
        scores[i] = ended ? 0 : curve.scores[position];
      }
    }
  }

  std::span<const std::int64_t> truths_of(std::size_t k) const {
    return std::span(matches_.truths).subspan(k * layout_.areas, layout_.areas);
  }

  const Matches& matches_;
  Evaluation& out_;
  Extent extent_;
  Layout layout_;
  Recalls recalls_;
  bool in_order_;  // true if the recall thresholds are ascending
};

}  // namespace

Evaluation accumulate(const Plan& plan, const Matches& matches) {
  const EvaluateOptions& options = plan.options;
  Evaluation result;
  result.iou = options.iou;
  result.federated = options.federated;
  result.max_detections = options.max_detections;
  result.of_largest = options.of_largest;
  result.iou_thresholds = options.iou_thresholds;
  result.recall_thresholds = options.recall_thresholds;
  result.area_ranges = options.area_ranges;
  result.unknown_images = matches.unknown_images;
  result.unknown_categories = matches.unknown_categories;
  // Joined categories have the id -1, as in pycocotools.
  result.category_ids =
      options.class_agnostic ? std::vector<std::int64_t>{-1} : plan.category.ids();
  for (const std::int64_t id : result.category_ids) {
    const int k = plan.truth.category_index(id);
    result.category_frequencies +=
        k < 0 ? '\0' : plan.truth.categories[static_cast<std::size_t>(k)].frequency;
  }
  Accumulator(matches, result).run();
  summarize(result);
  return result;
}

Evaluation evaluate(const Dataset& truth, const Detections& detections,
                    const EvaluateOptions& options, std::span<const std::int64_t> image_ids) {
  const Plan plan(truth, options);
  return in_arena(options.threads,
                  [&] { return accumulate(plan, match(plan, detections, image_ids)); });
}

}  // namespace millrace::coco
