// Trains with several numbers of ranks on this machine with mpirun, and compares each run with the
// prediction from the first run by the model of docs/scaling.md:
//
//   bench_scaled_runs CONFIG --ranks 1,2,4 [--weak] [--json]
#include <fmt/format.h>
#include <stdlib.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/trainer/cluster/processors.h"
#include "millrace/trainer/run/session.h"
#include "tests/bench/scaling/scaled_run.h"

namespace millrace::scaling {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kWarmUp = 3;  // warm-up steps, not measured

struct Arguments {
  std::string config;
  std::vector<std::string> settings;
  std::vector<int> ranks = {1, 2};
  std::int64_t steps = 20;
  bool weak = false, json = false;
  double link_gbs = 5, link_us = 20;
  fs::path output;
};

/// Returns the batch size per rank.
std::int64_t images_of_rank(const Arguments& arguments, std::int64_t batch_size, int ranks) {
  if (arguments.weak) return batch_size;
  if (batch_size % ranks != 0)
    throw ConfigError(
        fmt::format("data.batch_size = {} is not divisible by {} ranks; set "
                    "another (--set data.batch_size=N) or keep it per rank (--weak)",
                    batch_size, ranks));
  return batch_size / ranks;
}

/// Quotes words for /bin/sh.
std::string quoted(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) {
    line += " '";
    for (const char c : word) line += c == '\'' ? "'\\''" : std::string(1, c);
    line += "'";
  }
  return line;
}

ScaledRun train(const Arguments& arguments, const fs::path& runs, int ranks, std::int64_t images,
                std::int64_t images_per_step, int threads) {
  const auto output = runs / fmt::format("ranks-{}", ranks);
  std::vector<std::string> words;
  if (ranks > 1)
    words = {"mpirun", "--bind-to", "none", "--oversubscribe", "-np", std::to_string(ranks)};
  words.insert(words.end(), {(fs::canonical("/proc/self/exe").parent_path() / "trainer").string(),
                             "run", arguments.config, "--out", output.string()});
  auto settings = arguments.settings;
  settings.insert(settings.end(),
                  {fmt::format("data.batch_size={}", images),
                   fmt::format("train.max_steps={}", kWarmUp + arguments.steps),
                   "train.epochs=1000000", fmt::format("train.threads={}", threads),
                   "callbacks.throughput.every='1 steps'", "callbacks.log.every='1 steps'"});
  for (const auto* name : {"evaluate", "pictures", "report", "checkpoint"})
    settings.push_back(fmt::format("callbacks.{}.enabled=false", name));
  for (const auto& one : settings) words.insert(words.end(), {"--set", one});
  const auto log = runs / fmt::format("ranks-{}.log", ranks);
  log_info("{} of {}", counted(ranks, "rank"), counted(images, "image"));
  if (std::system((quoted(words) + " >" + quoted({log.string()}) + " 2>&1").c_str()) != 0)
    throw Error(
        fmt::format("training with {} failed:\n{}", counted(ranks, "rank"), read_file(log)));
  for (const auto& entry : fs::directory_iterator(output))
    return measured(report::read_run_files(entry.path()), ranks, images_per_step, kWarmUp);
  throw Error(output.string() + ": run folder not found");
}

struct Row {
  ScaledRun run;
  double predicted_s = 0;
};

Json to_json(const std::vector<Row>& rows, const ScalingParts& parts, bool weak) {
  Json list = Json::array();
  for (const auto& [run, predicted_s] : rows)
    list.push_back({{"ranks", run.ranks},
                    {"images_per_step", run.images_per_step},
                    {"cores_per_rank", parts.cores / run.ranks},
                    {"step_s", run.step_s},
                    {"predicted_step_s", predicted_s},
                    {"images_per_s", run.images_per_s()},
                    {"efficiency", efficiency(run, rows.front().run)},
                    {"data_share", run.data_share},
                    {"sync_share", run.sync_share},
                    {"cpu_s", run.cpu_s}});
  return {{"weak", weak},
          {"cores", parts.cores},
          {"threads", parts.threads},
          {"gradient_bytes", parts.gradient_bytes},
          {"runs", std::move(list)}};
}

void print_table(const std::vector<Row>& rows, const ScalingParts& parts, bool weak) {
  fmt::print(
      "{:g} cores, compute threads per rank: {:g}, {:.1f} MB of gradients; constant images per "
      "{}\n\n",
      parts.cores, parts.threads, parts.gradient_bytes / 1e6, weak ? "rank" : "step");
  fmt::print("{:>5}{:>8}{:>11}{:>9}{:>11}{:>10}{:>12}{:>8}{:>8}{:>12}\n", "ranks", "images",
             "cores/rank", "s/step", "predicted", "images/s", "efficiency", "data", "sync",
             "CPU s/step");
  bool crowded = false;
  for (const auto& [run, predicted_s] : rows) {
    crowded = crowded || run.ranks * parts.threads > parts.cores;
    fmt::print(
        "{:>5}{:>8}{:>11.2g}{:>9.3f}{:>11.3f}{:>10.2f}{:>10.0f} %{:>6.1f} %{:>6.1f} %{:>12.2f}\n",
        run.ranks, run.images_per_step, parts.cores / run.ranks, run.step_s, predicted_s,
        run.images_per_s(), 100 * efficiency(run, rows.front().run), 100 * run.data_share,
        100 * run.sync_share, run.cpu_s);
  }
  if (crowded)
    fmt::print(
        "\nranks with less than one core per thread share cores; their rows do not apply to a "
        "machine with enough cores\n");
}

std::vector<Row> measure(const Arguments& arguments, const fs::path& runs, ScalingParts& parts) {
  const Session session(resolve(load_config(arguments.config, arguments.settings)));
  const auto& recipe = session.recipe();
  const auto data = open_train_data(recipe.data, recipe.sources);
  parts.cores = static_cast<double>(allowed_processor_count());
  parts.gradient_bytes =
      4.0 *
      static_cast<double>(session.make_detector(data.classes)->parameters().trainable_count());
  const int most = arguments.ranks.back();
  // Equal for every number of ranks, so that a single rank does not use all cores.
  const auto threads = recipe.train.threads > 0 ? static_cast<int>(recipe.train.threads)
                                                : std::max(1, static_cast<int>(parts.cores) / most);
  parts.threads = threads;
  parts.network = {.gpus_per_node = most,
                   .within = {arguments.link_gbs * 1e9, arguments.link_us * 1e-6},
                   .between = {}};
  for (const int ranks : arguments.ranks) images_of_rank(arguments, recipe.data.batch_size, ranks);
  std::vector<Row> rows;
  for (const int ranks : arguments.ranks) {
    const auto images = images_of_rank(arguments, recipe.data.batch_size, ranks);
    Row row{train(arguments, runs, ranks, images, images * ranks, threads)};
    const auto& first = rows.empty() ? row.run : rows.front().run;
    row.predicted_s = predicted_step_s(first, ranks, images * ranks, parts);
    rows.push_back(row);
  }
  return rows;
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{
      "Trains with several numbers of ranks with mpirun, and compares with the cost model."};
  app.add_option("CONFIG", arguments.config)->required();
  app.add_option("--set", arguments.settings, "setting of the configuration")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  app.add_option("--ranks", arguments.ranks, "numbers of ranks")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::PositiveNumber);
  app.add_option("--steps", arguments.steps, "number of measured steps, after three warm-up steps")
      ->check(CLI::PositiveNumber);
  app.add_flag("--weak", arguments.weak,
               "keep the images per rank constant instead of the images per step");
  app.add_option("--link-gbs", arguments.link_gbs, "predicted bandwidth between ranks, in GB/s");
  app.add_option("--link-us", arguments.link_us,
                 "predicted latency between ranks, in microseconds");
  app.add_option("--out", arguments.output,
                 "folder for the run folders; default: a temporary folder");
  app.add_flag("--json", arguments.json, "print one JSON object");
  CLI11_PARSE(app, argc, argv);
  start_logging();
  std::ranges::sort(arguments.ranks);
  auto runs = arguments.output;
  if (runs.empty()) {
    auto name = (fs::temp_directory_path() / "millrace-scaling-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw Error(name + ": cannot create this folder");
    runs = name;
  }
  fs::create_directories(runs);
  ScalingParts parts;
  const auto rows = measure(arguments, runs, parts);
  if (arguments.output.empty()) fs::remove_all(runs);
  if (arguments.json)
    fmt::print("{}\n", to_json(rows, parts, arguments.weak).dump());
  else
    print_table(rows, parts, arguments.weak);
  return 0;
}

}  // namespace
}  // namespace millrace::scaling

int main(int argc, char** argv) try {
  return millrace::scaling::run(argc, argv);
} catch (const std::exception& problem) {
  fmt::print(stderr, "bench_scaled_runs: {}\n", problem.what());
  return 1;
}
