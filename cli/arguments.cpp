#include "millrace/cli/arguments.h"

#include <fmt/format.h>

#include <filesystem>

#include "millrace/base/config.h"
#include "millrace/base/errors.h"
#include "millrace/models/detector/detector.h"
#include "millrace/models/weights/formats.h"
#include "millrace/models/weights/sealed_folder.h"
#include "millrace/plugins/loader.h"
#include "millrace/trainer/run/trained_model.h"

namespace millrace::cli {
namespace {

/// Loads Millrace's own plug-in for the detector of `tree` if that detector is not built in. For
/// any other unknown detector, throws ConfigError that gives the plug-ins of the training that
/// wrote `file`. Plug-ins of third parties are not loaded, because a model is data and must not run
/// code.
void provide_detector(const std::string& file, const Config& tree) {
  const auto* name = value_at<std::string>(tree, "model.type");
  if (!name || detectors().entries().contains(*name) || load_own_plugin(*name)) return;
  const auto origin = origin_of(weight_file(file));
  if (!origin) return;
  const auto trained = parse_config(origin->config, file);
  const auto* files = value_at<Config::Array>(trained, "plugins");
  if (!files || files->empty()) return;
  throw ConfigError(fmt::format(
      "{}: unknown detector '{}'; its training used plug-ins, which are not loaded automatically "
      "with a model; add --set 'plugins={}'",
      tree.find_path("model.type")->origin.text(), *name, value_text(*trained.find("plugins"))));
}

}  // namespace

Recipe ConfigArguments::load() const {
  auto tree = this->tree();
  load_plugins(tree);
  return resolve(std::move(tree));
}

void add_force_flag(CLI::App& command, bool& force) {
  command.add_flag("--force-weights", force,
                   "use weights even if they contradict the configuration or are not finite");
}

ForceWeights force_weights(bool force) { return {force, "--force-weights"}; }

void ModelArguments::add_to(CLI::App& command) {
  command
      .add_option("MODEL", model,
                  "model.safetensors, checkpoint folder or run folder; with --weights, a TOML file "
                  "such as configs/maskrcnn.toml")
      ->required();
  add_overrides(command, overrides);
  add_option(command, "--weights", weights, "W",
             "weights for a TOML file: a checkpoint folder, .safetensors, .pth, .pkl or .npz");
  add_force_flag(command, force);
}

ModelArguments::Loaded ModelArguments::load(const std::function<void(Config&)>& change,
                                            const Cluster& cluster) const {
  if (!std::filesystem::exists(model)) throw ConfigError(model + ": not found");
  const bool alone = names_model(model);
  if (alone && !weights.empty())
    throw ConfigError(
        fmt::format("{} is a model with its own weights; omit --weights, or replace the model by "
                    "the configuration (a TOML file) of {}",
                    model, weights));
  if (!alone && weights.empty())
    throw ConfigError(
        fmt::format("{} is a configuration without weights; add --weights, or give a "
                    "model.safetensors or a run folder instead",
                    model));
  auto file = weights;
  Config tree;
  if (alone) {
    const auto opened = open_model(model, cluster);
    file = opened.file;
    tree = opened.config();
    apply_overrides(tree, overrides);
  } else {
    tree = load_config(model, overrides);
  }
  if (change) change(tree);
  load_plugins(tree);
  if (alone) provide_detector(file, tree);
  return {resolve(std::move(tree)), {file, force_weights(force)}};
}

}  // namespace millrace::cli
