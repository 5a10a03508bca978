// The speed of R50-FPN at 800/1333, by `trainer bench model`: batches in memory, made once.
#include <fmt/format.h>

#include "millrace/cli/check_gpu/part.h"

namespace millrace::cli {
namespace {

constexpr double kMostSeconds = 90;  // of one measurement

Json gibibytes(const Json& result, const char* key) {
  const auto found = result.find(key);
  if (found == result.end()) return "-";
  return found->get<double>() / (1 << 30);
}

void measure_model(PartRun& run, const std::string& precision, int batch) {
  const auto what = fmt::format("{}, batch {}", precision, batch);
  const auto name = fmt::format("{}_{}", precision, batch);
  std::vector<std::string> words{"bench",  "model",   run.benchmark_file().string(),
                                 "--json", "--steps", run.options.small ? "1" : "10"};
  const auto more = run.on_device(
      {fmt::format("train.precision='{}'", precision), fmt::format("data.batch_size={}", batch)});
  words.insert(words.end(), more.begin(), more.end());
  const auto end = run.trainer(name, words, kMostSeconds);
  const auto text = last_json(run.log(name));
  if (!end.ok() || text.empty()) {
    run.report.check(
        what, false,
        fmt::format("{}: {}", end.failure(), last_words(run.log(name).string() + ".err")));
    return;
  }
  const auto result = Json::parse(text);
  const auto rate = result.at("images_per_s").get<double>();
  run.report.check(what, true, fmt::format("{:.1f} images/s", rate));
  run.report.row("Training, data in memory",
                 {{"precision", precision},
                  {"batch", batch},
                  {"images/s", rate},
                  {"ms a step", 1e3 * result.at("step_s").get<double>()},
                  {"ms of the host's processors", 1e3 * result.at("cpu_s").get<double>()},
                  {"peak memory of tensors, GiB", gibibytes(result, "peak_device_bytes")},
                  {"reserved, GiB", gibibytes(result, "peak_device_reserved_bytes")},
                  {"first loss", result.at("first").at("loss")}});
}

void measure_models(PartRun& run, const std::vector<std::string>& precisions) {
  for (const auto& precision : precisions)
    for (const int batch :
         run.options.small ? std::vector<int>{1} : std::vector<int>{8, 12, 4, 2, 1})
      measure_model(run, precision, batch);
}

}  // namespace

void check_synthetic_bf16(PartRun& run) { measure_models(run, {"bf16"}); }

void check_precisions(PartRun& run) {
  if (run.on_cuda()) measure_models(run, {"tf32"});
  measure_models(run, {"fp32"});
}

}  // namespace millrace::cli
