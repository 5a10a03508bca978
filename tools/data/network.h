// The network of a first configuration: from the weights that it starts from, or small enough to
// learn without any.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "millrace/tools/data/adviser.h"

namespace millrace::advice {

/// One key of a configuration, "data.short_side", its TOML and why it has this value.
struct Choice {
  std::string key, value, why;
  std::string topic = {};  // `trainer init` prints the reason as this, "sizes"; empty: it does not
};

/// TOML of a text, whatever is in it.
std::string toml_text(const std::string& text);

/// What the tensors of a file of weights show.
struct WeightFacts {
  std::string file;      // as the configuration names it
  std::string scheme;    // whose names (weights/schemes.h)
  std::string backbone;  // "resnet18" ...
  std::int64_t width = 64;
  bool group_norm = false;
  std::int64_t pyramid = 0;  // channels of its feature pyramid; 0: it has none
  bool detects = false;      // it has the heads of a detector
  /// Of weights that record how they were trained (weights/model_card.h): the detector, and what of
  /// [model] is not as by default, "anchors.sizes" and its TOML.
  std::string type;
  std::vector<std::pair<std::string, std::string>> options;
};

/// The keys of [model] that weights decide.
struct Network {
  Start start = Start::random;
  std::string what;  // "ResNet-18"
  std::vector<Choice> choices;
  bool is_given = false;  // all of [model] is as the weights were trained
};

/// From weights. Pixels as the code base that the names are of prepares them.
Network network_from(const WeightFacts& weights, const Machine& machine);

/// From random values: what differs from the base for these (base/scratch.toml).
Network network_from_nothing(const Machine& machine);

/// The names of weight files that suit a machine, of those in a folder; the best first.
std::vector<std::string> suitable_weights(std::vector<std::string> names, const Machine& machine);

}  // namespace millrace::advice
