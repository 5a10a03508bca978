// Chooses the network of a first configuration, from the initial weights, or small enough to train
// from random values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "millrace/tools/data/adviser.h"

namespace millrace::advice {

/// A key of a configuration, such as "data.short_side", its TOML value, and the reason.
struct Choice {
  std::string key, value, why;
  std::string topic = {};  // label in `trainer init`, such as "sizes"; empty = not printed
};

/// Returns a text as a TOML string, with escapes.
std::string toml_text(const std::string& text);

/// Facts derived from the tensors of a weights file.
struct WeightFacts {
  std::string file;      // path in the configuration
  std::string scheme;    // naming scheme (weights/schemes.h)
  std::string backbone;  // such as "resnet18"
  std::int64_t width = 64;
  bool group_norm = false;
  std::int64_t pyramid = 0;  // channels of its feature pyramid; 0 = none
  bool detects = false;      // true if it has the heads of a detector
  /// The training's detector type, and the options of [model] that are not defaults, such as
  /// "anchors.sizes" with its TOML value. Only for weights that record them (weights/model_card.h);
  /// empty otherwise.
  std::string type;
  std::vector<std::pair<std::string, std::string>> options;
};

/// The keys of [model] that the weights determine.
struct Network {
  Start start = Start::random;
  std::string what;  // such as "ResNet-18"
  std::vector<Choice> choices;
  bool is_given = false;  // true if all of [model] is the weights' training configuration
};

/// Returns the network for weights. Pixels are preprocessed like in the weights' code base.
Network network_from(const WeightFacts& weights, const Machine& machine);

/// Returns the network for random initialisation, as differences from base/scratch.toml.
Network network_from_nothing(const Machine& machine);

/// Returns the file names of weights that suit a machine, best first.
std::vector<std::string> suitable_weights(std::vector<std::string> names, const Machine& machine);

}  // namespace millrace::advice
