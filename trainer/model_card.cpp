#include "trainer/model_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "trainer/checkpoint_state.h"
#include "trainer/detector.h"
#include "trainer/weights/formats.h"

namespace millrace {
namespace {

using nlohmann::json;

constexpr auto kVersion = "millrace.card", kModel = "millrace.model", kData = "millrace.data",
               kClasses = "millrace.classes", kCategories = "millrace.category_ids";
constexpr auto kThisVersion = "1";

/// What of a complete [model] says what the weights are.
Config of_weights(const Config& model) {
  auto members = model.table();
  std::erase_if(members, [](const auto& member) {
    return member.first == "weights" || member.first == "force_weights";
  });
  return {std::move(members), model.origin};
}

/// How images are prepared for detection, in the keys of [data].
Config preparation(const DataOptions& data) {
  Config table;
  const auto set = [&](const char* key, Config::Data value) {
    table.set(key, {std::move(value), {}});
  };
  set("test_short_side", data.settled_test_short_side());
  set("test_max_side", data.settled_test_max_side());
  set("resize_style", data.resize_style);
  set("reduced_decoding", data.reduced_decoding);
  set("divisor", data.divisor);
  return table;
}

template <class T>
std::vector<T> list_in(const Metadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return {};
  try {
    return json::parse(found->second).get<std::vector<T>>();
  } catch (const json::exception&) {
    throw Error(fmt::format("its metadata has a {} that is no list of such", key));
  }
}

Config table_in(const Metadata& metadata, const char* key, const std::string& source) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return {};
  return parse_config(found->second, source + ", " + key);
}

/// A list of one is read as what is in it.
const Config& unwrapped(const Config& value) {
  const auto* array = std::get_if<Config::Array>(&value.data);
  return array && array->size() == 1 ? array->front() : value;
}

std::optional<double> number(const Config& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.data))
    return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value.data)) return *real;
  return std::nullopt;
}

/// Whether both are among the values that decide the same.
bool both_in(const std::vector<std::string>& alike, const Config& a, const Config& b) {
  const auto has = [&](const Config& value) {
    const auto* text = std::get_if<std::string>(&value.data);
    return text && std::ranges::count(alike, *text) > 0;
  };
  return has(a) && has(b);
}

}  // namespace

ModelCard model_card(const Recipe& recipe, std::vector<std::string> classes,
                     std::vector<std::int64_t> category_ids) {
  return {of_weights(recipe.model), preparation(recipe.data), std::move(classes),
          std::move(category_ids)};
}

Metadata to_metadata(const ModelCard& card) {
  Metadata metadata = {{kVersion, kThisVersion},
                       {kModel, to_toml(card.model)},
                       {kData, to_toml(card.data)},
                       {kClasses, json(card.classes).dump()}};
  if (!card.category_ids.empty()) metadata[kCategories] = json(card.category_ids).dump();
  return metadata;
}

std::optional<ModelCard> card_in(const Metadata& metadata, const std::string& source) try {
  const auto version = metadata.find(kVersion);
  if (version == metadata.end()) return std::nullopt;
  if (version->second != kThisVersion)
    throw Error(fmt::format(
        "was written by a newer version (its card is of version {}, this one reads {}): use that",
        version->second, kThisVersion));
  ModelCard card{.model = table_in(metadata, kModel, source),
                 .data = table_in(metadata, kData, source),
                 .classes = list_in<std::string>(metadata, kClasses),
                 .category_ids = list_in<std::int64_t>(metadata, kCategories)};
  if (!card.category_ids.empty() && card.category_ids.size() != card.classes.size())
    throw Error(fmt::format("its metadata has {} classes and {} category ids", card.classes.size(),
                            card.category_ids.size()));
  return card;
} catch (const Error& problem) {
  throw Error(fmt::format("{}: {}", source, problem.what()));
}

std::optional<ModelCard> read_card(const std::filesystem::path& weights) {
  const auto file = weight_file(weights);
  if (file.extension() != ".safetensors") return std::nullopt;
  if (auto card = card_in(read_metadata(file), file.string())) return card;
  const auto origin = origin_of(file);
  if (!origin || origin->classes.empty()) return std::nullopt;
  const auto config = parse_config(origin->config, (file.parent_path() / "config.toml").string());
  return ModelCard{.model = of_weights(config.section("model")),
                   .data = {},
                   .classes = origin->classes,
                   .category_ids = {}};
}

std::string Contradiction::text() const {
  return fmt::format("{}: trained with {}, here {} ({})", key, was, is, origin.text());
}

std::vector<Contradiction> contradictions(const ModelCard& card, const Recipe& recipe) {
  std::vector<Contradiction> found;
  const auto compare = [&](const WeightOption& option) {
    const auto *was = card.model.find(option.name), *is = recipe.model.find(option.name);
    if (!was || !is || same_option(*was, *is) || both_in(option.alike, *was, *is)) return;
    found.push_back(
        {"model." + option.name, value_text(*was), value_text(*is), is->origin, option.decides});
  };
  compare({"name", OfWeights::tensors, {}});
  for (const auto& option : detectors().at(recipe.model_name).weight_options()) compare(option);
  return found;
}

bool same_option(const Config& a, const Config& b) {
  const auto &left = unwrapped(a), &right = unwrapped(b);
  if (const auto x = number(left), y = number(right); x && y) return *x == *y;
  const auto *these = std::get_if<Config::Array>(&left.data),
             *those = std::get_if<Config::Array>(&right.data);
  if (these && those) return std::ranges::equal(*these, *those, same_option);
  return value_text(left) == value_text(right);
}

}  // namespace millrace
