#include "millrace/cli/init/machine.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/config.h"
#include "millrace/base/errors.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/base/text.h"
#include "millrace/cli/command.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/models/weights/class_rows.h"
#include "millrace/models/weights/formats.h"
#include "millrace/models/weights/model_card.h"
#include "millrace/models/weights/schemes.h"
#include "millrace/plugins/loader.h"
#include "millrace/trainer/cluster/processors.h"
#include "millrace/trainer/run/device.h"
#include "millrace/trainer/run/session.h"

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

constexpr std::size_t kUntimed = 2, kFewestTimed = 3, kMostTimed = 10;  // steps
constexpr double kLongest = 20;                                         // seconds

/// Measures the time from the end of each step to the end of the next, and stops the training.
class TimeWholeSteps final : public Callback {
 public:
  explicit TimeWholeSteps(StepTime& result) : result_(result) {}

  void after_step(const TrainState& state) override {
    ends_.push_back(seconds_since(start_));
    if (ends_.size() == kUntimed) untimed_cpu_s_ = cpu_seconds();
    const auto timed = ends_.size() - std::min(ends_.size(), kUntimed);
    if (timed >= kMostTimed || (timed >= kFewestTimed && ends_.back() > kLongest))
      state.stop("the steps were timed");
  }
  void after_train(const TrainState&) override {
    std::vector<double> steps;
    for (auto i = kUntimed; i < ends_.size(); ++i) steps.push_back(ends_[i] - ends_[i - 1]);
    if (steps.empty()) return;
    std::ranges::nth_element(steps, steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2));
    result_.step_s = steps[steps.size() / 2];
    result_.steps = std::ssize(steps);
    result_.cpu_s = (cpu_seconds() - untimed_cpu_s_) / static_cast<double>(steps.size());
  }

 private:
  StepTime& result_;
  Clock::time_point start_ = Clock::now();
  std::vector<double> ends_;
  double untimed_cpu_s_ = 0;
};

/// Trains up to `steps` steps.
void train(const Session& session, const TrainData& data, Detector& detector, std::int64_t steps,
           CallbackList callbacks) {
  auto plan = session.plan(detector, data);
  plan.train.max_steps = steps;
  plan.train.epochs = 1e9;
  Trainer(std::move(plan), std::move(callbacks)).run();
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

double measure_image(Recipe recipe) {
  recipe.data.batch_size = 1;
  recipe.train.passes = 1;
  const auto before = rss_bytes();
  const Session session(std::move(recipe));
  const auto data = open_train_data(session.recipe().data, session.recipe().sources);
  const auto detector = session.make_initial_detector(data.classes);
  train(session, data, *detector, 1, {});
  return static_cast<double>(peak_rss_bytes() - before);
}

StepTime measure_steps(const Recipe& recipe) {
  const Session session(recipe);
  const auto data = open_train_data(recipe.data, recipe.sources);
  const auto detector = session.make_initial_detector(data.classes);
  StepTime result;
  {
    CallbackList callbacks;
    callbacks.add("time", std::make_unique<TimeWholeSteps>(result));
    train(session, data, *detector, kUntimed + kMostTimed, std::move(callbacks));
  }
  const auto validation = session.passes_over(open_split(recipe.data, recipe.data.val));
  const auto batches = validation.start({});
  for (int i = 0; i < 2; ++i)  // the second is timed; the first if it is the only one
    if (const auto batch = batches->next()) {
      const auto start = Clock::now();
      detector->detect(batch->value);
      result.detect_s = seconds_since(start) / static_cast<double>(batch->value.size());
    }
  result.memory = peak_rss_bytes();
  return result;
}

TrainingTime training_time(const advice::Plan& plan, const StepTime& step, std::size_t images) {
  const auto evaluations =
      std::ceil(static_cast<double>(plan.epochs) / static_cast<double>(plan.evaluate_every));
  const auto evaluate_s = evaluations * step.detect_s * static_cast<double>(images);
  return {step.step_s * static_cast<double>(plan.steps) + evaluate_s, evaluate_s};
}

}  // namespace millrace::cli
