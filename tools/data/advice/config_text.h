// A first configuration as TOML for people: what was chosen, and why, line by line.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "millrace/tools/data/advice/choices.h"
#include "millrace/tools/data/advice/network.h"

namespace millrace::advice {

/// A split in comments.
struct SplitText {
  std::string name;  // in [data]
  std::size_t images = 0, objects = 0;
  std::string about;  // "every fifth photo"; empty: nothing to say
};

/// All that a configuration is written from.
struct Draft {
  std::string command;  // "trainer init cats --data photos"
  std::string file;     // "cats/config.toml"
  std::string root;     // absolute, or relative to the file
  std::string output;
  std::string about_root;  // where the images lie
  SplitText train, val;
  std::vector<std::pair<std::string, std::uint64_t>> classes;  // names, objects to train on
  std::string type;                                            // of the detector
  std::size_t most_objects = 0;                                // in an image to train on
  std::string limited;  // what COCO's limit of detections costs; empty: nothing
  Network network;
  Machine machine;
  Sides sides;
  Anchors anchors;
  std::int64_t batch = 1;
  Plan plan;
};

/// Lines to 100 columns. The same draft gives the same text.
std::string config_text(const Draft& draft);

}  // namespace millrace::advice
