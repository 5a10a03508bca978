// What weights were trained as: model.safetensors carries it as metadata.
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

/// How weights were trained, for people. Nothing in it comes from a clock: the same training leaves
/// the same bytes.
struct TrainingRecord {
  std::string data;                      // "sample/train2017"; empty: unknown
  std::string version;                   // of Millrace; empty: unknown
  std::int64_t steps = 0;                // 0: unknown
  double epochs = 0;                     // the same in epochs
  std::map<std::string, double> scores;  // "bbox/AP", ... of the last evaluation, if there was one
};

struct ModelCard {
  Config model;                            // [model], complete, without `weights`
  Config data;                             // how [data] prepares images for detection
  std::vector<std::string> classes;        // names in label order
  std::vector<std::int64_t> category_ids;  // the classes' ids in the annotations; empty: unknown
  TrainingRecord training = {};
};

/// The part of a complete [model] that describes the weights.
Config of_weights(const Config& model);

Metadata to_metadata(const ModelCard& card);

/// The metadata of a card, with steps, epochs and scores of its record replaced; metadata without a
/// card as they are.
Metadata trained_further(Metadata metadata, std::int64_t steps, double epochs,
                         std::map<std::string, double> scores);

/// Nothing if the metadata has no card. `source` names it in messages. Throws Error for a card that
/// cannot be read.
std::optional<ModelCard> card_in(const Metadata& metadata, const std::string& source);

/// The card of a weight file or checkpoint folder: its own or, if it is older than cards, from the
/// checkpoint's config.toml and state.json. Nothing if there is neither. Throws Error if the file
/// cannot be read.
std::optional<ModelCard> read_card(const std::filesystem::path& weights);

}  // namespace millrace
