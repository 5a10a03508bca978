#include "network.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

namespace millrace::yolox {
namespace {

const double kRare = -std::log(99);  // initial logit of objectness and classes: 1 %

std::int64_t channels(const NetworkOptions& options, std::int64_t at_width_1) {
  return static_cast<std::int64_t>(options.width * static_cast<double>(at_width_1));
}

/// Rounds halves to even, like Python's round.
std::int64_t rounded(double value) { return std::lrint(value); }

/// Returns a multiple of the stem's channels.
std::int64_t stems(const NetworkOptions& options, std::int64_t count) {
  return count * channels(options, 64);
}

Conv down(const Scope& scope, std::int64_t in, std::int64_t out, const NetworkOptions& options) {
  return {scope, {in, out, 3, /*stride=*/2}, options.blocks};
}

CspLayer bottlenecks(const Scope& scope, const NetworkOptions& options, std::int64_t stem_factor,
                     std::int64_t times, bool shortcut = true) {
  const auto count = times * std::max<std::int64_t>(rounded(options.depth * 3), 1);
  const auto wide = stems(options, stem_factor);
  return {scope, {wide, wide, count, shortcut}, options.blocks};
}

CspLayer merging(const Scope& scope, const NetworkOptions& options, std::int64_t in,
                 std::int64_t out) {
  return {scope,
          {channels(options, in), channels(options, out), rounded(3 * options.depth),
           /*shortcut=*/false},
          options.blocks};
}

Conv hidden(const Scope& scope, const NetworkOptions& options) {
  return {scope, {channels(options, 256), channels(options, 256), 3}, options.blocks};
}

Conv2d predictor(const Scope& scope, const NetworkOptions& options, std::int64_t out, double bias) {
  Conv2d conv(scope, {channels(options, 256), out, 1}, {Init::Kind::torch});
  const at::NoGradGuard no_grad;
  conv.bias.fill_(bias);
  return conv;
}

}  // namespace

CspDarknet::CspDarknet(const Scope& scope, const NetworkOptions& options)
    : stem_(Conv::plain(scope / "stem" / "conv", {12, stems(options, 1), 3}, options.blocks)),
      down2_(down(scope / "dark2" / 0, stems(options, 1), stems(options, 2), options)),
      second_(bottlenecks(scope / "dark2" / 1, options, 2, 1)),
      down3_(down(scope / "dark3" / 0, stems(options, 2), stems(options, 4), options)),
      third_(bottlenecks(scope / "dark3" / 1, options, 4, 3)),
      down4_(down(scope / "dark4" / 0, stems(options, 4), stems(options, 8), options)),
      fourth_(bottlenecks(scope / "dark4" / 1, options, 8, 3)),
      down5_(down(scope / "dark5" / 0, stems(options, 8), stems(options, 16), options)),
      spp_(scope / "dark5" / 1, stems(options, 16), options.blocks),
      fifth_(bottlenecks(scope / "dark5" / 2, options, 16, 1, /*shortcut=*/false)) {}

Pafpn::Pafpn(const Scope& scope, const NetworkOptions& options)
    : backbone_(scope / "backbone", options),
      lateral_(Conv::plain(scope / "lateral_conv0",
                           {channels(options, 1024), channels(options, 512), 1}, options.blocks)),
      p4_(merging(scope / "C3_p4", options, 1024, 512)),
      reduce_(Conv::plain(scope / "reduce_conv1",
                          {channels(options, 512), channels(options, 256), 1}, options.blocks)),
      p3_(merging(scope / "C3_p3", options, 512, 256)),
      up3_(down(scope / "bu_conv2", channels(options, 256), channels(options, 256), options)),
      n3_(merging(scope / "C3_n3", options, 512, 512)),
      up4_(down(scope / "bu_conv1", channels(options, 512), channels(options, 512), options)),
      n4_(merging(scope / "C3_n4", options, 1024, 1024)) {}

Head::Head(const Scope& scope, std::int64_t level, const NetworkOptions& options,
           std::int64_t classes)
    : stem_(Conv::plain(scope / "stems" / level,
                        {channels(options, 256 << level), channels(options, 256), 1},
                        options.blocks)),
      classes1_(hidden(scope / "cls_convs" / level / 0, options)),
      classes2_(hidden(scope / "cls_convs" / level / 1, options)),
      boxes1_(hidden(scope / "reg_convs" / level / 0, options)),
      boxes2_(hidden(scope / "reg_convs" / level / 1, options)),
      classes_(predictor(scope / "cls_preds" / level, options, classes, kRare)),
      boxes_(predictor(scope / "reg_preds" / level, options, 4, 0)),
      objects_(predictor(scope / "obj_preds" / level, options, 1, kRare)) {
  (scope / "cls_preds").set_classes(std::to_string(level), {.values = 1});
}

}  // namespace millrace::yolox
