#include "millrace/trainer/run/trained_model.h"

#include <fmt/format.h>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"
#include "millrace/models/weights/formats.h"
#include "millrace/trainer/checkpoint/checkpoint.h"
#include "millrace/trainer/run/trained_weights.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Returns the weights that `model` names.
fs::path weights_of(const fs::path& model) {
  if (!fs::is_directory(model) || fs::exists(model / "model.safetensors")) return model;
  const auto checkpoints = list_checkpoints(model / "checkpoints");
  if (checkpoints.empty())
    throw Error(fmt::format(
        "{}: not a model: contains neither a model.safetensors nor checkpoints of a run",
        model.string()));
  return checkpoints.back();
}

}  // namespace

bool names_model(const fs::path& word) {
  std::error_code none;
  return is_weight_file(word) || fs::is_directory(word, none);
}

Config TrainedModel::config() const {
  Config tree;
  tree.origin = {file, 0, 0};
  tree.set("model", card.model);
  tree.set("data", card.data);
  return tree;
}

std::string TrainedModel::text() const {
  const auto* type = card.model.find("type");
  const auto& record = card.training;
  auto text = fmt::format("{}\ndetector: {}\nclasses: {}", file,
                          type ? std::get<std::string>(type->data) : "unknown",
                          card.classes.empty() ? "unknown" : joined(card.classes));
  if (record.steps > 0)
    text += fmt::format("\ntrained for: {}, {:.4g} epochs", counted(record.steps, "step"),
                        record.epochs);
  if (!record.data.empty()) text += "\ntrained on: " + record.data;
  for (const auto& [name, score] : record.scores)
    text += fmt::format("\n{} of the last evaluation: {:.4f}", name, score);
  if (!record.version.empty()) text += "\nwritten by: millrace " + record.version;
  return text;
}

TrainedModel open_model(const fs::path& model, const Cluster& cluster) {
  const auto file =
      cluster.broadcast("weights", cluster.is_chief() ? weights_of(model).string() : std::string());
  auto card = chiefs_card(file, cluster);
  if (!card)
    throw ConfigError(
        fmt::format("{}: contains no type of detector, unlike a model.safetensors of a training; "
                    "give its configuration first, and these weights with --weights {}",
                    file, file));
  return {file, std::move(*card)};
}

}  // namespace millrace
