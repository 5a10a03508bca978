// The network of a first configuration: from the weights that it starts from, or small enough to
// learn without any.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "millrace/tools/data/advice/choices.h"

namespace millrace::advice {

/// What a file of weights says of itself by its tensors.
struct WeightFacts {
  std::string file;      // as the configuration names it
  std::string scheme;    // whose names (weights/schemes.h)
  std::string backbone;  // "resnet18" ...
  std::int64_t width = 64;
  bool group_norm = false;
  std::int64_t pyramid = 0;  // channels of its feature pyramid; 0: it has none
  bool detects = false;      // it has the heads of a detector
  /// Of weights that say how they were trained (weights/model_card.h): the detector, and what of
  /// [model] is not as by default, "anchors.sizes" and its TOML.
  std::string type;
  std::vector<std::pair<std::string, std::string>> options;
};

/// A line of a configuration: TOML, and a comment without its "#".
struct ConfigLine {
  std::string key, value, comment;
};

/// What [model], [model.backbone] and [model.fpn] say.
struct Network {
  Start start = Start::random;
  std::string what;  // "ResNet-18"
  std::vector<ConfigLine> model, backbone, pyramid;
  /// Keys of [model] as weights that were trained here have them; there is nothing to choose then.
  std::vector<ConfigLine> given;
  bool is_given = false;
};

/// From weights. Pixels as the code base that the names are of prepares them.
Network network_from(const WeightFacts& weights, const Machine& machine);

/// From random values.
Network network_from_nothing(const Machine& machine);

/// The names of weight files that suit a machine, of those in a folder; the best first.
std::vector<std::string> suitable_weights(std::vector<std::string> names, const Machine& machine);

}  // namespace millrace::advice
