#include "trainer/tensorpack_names.h"

#include <ATen/ops/full_like.h>

#include <cstdio>
#include <map>
#include <optional>

namespace millrace {
namespace {

/// Our names of a convolution and of its norm.
struct Place {
  std::string conv, norm;
};

/// "conv0", "group0/block1/conv2" or "group0/block1/convshortcut"
std::optional<Place> place_of(const std::string& scope) {
  const std::string body = "backbone.body.";
  if (scope == "conv0") return Place{body + "conv1", body + "bn1"};
  int group = 0, block = 0, length = 0;
  std::sscanf(scope.c_str(), "group%1d/block%2d/conv%n", &group, &block, &length);
  if (length == 0) return {};
  const auto place = body + "layer" + std::to_string(group + 1) + "." + std::to_string(block) + ".";
  const auto which = scope.substr(static_cast<std::size_t>(length));
  if (which == "shortcut") return Place{place + "downsample.0", place + "downsample.1"};
  if (which != "1" && which != "2" && which != "3") return {};
  return Place{place + "conv" + which, place + "bn" + which};
}

const std::map<std::string, std::string> kNormTensors = {{"bn/gamma", ".weight"},
                                                         {"bn/beta", ".bias"},
                                                         {"bn/mean/EMA", ".running_mean"},
                                                         {"bn/variance/EMA", ".running_var"}};

/// The place and what of it a name means: "conv0/bn/gamma" is "bn/gamma" of "conv0".
std::optional<std::pair<Place, std::string>> meaning_of(const std::string& name) {
  for (auto slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1))
    if (auto place = place_of(name.substr(0, slash)))
      return std::pair(*place, name.substr(slash + 1));
  return {};
}

}  // namespace

std::vector<StoredTensor> from_tensorpack(const NamedTensors& tensors) {
  std::vector<StoredTensor> result;
  for (const auto& [name, value] : tensors) {
    const auto meaning = meaning_of(name);
    const auto what = meaning ? meaning->second : "";
    if (what == "W" && value.dim() == 4) {
      result.push_back({name, meaning->first.conv + ".weight", value.permute({3, 2, 0, 1})});
    } else if (what == "b") {
      const auto& norm = meaning->first.norm;
      result.push_back({name, norm + ".bias", value});
      result.push_back({"", norm + ".weight", at::full_like(value, 1)});
      result.push_back({"", norm + ".running_mean", at::full_like(value, 0)});
      result.push_back({"", norm + ".running_var", at::full_like(value, 1 - 1e-5)});
    } else if (const auto norm = kNormTensors.find(what); norm != kNormTensors.end()) {
      result.push_back({name, meaning->first.norm + norm->second, value});
    } else {
      result.push_back({name, name, value});
    }
  }
  return result;
}

}  // namespace millrace
