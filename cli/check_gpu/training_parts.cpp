// Trainings on the device by `trainer run`: what they learn beside the CPU, fp16, resuming, and the
// same bytes twice.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <optional>

#include "millrace/cli/check_gpu/part.h"

namespace millrace::cli {
namespace {

constexpr double kMostApDifference = 0.05, kMostLossDifference = 0.1;

/// A training on the sample data set; `name`: of its folder and its log.
struct Training {
  std::string name;
  bool on_device = true;
  std::vector<std::string> settings;  // K=V
  bool resumes = false;
};

std::vector<std::string> words_of(const PartRun& run, const Training& training) {
  std::vector<std::string> settings{run.sample_data(), "callbacks.pictures.enabled=false"};
  if (run.options.small)
    settings.insert(settings.end(),
                    {"data.short_side=96", "data.max_side=160", "model.backbone.width=16"});
  settings.insert(settings.end(), training.settings.begin(), training.settings.end());
  std::vector<std::string> words{"run", shipped("configs/maskrcnn.toml").string(), "--out",
                                 (run.folder / training.name).string()};
  if (training.resumes) words.emplace_back("--resume");
  const auto more = training.on_device ? run.on_device(settings) : PartRun::with_settings(settings);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Notes how a program ended; returns whether it did so well.
bool ended_well(PartRun& run, const std::string& what, const std::string& log,
                const ProgramEnd& end) {
  run.report.check(what, end.ok(),
                   end.ok() ? fmt::format("{:.0f} s", end.seconds)
                            : end.failure() + ": " + last_words(run.log(log).string() + ".err"));
  return end.ok();
}

bool train(PartRun& run, const Training& training, const std::string& what) {
  const auto log = training.name + (training.resumes ? "_resumed" : "");
  return ended_well(run, what, log, run.trainer(log, words_of(run, training)));
}

/// The lines of a training's metrics.jsonl.
std::vector<Json> metrics(const PartRun& run, const std::string& name) {
  std::vector<Json> lines;
  std::ifstream file(run.folder / name / "maskrcnn-1/metrics.jsonl");
  for (std::string line; std::getline(file, line);)
    if (auto json = Json::parse(line, nullptr, false); json.is_object())
      lines.push_back(std::move(json));
  return lines;
}

/// The last value of a metric; NaN: there is none.
double last_of(const std::vector<Json>& lines, const std::string& metric) {
  double value = std::numeric_limits<double>::quiet_NaN();
  for (const auto& line : lines)
    if (const auto found = line.find(metric); found != line.end() && found->is_number())
      value = found->get<double>();
  return value;
}

double difference(double a, double b) { return std::abs(a - b) / std::max(std::abs(b), 1e-6); }

}  // namespace

void check_determinism(PartRun& run) {
  std::vector<std::string> words{"run", shipped("configs/maskrcnn.toml").string(),
                                 "--verify-determinism", run.options.small ? "1" : "5"};
  std::vector<std::string> settings{run.sample_data()};
  if (run.options.small)
    settings.insert(settings.end(),
                    {"data.short_side=96", "data.max_side=160", "model.backbone.width=16"});
  const std::vector<std::pair<std::string, std::vector<std::string>>> ways = {
      {"fp32", {}},
      {"micro_batches",  // alone they have no statistics of all images
       {"train.micro_batch=1", "train.threads=1", "data.test_batch_size=1",
        "model.backbone.norm='gn'", "model.fpn.norm='gn'"}},
      {"bf16", {"train.precision='bf16'"}}};
  for (const auto& [way, more] : ways) {
    if (run.options.small && way == "bf16") break;
    auto all = words, own = settings;
    own.insert(own.end(), more.begin(), more.end());
    for (const auto& word : run.on_device(own)) all.push_back(word);
    const auto end = run.trainer(way, all);
    run.report.check("trained twice: " + way, end.ok(),
                     end.ok() || end.exit_code == kFailed
                         ? last_words(run.log(way))
                         : end.failure() + ": " + last_words(run.log(way).string() + ".err"));
  }
}

void check_recipe(PartRun& run) {
  const int steps = run.options.small ? 2 : 200;
  const std::vector<std::string> settings{
      fmt::format("train.max_steps={}", steps),
      fmt::format("callbacks.evaluate.every={} steps", steps),
      fmt::format("callbacks.log.every={} steps", run.options.small ? 1 : 20),
      "callbacks.checkpoint.enabled=false"};
  run.sample_data();  // before two ask for it
  std::vector<std::string> on_cpu{trainer_program().string()};
  const auto words = words_of(run, {"cpu", /*on_device=*/false, settings});
  on_cpu.insert(on_cpu.end(), words.begin(), words.end());
  Program beside(on_cpu, run.log("cpu"), {.seconds = run.seconds_left()});
  if (!train(run, {"device", /*on_device=*/true, settings}, "the training on the device")) return;
  const auto there = metrics(run, "device");
  const auto say = [&](const char* where, const std::vector<Json>& lines) {
    run.report.row("The sample recipe", {{"on", where},
                                         {"steps", steps},
                                         {"loss", last_of(lines, "loss")},
                                         {"box AP", last_of(lines, "bbox/AP")},
                                         {"mask AP", last_of(lines, "segm/AP")},
                                         {"images/s", last_of(lines, "time/images_per_s")}});
  };
  say("the device", there);
  if (!ended_well(run, "the training on the CPU", "cpu", beside.wait())) return;
  const auto here = metrics(run, "cpu");
  say("the CPU", here);
  run.report.check_error("the last losses",
                         difference(last_of(there, "loss"), last_of(here, "loss")),
                         kMostLossDifference);
  for (const auto* metric : {"bbox/AP", "segm/AP"})
    run.report.check_error(std::string(metric) + " beside the CPU's",
                           std::abs(last_of(there, metric) - last_of(here, metric)),
                           kMostApDifference);
}

void check_fp16(PartRun& run) {
  const int steps = run.options.small ? 2 : 150;
  if (!train(run,
             {"fp16",
              /*on_device=*/true,
              {fmt::format("train.max_steps={}", steps), "train.precision='fp16'",
               fmt::format("callbacks.log.every={} steps", run.options.small ? 1 : 10),
               "callbacks.evaluate.enabled=false", "callbacks.checkpoint.enabled=false"}},
             "a training in fp16"))
    return;
  const auto lines = metrics(run, "fp16");
  double first = std::numeric_limits<double>::quiet_NaN();
  for (const auto& line : lines) {
    if (!line.contains("loss_scale") || !line.contains("loss")) continue;
    run.report.row(
        "The loss and its scale",
        {{"step", line.at("step")}, {"loss", line.at("loss")}, {"scale", line.at("loss_scale")}});
    if (std::isnan(first) && line.at("loss").is_number()) first = line.at("loss").get<double>();
  }
  const auto scale = last_of(lines, "loss_scale"), last = last_of(lines, "loss");
  run.report.check("a scale was found", scale >= 1, fmt::format("{}", scale));
  if (!run.options.small)
    run.report.check("the loss falls", last < first,
                     fmt::format("from {:.3g} to {:.3g}", first, last));
}

void check_resume(PartRun& run) {
  const int each = run.options.small ? 1 : 20;
  const auto settings = [&](int parts) {
    return std::vector<std::string>{fmt::format("train.max_steps={}", parts * each),
                                    fmt::format("callbacks.checkpoint.every={} steps", each),
                                    fmt::format("callbacks.log.every={} steps", each),
                                    "callbacks.evaluate.enabled=false"};
  };
  if (!train(run, {"whole", /*on_device=*/false, settings(3)}, "three parts on the CPU")) return;
  if (!train(run, {"mixed", /*on_device=*/false, settings(1)}, "the first on the CPU")) return;
  if (!train(run, {"mixed", /*on_device=*/true, settings(2), /*resumes=*/true},
             "the second resumed on the device"))
    return;
  if (!train(run, {"mixed", /*on_device=*/false, settings(3), /*resumes=*/true},
             "the third resumed on the CPU"))
    return;
  const auto whole = metrics(run, "whole"), mixed = metrics(run, "mixed");
  run.report.check("all steps were taken", last_of(mixed, "step") == 3 * each,
                   fmt::format("{} of {}", last_of(mixed, "step"), 3 * each));
  for (std::size_t i = 0; i < whole.size() && i < mixed.size(); ++i) {
    if (!whole[i].contains("loss") || !mixed[i].contains("loss")) continue;
    const auto expected = whole[i].at("loss").get<double>(),
               found = mixed[i].at("loss").get<double>();
    run.report.row("Losses", {{"step", whole[i].at("step")},
                              {"on the CPU alone", expected},
                              {"CPU, device, CPU", found}});
  }
  run.report.check_error("the last loss beside that of the CPU alone",
                         difference(last_of(mixed, "loss"), last_of(whole, "loss")),
                         kMostLossDifference);
}

}  // namespace millrace::cli
