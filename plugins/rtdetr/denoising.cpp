#include "denoising.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "box_forms.h"

namespace millrace::rtdetr {
namespace {

// Random streams of a step, named "denoise" and "chosen".
constexpr std::uint64_t kStream = 0x6465'6e6f'6973'65, kChosen = 0x6368'6f73'656e;

/// Stacks each image's tensor (G, ...) to (N, D, ...): padded to `most` rows with `fill`, and
/// repeated twice for each group.
at::Tensor repeated(const std::vector<at::Tensor>& parts, const DenoisingShape& shape,
                    double fill) {
  auto sides = parts.front().sizes().vec();
  sides.insert(sides.begin(), std::ssize(parts));
  sides[1] = shape.most;
  const auto all = at::full(sides, fill, parts.front().options());
  for (std::size_t i = 0; i < parts.size(); ++i)
    all[static_cast<std::int64_t>(i)].narrow(0, 0, parts[i].size(0)).copy_(parts[i]);
  std::vector<std::int64_t> times(sides.size(), 1);
  times[1] = 2 * shape.groups;
  return all.repeat(times);
}

}  // namespace

std::vector<Target> choose_denoised(const std::vector<Target>& targets, std::int64_t most,
                                    const StepInfo& step) {
  auto result = targets;
  for (std::size_t i = 0; i < result.size(); ++i) {
    auto& [labels, boxes] = result[i];
    const auto count = labels.size(0);
    if (count <= most) continue;
    const auto first = step.rng(kChosen, i).below(static_cast<std::uint64_t>(count));
    const auto places =
        (at::arange(most, at::kLong) + static_cast<std::int64_t>(first)).remainder(count);
    labels = labels.index_select(0, places);
    boxes = boxes.index_select(0, places);
  }
  return result;
}

DenoisingShape::DenoisingShape(std::int64_t own_most, const DenoisingOptions& options)
    : most(own_most) {
  if (most > 0 && options.num_queries > 0)
    groups = std::max<std::int64_t>(1, options.num_queries / most);
}

DenoisingNoise draw_noise(const std::vector<Target>& targets, const DenoisingShape& shape,
                          const DenoisingOptions& options, std::int64_t classes,
                          const StepInfo& step) {
  const auto images = std::ssize(targets);
  DenoisingNoise noise{at::zeros({images, shape.queries()}, at::kBool),
                       at::zeros({images, shape.queries()}, at::kLong),
                       at::zeros({images, shape.queries(), 4}, at::kFloat)};
  for (std::int64_t i = 0; i < images; ++i) {
    auto rng = step.rng(kStream, static_cast<std::size_t>(i));
    const auto objects = targets[static_cast<std::size_t>(i)].labels.size(0);
    auto* const relabels = noise.relabels[i].mutable_data_ptr<bool>();
    auto* const labels = noise.labels[i].mutable_data_ptr<std::int64_t>();
    auto* const corner_shifts = noise.corner_shifts[i].mutable_data_ptr<float>();
    for (std::int64_t block = 0; block < 2 * shape.groups; ++block)
      for (std::int64_t object = 0; object < objects; ++object) {
        const auto query = block * shape.most + object;
        relabels[query] = rng.chance(0.5 * options.label_noise);
        labels[query] = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(classes)));
        for (std::int64_t side = 0; side < 4; ++side) {
          const double far = rng.uniform() + static_cast<double>(block % 2);
          corner_shifts[4 * query + side] = static_cast<float>(rng.chance(0.5) ? far : -far);
        }
      }
  }
  return noise;
}

DenoisingQueries denoising_queries(const std::vector<Target>& targets, const DenoisingShape& shape,
                                   const DenoisingOptions& options, std::int64_t classes,
                                   const DenoisingNoise& noise) {
  std::vector<at::Tensor> labels, boxes;
  for (const auto& target : targets) {
    labels.push_back(target.labels);
    boxes.push_back(target.boxes);
  }
  const auto own = repeated(labels, shape, static_cast<double>(classes));
  const auto known = repeated(boxes, shape, 0);
  const auto half = known.narrow(2, 2, 2).repeat({1, 1, 2}) * (0.5 * options.box_noise);
  const auto moved = (to_corners(known) + noise.corner_shifts * half).clamp(0, 1);
  return {at::where(noise.relabels & (own != classes), noise.labels, own),
          inverse_sigmoid(to_centers(moved))};
}

at::Tensor denoising_mask(const DenoisingShape& shape, std::int64_t queries) {
  constexpr auto kNever = -std::numeric_limits<double>::infinity();
  const auto count = shape.queries(), block = 2 * shape.most;
  auto mask = at::zeros({count + queries, count + queries}, at::kFloat);
  mask.narrow(1, 0, count).fill_(kNever);
  for (std::int64_t group = 0; group < shape.groups; ++group)
    mask.narrow(0, group * block, block).narrow(1, group * block, block).zero_();
  return mask;
}

}  // namespace millrace::rtdetr
