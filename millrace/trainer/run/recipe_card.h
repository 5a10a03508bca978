// A recipe beside the card of weights: what it would write there, and what of it contradicts one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/trainer/run/recipe.h"
#include "millrace/weights/model_card.h"

namespace millrace {

/// The card of what is trained from a recipe.
ModelCard model_card(const Recipe& recipe, std::vector<std::string> classes,
                     std::vector<std::int64_t> category_ids);

/// A key of [model] whose value is another one than that which weights were trained with.
struct Contradiction {
  std::string key, was, is;  // model.pixel_std, values as TOML
  Origin origin;             // of the present value
  OfWeights decides;

  /// "model.pixel_std: trained with 1.0, here 2.0 (config.toml:3:1)"
  std::string text() const;
};

/// Every such key among those that decide something about weights (see OfWeights); keys that the
/// card does not have are of a newer version, and left out.
std::vector<Contradiction> contradictions(const ModelCard& card, const Recipe& recipe);

/// Whether two values are read as the same option: 1 and 1.0, 1 and [1].
bool same_option(const Config& a, const Config& b);

}  // namespace millrace
