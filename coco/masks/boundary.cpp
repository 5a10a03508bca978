#include "millrace/coco/masks/boundary.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "millrace/coco/masks/run_writer.h"

namespace millrace::coco {
namespace {

/// Inside pixels [begin, end) of one column, in column-major order.
struct Stretch {
  std::uint64_t begin = 0, end = 0;
};

/// Returns the stretches of all columns, shortened by `by` pixels at both ends.
std::vector<Stretch> shortened(const Rle& mask, std::uint32_t by) {
  std::vector<Stretch> columns;
  const auto add = [&](Stretch run) {  // the run may span several columns
    while (run.begin < run.end) {
      const std::uint64_t below = (run.begin / mask.height + 1) * mask.height;
      const std::uint64_t end = std::min(run.end, below);
      if (end - run.begin > std::uint64_t{2} * by) columns.push_back({run.begin + by, end - by});
      run.begin = end;
    }
  };
  Stretch run;
  std::uint64_t at = 0;
  for (std::size_t i = 0; i + 1 < mask.counts.size(); i += 2) {
    at += mask.counts[i];
    if (at != run.end) {  // otherwise the run continues after an empty run of zeros
      add(run);
      run.begin = at;
    }
    at += mask.counts[i + 1];
    run.end = at;
  }
  add(run);
  return columns;
}

/// Returns the positions that are inside both at the position and at `shift` pixels after it.
std::vector<Stretch> met(const std::vector<Stretch>& all, std::uint64_t shift) {
  std::vector<Stretch> both;
  for (std::size_t i = 0, j = 0; i < all.size() && j < all.size();) {
    const std::uint64_t begin = std::max(all[i].begin + shift, all[j].begin);
    const std::uint64_t end = std::min(all[i].end + shift, all[j].end);
    if (begin < end) both.push_back({begin - shift, end - shift});
    if (all[i].end + shift < all[j].end)
      ++i;
    else
      ++j;
  }
  return both;
}

}  // namespace

Rle eroded(const Rle& mask, std::uint32_t by) {
  // Erodes the columns first, then the rows: keeps positions that are inside in 2 * by + 1 columns
  // from there on.
  auto inside = shortened(mask, by);
  const std::uint64_t wanted = std::uint64_t{2} * by + 1;
  for (std::uint64_t columns = 1; columns < wanted && !inside.empty();) {
    const std::uint64_t more = std::min(columns, wanted - columns);
    inside = met(inside, more * mask.height);
    columns += more;
  }
  RunWriter out(mask.height, mask.width, 2 * inside.size() + 1);
  const std::uint64_t middle = std::uint64_t{by} * mask.height;
  for (const auto& [begin, end] : inside)
    out.add(static_cast<std::uint32_t>(begin + middle), static_cast<std::uint32_t>(end + middle));
  return std::move(out).finish();
}

std::uint32_t boundary_width(std::uint32_t height, std::uint32_t width) {
  constexpr double kShare = 0.02;
  const double diagonal =
      std::sqrt(static_cast<double>(std::uint64_t{height} * height + std::uint64_t{width} * width));
  return static_cast<std::uint32_t>(std::max(std::nearbyint(kShare * diagonal), 1.));
}

Rle boundary(const Rle& mask) {
  return difference(mask, eroded(mask, boundary_width(mask.height, mask.width)));
}

}  // namespace millrace::coco
