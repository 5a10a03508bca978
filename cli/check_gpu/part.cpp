#include "millrace/cli/check_gpu/part.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/coco/sample/sample.h"
#include "millrace/models/detector/device_kinds.h"
#include "millrace/plugins/loader.h"
#include "millrace/trainer/run/device.h"

namespace millrace::cli {
namespace {

constexpr Part kParts[] = {
    {"device", "device, driver, libraries, and what the hardware reaches", 120, check_device},
    {"operators", "each operator against the CPU's, twice for the same bytes", 240,
     check_operators},
    {"steps", "losses and gradients of each detector against the CPU's", 240, check_steps},
    {"bf16", "images/s and memory of R50-FPN at 800/1333 in bf16, data in memory", 240,
     check_synthetic_bf16},
    {"profile", "where the time of a step goes: kernels, launches, waits", 150, check_profile},
    {"determinism", "five training steps twice, byte for byte", 120, check_determinism},
    {"upload", "page-locked upload beside the computing", 60, check_upload},
    {"graph", "backbone and FPN, forward and backward, as one recorded graph", 120, check_graph},
    {"precisions", "images/s and memory in tf32 and fp32, data in memory", 240, check_precisions},
    {"flow", "images/s with the real data flow", 150, check_flow},
    {"torchvision", "the same step in torchvision, eager and compiled", 300, check_torchvision},
    {"recipe", "200 steps of the sample recipe, its AP beside the CPU's", 400, check_recipe},
    {"fp16", "the search for fp16's loss scale", 150, check_fp16},
    {"resume", "a checkpoint of the CPU resumed on the device, and back", 200, check_resume},
    {"nccl", "sums by NCCL with one rank", 90, check_nccl},
    {"nccl_sync", "the trainer's sums of gradients with one rank", 60, check_nccl_sync,
     /*hidden=*/true},
};

double clock_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A TOML string.
std::string quoted_toml(const std::string& text) { return "'" + text + "'"; }

}  // namespace

std::span<const Part> all_parts() { return kParts; }

PartRun::PartRun(const CheckGpuOptions& given, const std::string& part, PartReport& to,
                 double seconds)
    : options(given),
      report(to),
      folder(std::filesystem::absolute(given.out) / "parts" / part),
      until_(clock_s() + seconds) {
  std::filesystem::remove_all(folder);  // an earlier run's figures would be read as this one's
  make_writable_folder(folder);
  auto tree = parse_config("plugins = [" + quoted_toml(options.plugin) + "]", "--plugin");
  auto& file = std::get<Config::Array>(tree.find("plugins")->data).at(0);
  file.origin = {"--plugin"};  // without a line
  load_plugins(tree);
  plugin_ = std::get<std::string>(file.data);
  if (const auto kinds = device_kinds(); std::ranges::count(kinds, options.device) == 0)
    throw ConfigError(fmt::format("--device {}: the plug-in {} brings no such device",
                                  options.device, options.plugin));
}

at::Device PartRun::device() const { return open_device(options.device, 0); }

std::vector<std::string> PartRun::with_settings(const std::vector<std::string>& settings) {
  std::vector<std::string> words;
  for (const auto& one : settings) words.insert(words.end(), {"--set", one});
  return words;
}

std::vector<std::string> PartRun::on_device(const std::vector<std::string>& settings) const {
  std::vector<std::string> all{"plugins=[" + quoted_toml(plugin_) + "]",
                               "train.device=" + quoted_toml(options.device)};
  all.insert(all.end(), settings.begin(), settings.end());
  return with_settings(all);
}

Recipe PartRun::recipe(const std::string& name, const std::vector<std::string>& settings) const {
  std::vector<std::string> all{"plugins=[" + quoted_toml(plugin_) + "]",
                               "train.device=" + quoted_toml(options.device)};
  all.insert(all.end(), settings.begin(), settings.end());
  const auto file = name.empty() ? benchmark_file() : shipped(name);
  return resolve(load_config(file, all));
}

std::filesystem::path PartRun::benchmark_file() const {
  const auto file = folder / "benchmark.toml";
  const int width = options.small ? 160 : 1333, height = options.small ? 96 : 800;
  // Random weights under norms that do nothing: a rate of nothing keeps them where they are.
  auto text = fmt::format(
      R"(base = {}
[data]
short_side = {}
max_side = {}
classes = ["a", "b", "c"]
[[data.sources]]
type = "fake"
count = 256
width = {}
height = {}
[model]
weights = ""
[optimizer]
lr = 1e-9
)",
      quoted_toml(shipped("configs/coco/mask_rcnn_R50_FPN_1x.toml").string()), height, width, width,
      height);
  if (options.small) text += "[model.backbone]\ntype = \"resnet18\"\nwidth = 16\n";
  const std::string_view part = text;
  replace_file(file, {&part, 1});
  return file;
}

ProgramEnd PartRun::trainer(const std::string& name, const std::vector<std::string>& words,
                            double most) const {
  std::vector<std::string> all{trainer_program().string()};
  all.insert(all.end(), words.begin(), words.end());
  return Program(all, log(name), {.seconds = std::min(most, seconds_left())}).wait();
}

double PartRun::seconds_left() const { return std::max(1.0, until_ - clock_s()); }

std::string PartRun::sample_data() const {
  const auto root =
      std::filesystem::absolute(options.out) / (options.small ? "sample_small" : "sample");
  if (!std::filesystem::exists(root))
    coco::make_sample(root, {.train = options.small ? 16 : 1024, .val = options.small ? 4 : 128});
  return "data.root=" + quoted_toml(root.string());
}

}  // namespace millrace::cli
