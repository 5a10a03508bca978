#include "millrace/models/ops/soft_nms.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <vector>

namespace millrace {
namespace {

struct Rated {
  const float* box;
  float score;
  std::int64_t index;
};

bool better(const Rated& a, const Rated& b) {
  return a.score != b.score ? a.score > b.score : a.index < b.index;
}

float overlap(const float* a, const float* b, float offset) {
  const float width = std::min(a[2], b[2]) - std::max(a[0], b[0]) + offset;
  const float height = std::min(a[3], b[3]) - std::max(a[1], b[1]) + offset;
  if (!(width > 0 && height > 0)) return 0;
  const auto area = [&](const float* box) {
    return (box[2] - box[0] + offset) * (box[3] - box[1] + offset);
  };
  const float common = width * height;
  return common / (area(a) + area(b) - common);
}

/// Lowers the scores of a group and keeps the remaining boxes, best first.
void soften(std::vector<Rated>& group, const SoftNmsOptions& options) {
  const auto threshold = static_cast<float>(options.threshold),
             sigma = static_cast<float>(options.sigma),
             least = static_cast<float>(options.score_threshold),
             offset = static_cast<float>(options.offset);
  for (auto best = group.begin(); best != group.end(); ++best) {
    std::iter_swap(best, std::min_element(best, group.end(), better));
    for (auto other = best + 1; other != group.end(); ++other) {
      const float iou = overlap(best->box, other->box, offset);
      if (options.gaussian)
        other->score *= std::exp(-iou * iou / sigma);
      else if (iou > threshold)
        other->score *= 1 - iou;
    }
    group.erase(std::remove_if(best + 1, group.end(),
                               [&](const Rated& other) { return !(other.score > least); }),
                group.end());
  }
}

}  // namespace

SoftNmsResult soft_nms(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& groups,
                       const SoftNmsOptions& options) {
  const auto count = scores.numel();
  if (boxes.dim() != 2 || boxes.size(0) != count || boxes.size(1) != 4 || scores.dim() != 1 ||
      groups.sizes() != scores.sizes() || groups.scalar_type() != at::kLong)
    throw std::invalid_argument("soft_nms: boxes must be (N, 4), scores (N) and groups (N) int64");
  if (!(options.sigma > 0)) throw std::invalid_argument("soft_nms: sigma must be above 0");
  const auto corners = boxes.cpu().contiguous(), ratings = scores.cpu().contiguous(),
             own = groups.cpu().contiguous();
  const auto* corner = corners.const_data_ptr<float>();
  const auto* rating = ratings.const_data_ptr<float>();
  const auto* group = own.const_data_ptr<std::int64_t>();

  std::map<std::int64_t, std::vector<Rated>> by_group;
  for (std::int64_t i = 0; i < count; ++i)
    if (rating[i] > static_cast<float>(options.score_threshold))
      by_group[group[i]].push_back({corner + 4 * i, rating[i], i});
  std::vector<std::vector<Rated>*> parts;
  for (auto& [name, part] : by_group) parts.push_back(&part);
  at::parallel_for(0, std::ssize(parts), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) soften(*parts[static_cast<std::size_t>(i)], options);
  });

  std::vector<Rated> all;
  for (const auto* part : parts) all.insert(all.end(), part->begin(), part->end());
  std::sort(all.begin(), all.end(), better);
  SoftNmsResult result{at::empty({std::ssize(all)}, own.options()),
                       at::empty({std::ssize(all)}, ratings.options())};
  auto* kept = result.kept.mutable_data_ptr<std::int64_t>();
  auto* left = result.scores.mutable_data_ptr<float>();
  for (const auto& rated : all) *kept++ = rated.index, *left++ = rated.score;
  return {result.kept.to(boxes.device()), result.scores.to(boxes.device())};
}

}  // namespace millrace
