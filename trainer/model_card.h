// What weights were trained as, without which they are only numbers: model.safetensors carries it as metadata.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "trainer/recipe.h"
#include "trainer/safetensors.h"

namespace millrace {

struct ModelCard {
  Config model;                            // [model], complete, without `weights`
  Config data;                             // how [data] prepares images that are detected in
  std::vector<std::string> classes;        // names in label order
  std::vector<std::int64_t> category_ids;  // of the classes, in the annotations; empty: not known
};

/// The card of what is trained from a recipe.
ModelCard model_card(const Recipe& recipe, std::vector<std::string> classes,
                     std::vector<std::int64_t> category_ids);

Metadata to_metadata(const ModelCard& card);

/// Nothing where the metadata has no card. `source` names it in messages. Throws Error for one that cannot be read.
std::optional<ModelCard> card_in(const Metadata& metadata, const std::string& source);

/// The card of a weight file or checkpoint folder: its own or, where that is older than cards, what the checkpoint's
/// config.toml and state.json say. Nothing where neither is there. Throws Error where the file cannot be read.
std::optional<ModelCard> read_card(const std::filesystem::path& weights);

/// A key of [model] whose value is another one than that which weights were trained with.
struct Contradiction {
  std::string key, was, is;  // model.pixel_std, values as TOML
  Origin origin;             // of the present value
  OfWeights decides;

  /// "model.pixel_std: trained with 1.0, here 2.0 (config.toml:3:1)"
  std::string text() const;
};

/// Every such key among those that decide something about weights (see OfWeights); keys that the card does not have are
/// of a newer version, and left out.
std::vector<Contradiction> contradictions(const ModelCard& card, const Recipe& recipe);

/// Whether two values are read as the same option: 1 and 1.0, 1 and [1].
bool same_option(const Config& a, const Config& b);

}  // namespace millrace
