#include "millrace/cli/init/machine.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <system_error>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/base/errors.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/base/text.h"
#include "millrace/cli/command.h"
#include "millrace/models/weights/class_rows.h"
#include "millrace/models/weights/formats.h"
#include "millrace/models/weights/model_card.h"
#include "millrace/models/weights/schemes.h"
#include "millrace/plugins/loader.h"
#include "millrace/trainer/cluster/processors.h"
#include "millrace/trainer/run/device.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

bool has_gpu() {
  std::error_code unknown;
  if (!fs::exists("/dev/nvidiactl", unknown)) return false;
  try {
    load_plugin("millrace_cuda.so", "init");
    open_device("cuda", /*local_rank=*/0);
    return true;
  } catch (const std::exception&) {  // no working plug-in, driver or GPU
    return false;
  }
}

/// Returns the ResNet that has this number of blocks in its third stage, of this kind (bottleneck
/// or basic); empty if unknown.
std::string backbone_of(const std::map<std::string, at::Tensor>& tensors) {
  std::set<std::string> blocks;
  bool bottleneck = false;
  for (const auto& [name, value] : tensors) {
    constexpr std::string_view kStage = "backbone.body.layer3.";
    if (name.starts_with(kStage))
      blocks.insert(name.substr(kStage.size(), name.find('.', kStage.size()) - kStage.size()));
    bottleneck = bottleneck || name == "backbone.body.layer1.0.conv3.weight";
  }
  static const std::map<std::pair<bool, std::size_t>, std::string> kKnown = {
      {{false, 2}, "resnet18"},
      {{false, 6}, "resnet34"},
      {{true, 6}, "resnet50"},
      {{true, 23}, "resnet101"}};
  const auto found = kKnown.find({bottleneck, blocks.size()});
  return found == kKnown.end() ? "" : found->second;
}

/// Adds the options of the card's model that differ from the defaults of its type.
void add_options(const ModelCard& card, advice::WeightFacts& facts) {
  const auto* type = value_at<std::string>(card.model, "type");
  if (!type) return;
  facts.type = *type;
  const auto plain = resolve(parse_config(
      fmt::format("[model]\ntype = {}", value_text(*card.model.find("type"))), "card"));
  const auto trained = of_weights(card.model);
  for (const auto& [key, value] : leaves(trained)) {
    const auto* usual = plain.model.find_path(key);
    if (key != "type" && key != "weights" && (!usual || value_text(*usual) != value_text(*value)))
      facts.options.emplace_back(key, value_text(*value));
  }
}

}  // namespace

advice::Machine this_machine() {
  advice::Machine machine{.cores = allowed_processor_count(), .gpu = has_gpu()};
  if (const auto free = free_memory()) machine.memory = *free;
  return machine;
}

std::string text_of(const advice::Machine& machine) {
  return machine.gpu ? "a GPU" : counted(machine.cores, "core");
}

std::string find_weights(const advice::Machine& machine) {
  for (const fs::path folder : {"data/weights", "weights"}) {
    std::error_code unknown;
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder, unknown))
      if (is_weight_file(entry.path())) names.push_back(entry.path().filename().string());
    const auto suitable = advice::suitable_weights(std::move(names), machine);
    if (!suitable.empty()) return (folder / suitable.front()).string();
  }
  return "";
}

advice::WeightFacts weight_facts(const std::string& file) {
  const auto translated = in_our_names(read_weights(file));
  std::map<std::string, at::Tensor> tensors;
  for (const auto& tensor : translated.tensors) tensors.emplace(tensor.name, tensor.value);
  advice::WeightFacts facts{.file = file,
                            .scheme = std::string(translated.scheme->name),
                            .backbone = backbone_of(tensors)};
  const auto stem = tensors.find("backbone.body.conv1.weight");
  if (facts.backbone.empty() || stem == tensors.end())
    throw ConfigError(fmt::format(
        "--weights {}: no ResNet-18, -34, -50 or -101 found; docs/weights.md lists supported files",
        file));
  facts.width = stem->second.size(0);
  if (const auto middle = tensors.find("backbone.body.layer1.0.conv2.weight");
      middle != tensors.end() && middle->second.size(1) != facts.width)
    throw ConfigError(
        fmt::format("--weights {}: the 3x3 convolutions are not those of a ResNet; configure a "
                    "ResNeXt or a wide ResNet by hand (docs/weights.md)",
                    file));
  facts.group_norm =
      facts.scheme == "caffe2-gn" || (tensors.contains("backbone.body.bn1.weight") &&
                                      !tensors.contains("backbone.body.bn1.running_mean"));
  if (const auto level = tensors.find("backbone.fpn.inner_blocks.0.0.weight");
      level != tensors.end())
    facts.pyramid = level->second.size(0);
  facts.detects = classes_of(translated).has_value();
  if (const auto card = read_card(file)) add_options(*card, facts);
  return facts;
}

}  // namespace millrace::cli
