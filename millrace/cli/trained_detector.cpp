#include "millrace/cli/trained_detector.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/trainer/run/recipe_card.h"
#include "millrace/trainer/run/run.h"
#include "millrace/weights/weights.h"

namespace millrace::cli {
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
                   const WeightArguments& weights) {
  const auto unknown = missing_in(card.classes, split.classes);
  if (unknown.empty()) return;
  const auto objection = insistence(weights.force);
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

}  // namespace

void add_force_flag(CLI::App& command, bool& force) {
  command.add_flag("--force-weights", force,
                   "use weights although they contradict the configuration, or are not finite");
}

Insistence insistence(bool force) { return {force, "--force-weights"}; }

void WeightArguments::add_to(CLI::App& command) {
  command.add_option("--weights", file, "a checkpoint folder, .safetensors, .pth, .pkl or .npz")
      ->required()
      ->type_name("W");
  add_force_flag(command, force);
}

std::optional<ModelCard> checked_card(const WeightArguments& weights, const Recipe& recipe,
                                      const Cluster& cluster) {
  nlohmann::json text = Metadata();
  if (cluster.is_chief())
    if (const auto card = read_card(weights.file)) text = to_metadata(*card);
  const auto chiefs = nlohmann::json::parse(cluster.broadcast("card of the weights", text.dump()));
  auto card = card_in(chiefs.get<Metadata>(), weights.file);
  if (!card) return card;
  std::vector<std::string> lines;
  for (const auto& one : contradictions(*card, recipe)) lines.push_back(one.text());
  if (!lines.empty())
    insistence(weights.force)
        .object<ConfigError>(fmt::format(
            "{} contradicts this configuration:\n  {}\nset {} as the weights have it", weights.file,
            fmt::join(lines, "\n  "), lines.size() == 1 ? "the key" : "these keys"));
  return card;
}

DataSplit labelled_by(const ModelCard& card, const DataSplit& split, const Recipe& recipe,
                      const WeightArguments& weights) {
  check_classes(card, split, recipe, weights);
  const auto unknown = missing_in(card.classes, split.classes);
  if (weights.force && !unknown.empty() && split.classes.size() == card.classes.size())
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

std::unique_ptr<Detector> trained_detector(const Recipe& recipe,
                                           const std::vector<std::string>& classes,
                                           const WeightArguments& weights) {
  auto detector = build_detector(recipe, classes);
  const auto report = load_weights(detector->parameters(), weights.file,
                                   {.classes = {}, .insistence = insistence(weights.force)});
  log_report(report, detector->parameters().size(), weights.file);
  if (const auto bad = report.not_loaded(); !bad.empty())
    throw Error(
        fmt::format("{} does not fit this model: {} of {} tensors are missing, of other classes or "
                    "of another shape, such as {}; was it trained with another configuration?",
                    weights.file, bad.size(), detector->parameters().size(), bad.front()));
  tell_parameters_changed(*detector);
  return detector;
}

}  // namespace millrace::cli
