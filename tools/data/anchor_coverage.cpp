#include "millrace/tools/data/anchor_coverage.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace millrace {
namespace {

/// Returns the IoU with the same bits as iou_row of millrace/models/ops/iou.h.
float overlap(const Box& truth, const Box& anchor, float offset) {
  const float area = (truth.x2 - truth.x1 + offset) * (truth.y2 - truth.y1 + offset);
  const float left = std::max(anchor.x1, truth.x1), top = std::max(anchor.y1, truth.y1);
  const float right = std::min(anchor.x2, truth.x2), bottom = std::min(anchor.y2, truth.y2);
  const float width = right - left + offset, height = bottom - top + offset;
  const float common = (width > 0 ? width : 0) * (height > 0 ? height : 0);
  const float ratio =
      common /
      (area + (anchor.x2 - anchor.x1 + offset) * (anchor.y2 - anchor.y1 + offset) - common);
  return ratio > 0 ? ratio : 0;
}

/// Positions first .. last; empty if last < first.
struct Places {
  std::int64_t first = 0, last = -1;
};

/// One axis of an anchor, repeated at `count` positions, and of a ground truth box.
struct Axis {
  double anchor1, anchor2, truth1, truth2;
  double step;  // pixels between positions
  std::int64_t count;

  /// Returns the length of the overlap at a position.
  double shared(std::int64_t place) const {
    const double moved = static_cast<double>(place) * step;
    return std::min(anchor2 + moved, truth2) - std::max(anchor1 + moved, truth1);
  }

  /// Returns the position with the longest overlap. The overlap decreases symmetrically on both
  /// sides of the position where the centres coincide.
  std::int64_t nearest() const {
    const double place = std::round(((truth1 + truth2) - (anchor1 + anchor2)) / 2 / step);
    return static_cast<std::int64_t>(std::clamp(place, 0., static_cast<double>(count - 1)));
  }

  /// Returns the positions around the nearest one with an overlap of at least `least`.
  Places sharing(double least) const {
    const auto enough = [&](std::int64_t place) {
      return place >= 0 && place < count && shared(place) >= least;
    };
    if (!enough(nearest())) return {};
    Places places{nearest(), nearest()};
    while (enough(places.first - 1)) --places.first;
    while (enough(places.last + 1)) ++places.last;
    return places;
  }
};

/// The positions of one level in one image.
struct Grid {
  const AnchorLevel& level;
  std::int64_t columns = 0, rows = 0;
  double step_x = 0, step_y = 0;  // in pixels

  Box anchor(const Box& cell, std::int64_t column, std::int64_t row) const {
    const auto x = static_cast<float>(static_cast<double>(column) * step_x),
               y = static_cast<float>(static_cast<double>(row) * step_y);
    return {cell.x1 + x, cell.y1 + y, cell.x2 + x, cell.y2 + y};
  }
  Axis across(const Box& cell, const Box& truth) const {
    return {cell.x1, cell.x2, truth.x1, truth.x2, step_x, columns};
  }
  Axis down(const Box& cell, const Box& truth) const {
    return {cell.y1, cell.y2, truth.y1, truth.y2, step_y, rows};
  }
};

/// Matches the anchors of one image to its objects.
class ImageCoverage {
 public:
  ImageCoverage(const SeenData& data, const SeenImage& image, const AnchorRule& rule,
                std::span<ObjectCoverage> coverage)
      : rule_(rule),
        size_(image.seen),
        offset_(static_cast<float>(rule.offset)),
        foreground_(static_cast<float>(rule.foreground)),
        coverage_(coverage) {
    const auto own = data.objects_of(image);
    for (std::size_t i = 0; i < own.size(); ++i)
      if (!own[i].crowd) {
        truths_.push_back(own[i].box);
        positions_.push_back(i);
      }
    const auto up = [](std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; };
    const auto width = up(size_.width, rule.divisor), height = up(size_.height, rule.divisor);
    auto columns = width, rows = height;
    std::int64_t halved = 1;
    for (const auto& level : rule.levels) {
      for (; halved < level.stride; halved *= 2) columns = (columns + 1) / 2, rows = (rows + 1) / 2;
      const auto step = static_cast<double>(level.stride);
      const bool by_grid = rule.stride_by_grid;
      grids_.push_back({level, columns, rows, by_grid ? static_cast<double>(width / columns) : step,
                        by_grid ? static_cast<double>(height / rows) : step});
    }
  }

  void match_all() {
    for (std::size_t g = 0; g < truths_.size(); ++g) find_best(g);
    for (std::size_t g = 0; g < truths_.size(); ++g)
      if (of(g).best_iou >= foreground_)
        find_foreground(g);
      else if (rule_.low_quality && of(g).best_iou > 0)
        give_best(g);
  }

 private:
  ObjectCoverage& of(std::size_t g) { return coverage_[positions_[g]]; }

  /// Calls `take` with every anchor that overlaps ground truth `g` with an IoU of at least about
  /// `least`, until it returns false.
  template <class Take>
  void each_anchor(std::size_t g, double least, Take take) const {
    const Box& truth = truths_[g];
    const double offset = rule_.offset;
    const double area = (truth.width() + offset) * (truth.height() + offset);
    for (const auto& grid : grids_)
      for (const Box& cell : grid.level.cells) {
        const double cell_area = (cell.width() + offset) * (cell.height() + offset);
        // the condition common / (area + cell_area - common) >= least, solved for common
        const double common = least * (area + cell_area) / (1 + least);
        const auto x = grid.across(cell, truth), y = grid.down(cell, truth);
        const double most_x = x.shared(x.nearest()) + offset,
                     most_y = y.shared(y.nearest()) + offset;
        if (most_x <= 0 || most_y <= 0 || most_x * most_y < common) continue;
        const auto columns = x.sharing(common / most_y - offset),
                   rows = y.sharing(common / most_x - offset);
        for (auto row = rows.first; row <= rows.last; ++row)
          for (auto column = columns.first; column <= columns.last; ++column)
            if (!take(grid.anchor(cell, column, row))) return;
      }
  }

  /// Finds the highest IoU, with exact bits: evaluates the nearest positions, then all anchors with
  /// about the best IoU of these.
  void find_best(std::size_t g) {
    const Box& truth = truths_[g];
    float near = 0;
    for (const auto& grid : grids_)
      for (const Box& cell : grid.level.cells) {
        const auto column = grid.across(cell, truth).nearest(),
                   row = grid.down(cell, truth).nearest();
        near = std::max(near, overlap(truth, grid.anchor(cell, column, row), offset_));
      }
    if (near == 0) return;
    each_anchor(g, about(near), [&](const Box& anchor) {
      of(g).best_iou = std::max(of(g).best_iou, overlap(truth, anchor, offset_));
      return true;
    });
  }

  /// Returns a lower bound of the IoU that allows for float rounding.
  static double about(float iou) { return iou * (1 - 1e-5); }

  /// Returns the first of the ground truth boxes with the highest IoU with an anchor.
  std::size_t owner(const Box& anchor) const {
    std::size_t best = 0;
    float highest = 0;
    for (std::size_t g = 0; g < truths_.size(); ++g)
      if (const float iou = overlap(truths_[g], anchor, offset_); iou > highest)
        highest = iou, best = g;
    return best;
  }

  bool is_used(const Box& anchor) const {
    const auto margin = static_cast<float>(rule_.boundary);
    return rule_.boundary < 0 || (anchor.x1 >= -margin && anchor.y1 >= -margin &&
                                  anchor.x2 < static_cast<float>(size_.width) + margin &&
                                  anchor.y2 < static_cast<float>(size_.height) + margin);
  }

  /// Searches an anchor with the foreground IoU that overlaps no other object more.
  void find_foreground(std::size_t g) {
    // The best anchor usually qualifies.
    for (const double least : {about(of(g).best_iou), about(foreground_)}) {
      each_anchor(g, least, [&](const Box& anchor) {
        const bool found = overlap(truths_[g], anchor, offset_) >= foreground_ && is_used(anchor) &&
                           owner(anchor) == g;
        if (found) of(g).match = MatchKind::foreground;
        return !found;
      });
      if (of(g).match == MatchKind::foreground) return;
    }
  }

  /// Matches the object's best anchors to the objects that they overlap most, usually the object
  /// itself.
  void give_best(std::size_t g) {
    each_anchor(g, about(of(g).best_iou), [&](const Box& anchor) {
      if (overlap(truths_[g], anchor, offset_) == of(g).best_iou && is_used(anchor))
        if (auto& match = of(owner(anchor)).match; match == MatchKind::nothing)
          match = MatchKind::low_quality;
      return true;
    });
  }

  const AnchorRule& rule_;
  const cv::Size size_;
  const float offset_, foreground_;
  const std::span<ObjectCoverage> coverage_;
  std::vector<Box> truths_;
  std::vector<std::size_t> positions_;  // indices among the image's objects
  std::vector<Grid> grids_;
};

double share_of(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

void check_rule(const AnchorRule& rule) {
  if (rule.levels.empty()) throw std::invalid_argument("anchors require at least one level");
  if (rule.divisor < 1) throw std::invalid_argument("divisor must be at least 1");
  for (const auto& level : rule.levels)
    if (level.stride < 1) throw std::invalid_argument("strides must be at least 1");
}

}  // namespace

std::vector<ObjectCoverage> anchor_coverage(const SeenData& data, const AnchorRule& rule) {
  check_rule(rule);
  std::vector<ObjectCoverage> coverage(data.objects.size());
  tbb::parallel_for(std::size_t{0}, data.images.size(), [&](std::size_t i) {
    const auto& image = data.images[i];
    ImageCoverage(data, image, rule, std::span(coverage).subspan(image.first, image.count))
        .match_all();
  });
  return coverage;
}

double CoverageCounts::share(MatchKind kind) const {
  return share_of(matched[static_cast<std::size_t>(kind)], objects);
}

double CoverageCounts::recall(std::size_t threshold) const {
  return share_of(recalled[threshold], objects);
}

CoverageSummary summary(const SeenData& data, const std::vector<ObjectCoverage>& coverage) {
  CoverageSummary result;
  for (std::size_t i = 0; i < coverage.size(); ++i) {
    const auto& object = data.objects[i];
    if (object.crowd) continue;
    for (auto* counts : {&result.all, &result.by_size[size_kind(object.size())]}) {
      ++counts->objects;
      ++counts->matched[static_cast<std::size_t>(coverage[i].match)];
      for (std::size_t t = 0; t < counts->recalled.size(); ++t)
        counts->recalled[t] += coverage[i].best_iou >= static_cast<float>(CoverageCounts::kIou[t]);
    }
  }
  return result;
}

}  // namespace millrace
