// The model card: a description of weights in the metadata of model.safetensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/models/weights/safetensors.h"

namespace millrace {

/// The training of weights, for information. It contains no time stamp, so that the same training
/// gives the same bytes.
struct TrainingRecord {
  std::string data;                      // "sample/train2017"; empty = unknown
  std::string version;                   // version of Millrace; empty = unknown
  std::int64_t steps = 0;                // 0 = unknown
  double epochs = 0;                     // the steps in epochs
  std::map<std::string, double> scores;  // "bbox/AP", ... of the last evaluation; empty = none
};

struct ModelCard {
  Config model;                            // [model], complete, without `weights`
  Config data;                             // keys of [data] that prepare images for detection
  std::vector<std::string> classes;        // names in label order
  std::vector<std::int64_t> category_ids;  // the classes' ids in the annotations; empty = unknown
  TrainingRecord training = {};
};

/// Returns the part of a complete [model] that describes the weights.
Config of_weights(const Config& model);

Metadata to_metadata(const ModelCard& card);

/// Returns the metadata of a card with steps, epochs and scores of its record replaced; metadata
/// without a card are returned unchanged.
Metadata trained_further(Metadata metadata, std::int64_t steps, double epochs,
                         std::map<std::string, double> scores);

/// Returns nullopt if the metadata has no card. `source` is named in messages. Throws Error for an
/// invalid card.
std::optional<ModelCard> card_in(const Metadata& metadata, const std::string& source);

/// Returns the card of a weight file or checkpoint folder: its own, or, if it is older than cards,
/// one made from the checkpoint's config.toml and state.json. nullopt if there is neither. Throws
/// Error if the file cannot be read.
std::optional<ModelCard> read_card(const std::filesystem::path& weights);

}  // namespace millrace
