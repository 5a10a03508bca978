// The speed of a training that reads, decodes and resizes its images, beside that of the data flow
// alone.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "millrace/base/files.h"
#include "millrace/cli/check_gpu/made_photos.h"
#include "millrace/cli/check_gpu/part.h"

namespace millrace::cli {
namespace {

std::filesystem::path flow_recipe(const PartRun& run) {
  auto root = std::filesystem::path(run.options.data);
  if (root.empty()) {
    root = run.folder / "photos";
    if (!std::filesystem::exists(root)) make_photos(root, run.options.small ? 8 : 400);
  }
  const auto file = run.folder / "flow.toml";
  auto text = fmt::format(
      "base = '{}'\n[data]\nroot = '{}'\nshort_side = {}\nmax_side = {}\n[model]\nweights = \"\"\n"
      "[optimizer]\nlr = 1e-9\n",
      shipped("configs/coco/mask_rcnn_R50_FPN_1x.toml").string(),
      std::filesystem::absolute(root).string(), run.options.small ? 96 : 800,
      run.options.small ? 160 : 1333);
  if (run.options.small) text += "[model.backbone]\ntype = \"resnet18\"\nwidth = 16\n";
  const std::string_view part = text;
  replace_file(file, {&part, 1});
  return file;
}

/// The last line of metrics.jsonl that has the speed.
Json last_speed(const std::filesystem::path& metrics) {
  Json last = Json::object();
  std::ifstream file(metrics);
  for (std::string line; std::getline(file, line);)
    if (auto json = Json::parse(line, nullptr, false);
        json.is_object() && json.contains("time/images_per_s"))
      last = std::move(json);
  return last;
}

void measure_flow_alone(PartRun& run, const std::filesystem::path& file, const std::string& batch) {
  const auto words = PartRun::with_settings({batch});
  std::vector<std::string> all{
      "bench", "dataflow", file.string(), "--seconds", run.options.small ? "1" : "8", "--json"};
  all.insert(all.end(), words.begin(), words.end());
  const auto end = run.trainer("dataflow", all);
  const auto text = last_json(run.log("dataflow"));
  if (!end.ok() || text.empty())
    return run.report.check(
        "the data flow alone", false,
        end.failure() + ": " + last_words(run.log("dataflow").string() + ".err"));
  const auto result = Json::parse(text);
  run.report.row("The data flow alone",
                 {{"images/s", result.at("images_per_s")},
                  {"images per second of a processor", result.at("images_per_cpu_s")},
                  {"bottleneck", result.at("bottleneck")}});
}

}  // namespace

void check_flow(PartRun& run) {
  const auto file = flow_recipe(run);
  const std::string batch = run.options.small ? "data.batch_size=1" : "data.batch_size=8";
  measure_flow_alone(run, file, batch);
  const int steps = run.options.small ? 2 : 60, every = run.options.small ? 1 : 20;
  std::vector<std::string> words{"run", file.string(), "--out", (run.folder / "runs").string()};
  const auto more = run.on_device(
      {batch, "train.precision='bf16'", fmt::format("train.max_steps={}", steps),
       fmt::format("callbacks.throughput.every={} steps", every),
       fmt::format("callbacks.log.every={} steps", every), "callbacks.evaluate.enabled=false",
       "callbacks.pictures.enabled=false", "callbacks.checkpoint.enabled=false"});
  words.insert(words.end(), more.begin(), more.end());
  const auto end = run.trainer("training", words);
  if (!end.ok())
    return run.report.check(
        "a training with the real flow", false,
        end.failure() + ": " + last_words(run.log("training").string() + ".err"));
  const auto last = last_speed(run.folder / "runs/flow-1/metrics.jsonl");
  const auto value = [&](const char* key) { return last.value(key, 0.0); };
  run.report.check("a training with the real flow", value("time/images_per_s") > 0,
                   fmt::format("{:.1f} images/s", value("time/images_per_s")));
  run.report.row("Training with the real flow, bf16",
                 {{"images/s", value("time/images_per_s")},
                  {"ms a step", 1e3 * value("time/step_s")},
                  {"ms waited for data", 1e3 * value("time/data_wait_s")},
                  {"share of the time", value("time/data_wait_share")}});
}

}  // namespace millrace::cli
