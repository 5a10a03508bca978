#include "millrace/models/weights/model_card.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "millrace/base/errors.h"
#include "millrace/models/weights/formats.h"
#include "millrace/models/weights/sealed_folder.h"

namespace millrace {
namespace {

using nlohmann::json;

constexpr auto kVersion = "millrace.card", kModel = "millrace.model", kData = "millrace.data",
               kClasses = "millrace.classes", kCategories = "millrace.category_ids",
               kTraining = "millrace.training";
/// Cards of version 1 use the name "detectron2" for resize_style = "opencv".
constexpr auto kFirstVersion = "1", kThisVersion = "2";

template <class T>
std::vector<T> list_in(const Metadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return {};
  try {
    return json::parse(found->second).get<std::vector<T>>();
  } catch (const json::exception&) {
    throw Error(fmt::format("{} in its metadata is not a valid list", key));
  }
}

Config table_in(const Metadata& metadata, const char* key, const std::string& source) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return {};
  return parse_config(found->second, source + ", " + key);
}

std::string record_text(const TrainingRecord& record) {
  auto text = nlohmann::ordered_json::object();
  if (!record.data.empty()) text["data"] = record.data;
  if (record.steps > 0) text.update({{"steps", record.steps}, {"epochs", record.epochs}});
  if (!record.scores.empty()) text["scores"] = record.scores;
  if (!record.version.empty()) text["millrace"] = record.version;
  return text.dump(-1, ' ', false, json::error_handler_t::replace);
}

TrainingRecord record_in(const Metadata& metadata) {
  const auto found = metadata.find(kTraining);
  if (found == metadata.end()) return {};
  try {
    const auto record = json::parse(found->second);
    return {.data = record.value("data", ""),
            .version = record.value("millrace", ""),
            .steps = record.value("steps", std::int64_t{0}),
            .epochs = record.value("epochs", 0.0),
            .scores = record.value("scores", std::map<std::string, double>())};
  } catch (const json::exception&) {
    throw Error(fmt::format("{} in its metadata is not a valid training record", kTraining));
  }
}

/// Returns the keys of a complete [data] that decide how images are prepared for detection.
Config preparation_in(const Config& data) {
  Config kept;
  for (const auto* key :
       {"short_side", "max_side", "test_short_side", "test_max_side", "resize_style", "divisor"})
    if (const auto* value = data.find(key)) kept.set(key, *value);
  return kept;
}

/// Converts [data] of a card of version 1, or of a checkpoint older than cards.
Config with_opencv_named(Config data) {
  const auto* style = data.find("resize_style");
  const auto* name = style ? std::get_if<std::string>(&style->data) : nullptr;
  if (name && *name == "detectron2") data.set("resize_style", {"opencv", style->origin});
  return data;
}

}  // namespace

Config of_weights(const Config& model) { return without(model, {"weights", "force_weights"}); }

Metadata to_metadata(const ModelCard& card) {
  Metadata metadata = {{kVersion, kThisVersion},
                       {kModel, to_toml(card.model)},
                       {kData, to_toml(card.data)},
                       {kClasses, json(card.classes).dump()}};
  if (!card.category_ids.empty()) metadata[kCategories] = json(card.category_ids).dump();
  if (auto record = record_text(card.training); record != "{}")
    metadata[kTraining] = std::move(record);
  return metadata;
}

Metadata trained_further(Metadata metadata, std::int64_t steps, double epochs,
                         std::map<std::string, double> scores) {
  if (!metadata.contains(kVersion)) return metadata;
  auto record = record_in(metadata);
  record.steps = steps;
  record.epochs = epochs;
  record.scores = std::move(scores);
  metadata[kTraining] = record_text(record);
  return metadata;
}

std::optional<ModelCard> card_in(const Metadata& metadata, const std::string& source) try {
  const auto version = metadata.find(kVersion);
  if (version == metadata.end()) return std::nullopt;
  const bool is_first = version->second == kFirstVersion;
  if (!is_first && version->second != kThisVersion)
    throw Error(
        fmt::format("was written by a newer version of Millrace (model card version {}, this "
                    "program reads {}); use that version",
                    version->second, kThisVersion));
  ModelCard card{.model = table_in(metadata, kModel, source),
                 .data = is_first ? with_opencv_named(table_in(metadata, kData, source))
                                  : table_in(metadata, kData, source),
                 .classes = list_in<std::string>(metadata, kClasses),
                 .category_ids = list_in<std::int64_t>(metadata, kCategories),
                 .training = record_in(metadata)};
  if (!card.category_ids.empty() && card.category_ids.size() != card.classes.size())
    throw Error(fmt::format("its metadata contains {} classes, but {} category ids",
                            card.classes.size(), card.category_ids.size()));
  return card;
} catch (const Error& problem) {
  throw Error(fmt::format("{}: {}", source, problem.what()));
}

std::optional<ModelCard> read_card(const std::filesystem::path& weights) {
  const auto file = weight_file(weights);
  if (file.extension() != ".safetensors") return std::nullopt;
  Metadata metadata;
  try {
    metadata = read_metadata(file);
  } catch (const Error&) {
    check_file_of_checkpoint(file);  // its message has more detail for a file in a checkpoint
    throw;
  }
  if (auto card = card_in(metadata, file.string())) return card;
  const auto origin = origin_of(file);
  if (!origin || origin->classes.empty()) return std::nullopt;
  const auto config = parse_config(origin->config, (file.parent_path() / "config.toml").string());
  return ModelCard{.model = of_weights(config.section("model")),
                   .data = with_opencv_named(preparation_in(config.section("data"))),
                   .classes = origin->classes,
                   .category_ids = {}};
}

}  // namespace millrace
