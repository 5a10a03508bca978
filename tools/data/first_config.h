// A first configuration: a base for its kind of detector, and what was chosen for the data, each
// with its reason.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/tools/data/adviser.h"
#include "millrace/tools/data/network.h"

namespace millrace::advice {

/// A split in comments.
struct SplitText {
  std::string name;  // in [data]
  std::size_t images = 0, objects = 0;
  std::string about;  // "3 without an object stay out"; may be empty
};

/// All that a configuration is written from.
struct Draft {
  std::string command;  // "trainer init cats --data photos"
  std::string file;     // "cats/config.toml"; the base is base.toml beside it
  std::string root;     // absolute, or relative to the file
  std::string output;
  std::string about_root;  // the folder of the images
  SplitText train, val;
  std::vector<std::pair<std::string, std::uint64_t>> classes;  // names, objects to train on
  std::string type;                                            // of the detector
  std::size_t most_objects = 0;                                // in an image to train on
  std::string limited;  // the cost of COCO's limit of detections; empty = none
  Network network;
  Machine machine;
  Sides sides;
  Anchors anchors;
  std::int64_t batch = 1;
  Plan plan;
};

/// What was chosen, in the order of the file.
std::vector<Choice> choices(const Draft& draft);

/// base.toml: what does not depend on the data.
std::string base_text(const Draft& draft);

/// config.toml: the choices that the base does not have, each below its reason.
std::string config_text(const Draft& draft);

/// Both together, as reading config.toml gives them.
Config first_config(const Draft& draft);

}  // namespace millrace::advice
