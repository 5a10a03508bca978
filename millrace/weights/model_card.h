// What weights were trained as, without which they are only numbers: model.safetensors carries it
// as metadata.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/weights/safetensors.h"

namespace millrace {

struct ModelCard {
  Config model;                            // [model], complete, without `weights`
  Config data;                             // how [data] prepares images that are detected in
  std::vector<std::string> classes;        // names in label order
  std::vector<std::int64_t> category_ids;  // the classes' ids in the annotations; empty: not known
};

/// What of a complete [model] says what the weights are.
Config of_weights(const Config& model);

Metadata to_metadata(const ModelCard& card);

/// Nothing where the metadata has no card. `source` names it in messages. Throws Error for one that
/// cannot be read.
std::optional<ModelCard> card_in(const Metadata& metadata, const std::string& source);

/// The card of a weight file or checkpoint folder: its own or, where that is older than cards, what
/// the checkpoint's config.toml and state.json say. Nothing where neither is there. Throws Error
/// where the file cannot be read.
std::optional<ModelCard> read_card(const std::filesystem::path& weights);

}  // namespace millrace
