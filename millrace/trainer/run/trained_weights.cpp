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
#include "millrace/trainer/run/recipe_card.h"

namespace millrace {
namespace {

/// Names of `some` that are not in `others`.
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
  const auto& objection = weights.insistence;
  if (!recipe.data.classes.empty())
    return objection.object<ConfigError>(
        fmt::format("data.classes: the weights have no class '{}'{}", unknown.front(),
                    suggestion(unknown.front(), card.classes)));
  if (unknown.size() == split.classes.size())
    return objection.object<ConfigError>(
        fmt::format("none of the annotated categories ({}) is a class of the weights; {} knows {}",
                    first_few(split.classes), weights.file, first_few(card.classes)));
  spdlog::warn("{} that the weights do not know: left out ({})",
               unknown.size() == 1 ? "an annotated category" : "annotated categories",
               first_few(unknown));
}

/// Throws ConfigError, unless it is forced, where there are lines that say what contradicts the
/// weights in `file`.
void object_to(const std::vector<std::string>& lines, const std::string& file,
               const Insistence& insistence) {
  if (lines.empty()) return;
  insistence.object<ConfigError>(
      fmt::format("{} contradicts this configuration:\n  {}\nset {} as the weights have it", file,
                  fmt::join(lines, "\n  "), lines.size() == 1 ? "the key" : "these keys"));
}

}  // namespace

Insistence initial_insistence(const Recipe& recipe) {
  return {recipe.force_weights, "model.force_weights = true"};
}

void check_initial_weights(const Recipe& recipe) {
  const auto& file = recipe.weights;
  if (file.empty()) return;
  std::error_code problem;
  if (!std::filesystem::exists(file, problem))
    throw ConfigError(
        fmt::format("model.weights: there is no file '{}'; say where yours are, or '' to start "
                    "from random values (model.backbone.norm must not be frozen then)",
                    file));
  const auto card = read_card(file);
  if (!card) return;
  std::vector<std::string> lines;
  for (const auto& one : contradictions(*card, recipe)) {
    if (one.decides == OfWeights::tensors)
      spdlog::info("{}: {}", file, one.text());
    else
      lines.push_back(one.text());
  }
  object_to(lines, file, initial_insistence(recipe));
}

std::optional<ModelCard> checked_card(const TrainedWeights& weights, const Recipe& recipe,
                                      const Cluster& cluster) {
  nlohmann::json text = Metadata();
  if (cluster.is_chief())
    if (const auto card = read_card(weights.file)) text = to_metadata(*card);
  const auto chiefs = nlohmann::json::parse(cluster.broadcast("card of the weights", text.dump()));
  auto card = card_in(chiefs.get<Metadata>(), weights.file);
  if (!card) return card;
  std::vector<std::string> lines;
  for (const auto& one : contradictions(*card, recipe)) lines.push_back(one.text());
  object_to(lines, weights.file, weights.insistence);
  return card;
}

DataSplit labelled_by(const ModelCard& card, const DataSplit& split, const Recipe& recipe,
                      const TrainedWeights& weights) {
  check_classes(card, split, recipe, weights);
  const auto unknown = missing_in(card.classes, split.classes);
  if (weights.insistence.asked && !unknown.empty() && split.classes.size() == card.classes.size())
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

}  // namespace millrace
