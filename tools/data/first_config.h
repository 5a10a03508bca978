// Writes a first configuration: a base for the kind of detector, and the choices for the data, each
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

/// Description of a split for comments.
struct SplitText {
  std::string name;  // as in [data]
  std::size_t images = 0, objects = 0;
  std::string about;  // remark such as "3 without an object are not used"; may be empty
};

/// The input of a configuration.
struct Draft {
  std::string command;  // such as "trainer init cats --data photos"
  std::string file;     // such as "cats/config.toml"; the base is base.toml in the same folder
  std::string root;     // absolute, or relative to `file`
  std::string output;
  std::string about_root;  // folder of the images
  SplitText train, val;
  std::vector<std::pair<std::string, std::uint64_t>> classes;  // name, training objects
  std::string type;                                            // detector type
  std::size_t max_objects = 0;                                 // largest number of objects in a
                                                               // training image
  std::string limited;  // effect of COCO's limit of detections on the score; empty = none
  Network network;
  Machine machine;
  Sides sides;
  Anchors anchors;
  std::int64_t batch = 1;
  Plan plan;
};

/// Returns the choices in the order of the file.
std::vector<Choice> choices(const Draft& draft);

/// Returns the text of base.toml, which does not depend on the data.
std::string base_text(const Draft& draft);

/// Returns the text of config.toml: the choices that differ from the base, each below its reason.
std::string config_text(const Draft& draft);

/// Returns the merged configuration of config.toml and its base.
Config first_config(const Draft& draft);

}  // namespace millrace::advice
