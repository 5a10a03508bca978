#include "coco/matching.h"

#include <tbb/parallel_for.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <tuple>

#include "coco/overlaps.h"

namespace millrace::coco {
namespace {

struct Range {
  double low, high;  // both ends belong to it
  bool has(double area) const { return !(area < low || area > high); }
};
constexpr Range kAreaRanges[kAreas] = {
    {0, 1e10}, {0, 32 * 32}, {32 * 32, 96 * 96}, {96 * 96, 1e10}};

/// An object or a detection and where it belongs.
struct Entry {
  std::uint64_t cell;      // category-major, then image
  std::uint32_t category;  // orders objects of one cell where categories are joined
  std::uint32_t index;
  double score = 0;

  bool operator<(const Entry& other) const {
    if (cell != other.cell) return cell < other.cell;
    if (scores_higher(score, other.score)) return true;
    if (scores_higher(other.score, score)) return false;
    return std::tie(category, index) < std::tie(other.category, other.index);
  }
};

/// An image and category that has objects or detections.
struct Cell {
  std::uint64_t id;
  std::span<const Entry> truths, detections;
  std::size_t first;  // its detections in Matches::detections
};

class Matcher {
 public:
  Matcher(const Dataset& truth, std::span<const Detection> detections,
          const EvaluateOptions& options, std::span<const std::int64_t> image_ids)
      : truth_(truth),
        detections_(detections),
        masks_(options.iou == IouType::mask),
        joined_(options.class_agnostic),
        // pycocotools looks at the first result only.
        area_of_box_(!detections.empty() && detections[0].has_bbox),
        chosen_(truth.images.size(), image_ids.empty()) {
    for (const std::int64_t id : image_ids) {
      if (const Image* image = truth_.find_image(id)) chosen_[position(*image)] = true;
    }
  }

  Matches run() {
    list_truths();
    list_detections();
    list_cells();
    tbb::parallel_for(std::size_t{0}, cells_.size(), [&](std::size_t i) { match(cells_[i]); });
    return std::move(matches_);
  }

 private:
  std::size_t position(const Image& image) const {
    return static_cast<std::size_t>(&image - truth_.images.data());
  }

  Entry entry(std::size_t image, int category, std::size_t index) const {
    const auto k = static_cast<std::uint32_t>(category);
    return {(joined_ ? 0 : k) * truth_.images.size() + image, k, static_cast<std::uint32_t>(index)};
  }

  void list_truths() {
    for (std::size_t i = 0; i < truth_.images.size(); ++i) {
      if (!chosen_[i]) continue;
      const Image& image = truth_.images[i];
      for (std::uint32_t k = image.first; k < image.first + image.count; ++k) {
        truths_.push_back(entry(i, truth_.category_index(truth_.annotations[k].category_id), k));
      }
    }
    tbb::parallel_sort(truths_.begin(), truths_.end());
  }

  void list_detections() {
    found_.reserve(detections_.size());
    const Image* image = nullptr;
    for (std::size_t i = 0; i < detections_.size(); ++i) {
      const Detection& one = detections_[i];
      if (!image || image->id != one.image_id) image = truth_.find_image(one.image_id);
      const int category = truth_.category_index(one.category_id);
      if (!image || category < 0 || !chosen_[position(*image)]) continue;
      found_.push_back(entry(position(*image), category, i));
      found_.back().score = one.score;
    }
    tbb::parallel_sort(found_.begin(), found_.end());
  }

  void list_cells() {
    const std::size_t categories = joined_ ? 1 : truth_.categories.size();
    matches_.first.assign(categories + 1, 0);
    matches_.truths.resize(categories);
    std::size_t total = 0;
    for (std::size_t t = 0, d = 0; t < truths_.size() || d < found_.size();) {
      const std::uint64_t id = std::min(t < truths_.size() ? truths_[t].cell : UINT64_MAX,
                                        d < found_.size() ? found_[d].cell : UINT64_MAX);
      const std::size_t t_begin = t, d_begin = d;
      while (t < truths_.size() && truths_[t].cell == id) ++t;
      while (d < found_.size() && found_[d].cell == id) ++d;
      const std::size_t kept = std::min<std::size_t>(d - d_begin, kMostDetections);
      cells_.push_back({id, std::span(truths_).subspan(t_begin, t - t_begin),
                        std::span(found_).subspan(d_begin, kept), total});
      total += kept;
      const std::size_t category = id / truth_.images.size();
      matches_.first[category + 1] = total;
      count(cells_.back(), matches_.truths[category]);
    }
    for (std::size_t k = 1; k <= categories; ++k) {
      matches_.first[k] = std::max(matches_.first[k], matches_.first[k - 1]);
    }
    matches_.detections.resize(total);
  }

  const Annotation& object(const Entry& entry) const { return truth_.annotations[entry.index]; }

  bool counts(const Annotation& object, std::size_t area) const {
    return !object.crowd && kAreaRanges[area].has(object.area);
  }

  void count(const Cell& cell, std::array<std::int64_t, kAreas>& sums) const {
    for (const Entry& entry : cell.truths) {
      for (std::size_t a = 0; a < kAreas; ++a) sums[a] += counts(object(entry), a);
    }
  }

  /// (D, G)
  std::vector<double> overlaps_of(const Cell& cell) const {
    if (cell.truths.empty() || cell.detections.empty()) return {};
    std::vector<const Detection*> found;
    std::vector<const Annotation*> objects;
    for (const Entry& entry : cell.detections) found.push_back(&detections_[entry.index]);
    for (const Entry& entry : cell.truths) objects.push_back(&object(entry));
    if (!masks_) return box_overlaps(found, objects);
    const Image& image = truth_.images[cell.id % truth_.images.size()];
    return mask_overlaps(found, objects, truth_, image, kIouThresholds[0]);
  }

  double area_of(const Detection& one) const {
    if (area_of_box_) return one.bbox[2] * one.bbox[3];
    return static_cast<double>(area(one.mask));
  }

  void match(const Cell& cell) {
    const auto overlaps = overlaps_of(cell);
    std::vector<double> areas;
    areas.reserve(cell.detections.size());
    for (std::size_t d = 0; d < cell.detections.size(); ++d) {
      areas.push_back(area_of(detections_[cell.detections[d].index]));
      Scored& scored = matches_.detections[cell.first + d];
      scored.score = cell.detections[d].score;
      scored.rank = static_cast<std::uint32_t>(d);
    }
    for (std::size_t a = 0; a < kAreas; ++a) match(cell, overlaps, areas, a);
  }

  void match(const Cell& cell, const std::vector<double>& overlaps,
             const std::vector<double>& areas, std::size_t a);

  const Dataset& truth_;
  std::span<const Detection> detections_;
  bool masks_, joined_, area_of_box_;
  std::vector<bool> chosen_;  // images
  std::vector<Entry> truths_, found_;
  std::vector<Cell> cells_;
  Matches matches_;
};

/// Greedy, best score first: each detection takes the free object that it overlaps most. Objects that do not count
/// come last and are taken only where no other fits; crowds can be taken again.
void Matcher::match(const Cell& cell, const std::vector<double>& overlaps,
                    const std::vector<double>& areas, std::size_t a) {
  struct Target {
    std::size_t column;  // in `overlaps`
    bool crowd, ignored, has_id;
    std::uint16_t taken = 0;
  };
  std::vector<Target> targets;
  targets.reserve(cell.truths.size());
  for (std::size_t g = 0; g < cell.truths.size(); ++g) {
    const Annotation& one = object(cell.truths[g]);
    // pycocotools stores the id and tests it for truth: an object with id 0 is never hit.
    targets.push_back({g, one.crowd, !counts(one, a), one.id != 0});
  }
  std::stable_partition(targets.begin(), targets.end(), [](const Target& t) { return !t.ignored; });

  for (std::size_t d = 0; d < cell.detections.size(); ++d) {
    Outcome& outcome = matches_.detections[cell.first + d].outcomes[a];
    const double* row = overlaps.data() + d * targets.size();
    const double most = targets.empty() ? 0 : *std::max_element(row, row + targets.size());
    for (std::size_t t = 0; t < kThresholds && kIouThresholds[t] <= most; ++t) {
      const auto bit = static_cast<std::uint16_t>(1U << t);
      Target* best = nullptr;
      double least = kIouThresholds[t];
      for (Target& target : targets) {
        if ((target.taken & bit) && !target.crowd) continue;
        if (best && !best->ignored && target.ignored) break;
        if (row[target.column] < least) continue;
        least = row[target.column];  // of equals, the later one
        best = &target;
      }
      if (!best) continue;
      best->taken |= bit;
      if (best->has_id) outcome.hit |= bit;
      if (best->ignored) outcome.ignored |= bit;
    }
    if (!kAreaRanges[a].has(areas[d])) {
      outcome.ignored |= static_cast<std::uint16_t>(~outcome.hit);
    }
  }
}

}  // namespace

Matches match(const Dataset& truth, std::span<const Detection> detections,
              const EvaluateOptions& options, std::span<const std::int64_t> image_ids) {
  return Matcher(truth, detections, options, image_ids).run();
}

}  // namespace millrace::coco
