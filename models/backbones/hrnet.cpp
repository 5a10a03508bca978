#include "millrace/models/backbones/hrnet.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <string>
#include <utility>

#include "millrace/models/backbones/maps.h"
#include "millrace/models/onnx/operations.h"

namespace millrace {
namespace {

constexpr std::int64_t kStem = 64;          // channels
constexpr int kBlocks = 4;                  // blocks of layer1 and of each branch of a module
constexpr std::array kModules = {1, 4, 3};  // modules of stage2, stage3, stage4

/// The width of each type, from hrnet_w18 on.
constexpr std::array<std::int64_t, 4> kWidths = {18, 32, 40, 48};

}  // namespace

HrModule::HrModule(const Scope& scope, at::IntArrayRef channels, const NormOptions& norm) {
  const auto count = std::ssize(channels);
  const auto width = [&](std::int64_t branch) {
    return channels[static_cast<std::size_t>(branch)];
  };
  for (std::int64_t branch = 0; branch < count; ++branch) {
    auto& blocks = branches_.emplace_back();
    const auto c = width(branch);
    for (int block = 0; block < kBlocks; ++block)
      blocks.emplace_back(scope / "branches" / branch / block,
                          ResidualBlock::Shape{.in = c, .middle = c, .out = c, .bottleneck = false},
                          norm);
  }
  for (std::int64_t to = 0; to < count; ++to) {
    auto& ways = ways_.emplace_back();
    for (std::int64_t from = 0; from < count; ++from) {
      auto& way = ways.emplace_back();
      const auto place = scope / "fuse_layers" / to / from;
      if (from > to)
        way.emplace_back(place / 0, place / 1, Conv2d::Shape{width(from), width(to), 1}, norm);
      for (std::int64_t step = 0; from + step < to; ++step) {
        const bool is_last = from + step + 1 == to;
        way.emplace_back(place / step / 0, place / step / 1,
                         Conv2d::Shape{width(from), is_last ? width(to) : width(from), 3, 2}, norm);
      }
    }
  }
}

template <class X>
std::vector<X> HrModule::operator()(std::vector<X> x, const NormMode& mode) const {
  for (std::size_t branch = 0; branch < x.size(); ++branch)
    x[branch] = through(branches_[branch], x[branch], mode);
  std::vector<X> sums;
  for (std::size_t to = 0; to < x.size(); ++to) {
    X sum;
    for (std::size_t from = 0; from < x.size(); ++from) {
      auto y = x[from];
      const auto& way = ways_[to][from];
      for (std::size_t i = 0; i < way.size(); ++i)
        y = way[i](y, mode,
                   {.activation = i + 1 < way.size() ? Activation::relu : Activation::none});
      if (from > to) y = upsample_like(y, x[to]);
      sum = sum.defined() ? sum + y : y;
    }
    sums.push_back(apply_relu(sum));
  }
  return sums;
}

HrNet::HrNet(const Scope& scope, const PyramidOptions& options) {
  const NormOptions norm{options.norm, options.norm_eps};
  const auto width = kWidths.at(static_cast<std::size_t>(options.backbone) -
                                static_cast<std::size_t>(BackboneType::hrnet_w18));
  for (std::size_t i = 0; i < channels_.size(); ++i) channels_[i] = width << i;
  stem_ = {ConvNorm(scope / "conv1", scope / "bn1", {3, kStem, 3, 2}, norm),
           ConvNorm(scope / "conv2", scope / "bn2", {kStem, kStem, 3, 2}, norm)};
  std::vector<std::int64_t> before = {kStem * 4};
  for (std::int64_t block = 0; block < kBlocks; ++block)
    layer1_.emplace_back(
        scope / "layer1" / block,
        ResidualBlock::Shape{
            .in = block == 0 ? kStem : kStem * 4, .middle = kStem, .out = kStem * 4},
        norm);
  for (std::size_t number = 0; number < kModules.size(); ++number) {
    const std::vector<std::int64_t> now(
        channels_.begin(), channels_.begin() + static_cast<std::ptrdiff_t>(number) + 2);
    const auto transition = scope / ("transition" + std::to_string(number + 1));
    const auto stage = scope / ("stage" + std::to_string(number + 2));
    auto& own = stages_.emplace_back();
    for (std::size_t branch = 0; branch < now.size(); ++branch) {
      const auto place = transition / static_cast<std::int64_t>(branch);
      const bool is_new = branch == before.size();
      auto& entry = own.entries.emplace_back();
      if (!is_new && before[branch] == now[branch]) continue;
      const auto from = is_new ? before.back() : before[branch];
      const auto inner = is_new ? place / 0 : place;
      entry.emplace(inner / 0, inner / 1, Conv2d::Shape{from, now[branch], 3, is_new ? 2 : 1},
                    norm);
    }
    for (std::int64_t module = 0; module < kModules[number]; ++module)
      own.modules.emplace_back(stage / module, now, norm);
    before = now;
  }
  const auto freeze = [&](std::int64_t at, std::initializer_list<const char*> names) {
    for (const auto* name : names)
      if (options.freeze_at >= at) scope.freeze(name);
  };
  freeze(1, {"conv1.", "bn1.", "conv2.", "bn2."});
  freeze(2, {"layer1."});
  freeze(3, {"transition1.", "stage2."});
  freeze(4, {"transition2.", "stage3."});
  freeze(5, {"transition3.", "stage4."});
}

template <class X>
std::vector<X> HrNet::operator()(const X& x, const NormMode& mode) const {
  auto y = x;
  for (const auto& conv : stem_) y = conv(y, mode, {.activation = Activation::relu});
  std::vector<X> maps = {through(layer1_, y, mode)};
  for (const auto& stage : stages_) {
    std::vector<X> entered;
    for (std::size_t branch = 0; branch < stage.entries.size(); ++branch) {
      const auto& from = maps[std::min(branch, maps.size() - 1)];
      const auto& entry = stage.entries[branch];
      entered.push_back(entry ? (*entry)(from, mode, {.activation = Activation::relu}) : from);
    }
    maps = std::move(entered);
    for (const auto& module : stage.modules) maps = module(std::move(maps), mode);
  }
  return maps;
}

template std::vector<at::Tensor> HrNet::operator()(const at::Tensor&, const NormMode&) const;
template std::vector<onnx::Value> HrNet::operator()(const onnx::Value&, const NormMode&) const;

}  // namespace millrace
