#include "millrace/trainer/run/trained_weights.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/models/detector/detector.h"

namespace millrace {
namespace {

/// Returns the elements of `some` that are not in `others`.
std::vector<std::string> missing_in(const std::vector<std::string>& others,
                                    const std::vector<std::string>& some) {
  std::vector<std::string> missing;
  for (const auto& name : some)
    if (std::ranges::count(others, name) == 0) missing.push_back(name);
  return missing;
}

std::string first_few(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 10;
  const auto shown = std::min(names.size(), kMost);
  return joined({names.data(), shown}) + (shown < names.size() ? ", ..." : "");
}

void check_classes(const ModelCard& card, const DataSplit& split, const Recipe& recipe,
                   const TrainedWeights& weights) {
  const auto unknown = missing_in(card.classes, split.classes);
  if (unknown.empty()) return;
  const auto& force_weights = weights.force_weights;
  if (!recipe.data.classes.empty())
    return force_weights.throw_or_warn<ConfigError>(
        fmt::format("data.classes: the weights have no class '{}'{}", unknown.front(),
                    suggestion(unknown.front(), card.classes)));
  if (unknown.size() == split.classes.size())
    return force_weights.throw_or_warn<ConfigError>(
        fmt::format("none of the annotated categories ({}) is a class of the weights; {} has {}",
                    first_few(split.classes), weights.file, first_few(card.classes)));
  log_warning("left out {} without a class in the weights: {}",
              unknown.size() == 1 ? "an annotated category" : "annotated categories",
              first_few(unknown));
}

/// Throws ConfigError, unless forced, if `lines` contains contradictions of the weights in `file`.
void object_to(const std::vector<std::string>& lines, const std::string& file,
               const ForceWeights& force_weights) {
  if (lines.empty()) return;
  force_weights.throw_or_warn<ConfigError>(
      fmt::format("{} contradicts this configuration:\n  {}\nset {} to the values of the weights",
                  file, fmt::join(lines, "\n  "), lines.size() == 1 ? "the key" : "these keys"));
}

/// Returns how images are prepared for detection, in the keys of [data].
Config preparation(const DataOptions& data) {
  Config table;
  const auto set = [&](const char* key, Config::Data value) {
    table.set(key, {std::move(value), {}});
  };
  set("test_short_side", data.settled_test_short_side());
  set("test_max_side", data.settled_test_max_side());
  set("resize_style", value_name(data.resize_style));
  set("divisor", data.divisor);
  return table;
}

/// Returns names of the training data without their path, such as "sample/train2017".
std::string data_name(const Recipe& recipe) {
  const auto named = [](const std::filesystem::path& root, const std::string& split) {
    const auto folder = (root / "").parent_path().filename().string();
    return folder.empty() ? split : folder + "/" + split;
  };
  if (recipe.sources.empty()) return named(recipe.data.root, recipe.data.train);
  std::vector<std::string> names;
  for (const auto& source : recipe.sources) {
    const auto text = [&](const char* key) {
      const auto* value = source.find(key);
      const auto* words = value ? std::get_if<std::string>(&value->data) : nullptr;
      return words ? *words : std::string();
    };
    if (!text("root").empty()) names.push_back(named(text("root"), text("split")));
  }
  return joined(names);
}

/// Returns true if both are among values with the same meaning.
bool both_in(const std::vector<std::string>& alike, const Config& a, const Config& b) {
  const auto has = [&](const Config& value) {
    const auto* text = std::get_if<std::string>(&value.data);
    return text && std::ranges::count(alike, *text) > 0;
  };
  return has(a) && has(b);
}

}  // namespace

ForceWeights initial_force_weights(const Recipe& recipe) {
  return {recipe.force_weights, "model.force_weights = true"};
}

void check_initial_weights(const Recipe& recipe) {
  const auto& file = recipe.weights;
  if (file.empty()) return;
  std::error_code problem;
  if (!std::filesystem::exists(file, problem))
    throw ConfigError(
        fmt::format("model.weights: '{}' not found; set it to your file, or to '' to start from "
                    "random values (then model.backbone.norm must not be frozen)",
                    file));
  const auto card = read_card(file);
  if (!card) return;
  std::vector<std::string> lines;
  for (const auto& one : contradictions(*card, recipe)) {
    if (one.effect == WeightEffect::tensors)
      log_info("{}: {}", file, one.text());
    else
      lines.push_back(one.text());
  }
  object_to(lines, file, initial_force_weights(recipe));
}

void check_resumed_weights(const Config& config, const Recipe& recipe) {
  const auto* model = config.find("model");
  if (!model) return;  // checkpoint of an old version
  std::vector<std::string> lines;
  for (const auto& one : contradictions({.model = of_weights(*model)}, recipe))
    lines.push_back(one.text());
  object_to(lines, "the checkpoint", initial_force_weights(recipe));
}

std::optional<ModelCard> chiefs_card(const std::string& weights, const Cluster& cluster) {
  nlohmann::json text = Metadata();
  if (cluster.is_chief())
    if (const auto card = read_card(weights)) text = to_metadata(*card);
  const auto chiefs = nlohmann::json::parse(cluster.broadcast("card of the weights", text.dump()));
  return card_in(chiefs.get<Metadata>(), weights);
}

std::optional<ModelCard> checked_card(const TrainedWeights& weights, const Recipe& recipe,
                                      const Cluster& cluster) {
  auto card = chiefs_card(weights.file, cluster);
  if (!card) return card;
  std::vector<std::string> lines;
  for (const auto& one : contradictions(*card, recipe)) lines.push_back(one.text());
  object_to(lines, weights.file, weights.force_weights);
  return card;
}

DataSplit labelled_by(const ModelCard& card, const DataSplit& split, const Recipe& recipe,
                      const TrainedWeights& weights) {
  check_classes(card, split, recipe, weights);
  const auto unknown = missing_in(card.classes, split.classes);
  if (weights.force_weights.asked && !unknown.empty() &&
      split.classes.size() == card.classes.size())
    return split;
  DataSplit result{split.annotations, split.images, card.classes, {}};
  for (const auto& name : card.classes) {
    const auto place = std::ranges::find(split.classes, name) - split.classes.begin();
    result.category_ids.push_back(place < std::ssize(split.classes)
                                      ? split.category_ids[static_cast<std::size_t>(place)]
                                      : kNoCategory);
  }
  return result;
}

ModelCard model_card(const Recipe& recipe, std::vector<std::string> classes,
                     std::vector<std::int64_t> category_ids) {
  return {.model = of_weights(recipe.model),
          .data = preparation(recipe.data),
          .classes = std::move(classes),
          .category_ids = std::move(category_ids),
          .training = {.data = data_name(recipe), .version = MILLRACE_VERSION}};
}

std::string Contradiction::text() const {
  return fmt::format("{}: trained with {}, here {} ({})", key, was, is, origin.text());
}

std::vector<Contradiction> contradictions(const ModelCard& card, const Recipe& recipe) {
  std::vector<Contradiction> found;
  const auto compare = [&](const WeightOption& option) {
    const auto *was = card.model.find_path(option.name), *is = recipe.model.find_path(option.name);
    if (!was || !is || same_value(*was, *is) || both_in(option.alike, *was, *is)) return;
    found.push_back(
        {"model." + option.name, value_text(*was), value_text(*is), is->origin, option.effect});
  };
  compare({"type", WeightEffect::tensors, {}});
  for (const auto& option : detectors().at(recipe.model_type).weight_options()) compare(option);
  return found;
}

}  // namespace millrace
