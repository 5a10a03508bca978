// trainer bench scaling: the same training with several numbers of ranks on this machine, beside
// what the model of docs/scaling.md predicts.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/base/text.h"
#include "millrace/cli/arguments.h"
#include "millrace/cli/bench/scaled_run.h"
#include "millrace/cli/check_gpu/programs.h"
#include "millrace/cli/command.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/trainer/cluster/processors.h"
#include "millrace/trainer/run/session.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kNotMeasured = 3;  // steps that are not measured
constexpr double kMostSeconds = 3600;     // of one training

struct BenchScalingArguments {
  ConfigArguments config;
  std::vector<int> ranks = {1, 2};
  std::int64_t steps = 20;
  bool weak = false, json = false;
  double link_gbs = 5, link_us = 20;
  fs::path output;
};

/// Removed with this, unless it was named.
class RunsFolder {
 public:
  explicit RunsFolder(fs::path named) : folder_(std::move(named)), is_own_(folder_.empty()) {
    if (!is_own_) {
      make_writable_folder(folder_);
      return;
    }
    auto name = (fs::temp_directory_path() / "millrace-scaling-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw Error(name + " cannot be made");
    folder_ = name;
  }
  RunsFolder(const RunsFolder&) = delete;
  ~RunsFolder() {
    std::error_code ignored;
    if (is_own_) fs::remove_all(folder_, ignored);
  }
  const fs::path& path() const { return folder_; }

 private:
  fs::path folder_;
  const bool is_own_;
};

/// Of MPI, in PATH. Throws Error if there is none.
std::string launcher() {
  const auto* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const auto file = fs::path(folder) / "mpirun"; ::access(file.c_str(), X_OK) == 0)
      return file.string();
  throw Error(
      "there is no mpirun in PATH, which starts several ranks: install Open MPI (Debian: "
      "openmpi-bin), or measure --ranks 1 alone");
}

/// The images of a rank's batch.
std::int64_t images_of_rank(const BenchScalingArguments& arguments, std::int64_t batch_size,
                            int ranks) {
  if (arguments.weak) return batch_size;
  if (batch_size % ranks != 0)
    throw ConfigError(fmt::format(
        "data.batch_size = {} cannot be divided among {} ranks: set one that can be (--set "
        "data.batch_size={}), or keep it for each rank (--weak)",
        batch_size, ranks, ranks * std::max<std::int64_t>(1, batch_size / ranks)));
  return batch_size / ranks;
}

ScaledRun train(const BenchScalingArguments& arguments, const fs::path& runs, int ranks,
                std::int64_t images, std::int64_t images_per_step, int threads) {
  const auto output = runs / fmt::format("ranks-{}", ranks);
  std::vector<std::string> words;
  if (ranks > 1)
    words = {launcher(), "--bind-to", "none", "--oversubscribe", "-np", std::to_string(ranks)};
  for (const auto& word : {trainer_program().string(), std::string("run"), arguments.config.file,
                           std::string("--out"), output.string()})
    words.push_back(word);
  auto settings = arguments.config.overrides;
  settings.insert(settings.end(),
                  {fmt::format("data.batch_size={}", images),
                   fmt::format("train.max_steps={}", kNotMeasured + arguments.steps),
                   "train.epochs=1000000", fmt::format("train.threads={}", threads),
                   "callbacks.throughput.every='1 steps'", "callbacks.log.every='1 steps'"});
  for (const auto* name : {"evaluate", "pictures", "report", "checkpoint"})
    settings.push_back(fmt::format("callbacks.{}.enabled=false", name));
  for (const auto& one : settings) words.insert(words.end(), {"--set", one});
  const auto log = runs / fmt::format("ranks-{}.log", ranks);
  spdlog::info("{} of {}", counted(ranks, "rank"), counted(images, "image"));
  Program program(words, log, {.seconds = kMostSeconds, .own_group = true});
  const auto end = program.wait([] { return !StopSignals::received().empty(); });
  if (const auto signal = StopSignals::received(); !signal.empty())
    throw Error(signal + ": the trainings are ended");
  if (!end.ok())
    throw Error(fmt::format("the training with {} ended with {}: {}", counted(ranks, "rank"),
                            end.failure(), last_words(log.string() + ".err")));
  for (const auto& entry : fs::directory_iterator(output))
    return measured(report::read_run_files(entry.path()), ranks, images_per_step, kNotMeasured);
  throw Error(fmt::format("the training with {} left no run in {}", counted(ranks, "rank"),
                          output.string()));
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
  print_formatted(
      "{:g} cores, {:g} of maths a rank, {:.1f} MB of gradients; images per {} kept\n\n",
      parts.cores, parts.threads, parts.gradient_bytes / 1e6, weak ? "rank" : "step");
  print_formatted("{:>5}{:>8}{:>11}{:>9}{:>11}{:>10}{:>12}{:>8}{:>8}{:>12}\n", "ranks", "images",
                  "cores/rank", "s/step", "predicted", "images/s", "efficiency", "data", "sync",
                  "CPU s/step");
  bool crowded = false;
  for (const auto& [run, predicted_s] : rows) {
    crowded = crowded || run.ranks * parts.threads > parts.cores;
    print_formatted(
        "{:>5}{:>8}{:>11.2g}{:>9.3f}{:>11.3f}{:>10.2f}{:>10.0f} %{:>6.1f} %{:>6.1f} %{:>12.2f}\n",
        run.ranks, run.images_per_step, parts.cores / run.ranks, run.step_s, predicted_s,
        run.images_per_s(), 100 * efficiency(run, rows.front().run), 100 * run.data_share,
        100 * run.sync_share, run.cpu_s);
  }
  if (crowded)
    print_formatted(
        "\nranks with less than a core for each thread take turns: their rows say nothing of a "
        "machine that has the cores\n");
}

int bench_scaling(const BenchScalingArguments& arguments) {
  const StopSignals signals;
  release_stop_signals();
  auto counts = arguments.ranks;
  std::ranges::sort(counts);
  counts.erase(std::ranges::unique(counts).begin(), counts.end());
  ScalingParts parts{.cores = static_cast<double>(allowed_processor_count())};
  std::int64_t batch_size = 0;
  int threads = 0;
  {
    const Session session(arguments.config.load());
    const auto& recipe = session.recipe();
    batch_size = recipe.data.batch_size;
    const auto all = open_train_data(recipe.data, recipe.sources);
    parts.gradient_bytes =
        4.0 *
        static_cast<double>(session.make_detector(all.classes)->parameters().trainable_count());
    threads = static_cast<int>(recipe.train.threads);
  }
  // The same for every number of ranks: else one alone would have all cores.
  if (threads == 0) threads = std::max(1, static_cast<int>(parts.cores) / counts.back());
  parts.threads = threads;
  parts.network = {.gpus_per_node = counts.back(),
                   .within = {arguments.link_gbs * 1e9, arguments.link_us * 1e-6},
                   .between = {}};
  for (const int ranks : counts) images_of_rank(arguments, batch_size, ranks);
  if (counts.back() > 1) launcher();

  const RunsFolder runs(arguments.output);
  std::vector<Row> rows;
  for (const int ranks : counts) {
    const auto images = images_of_rank(arguments, batch_size, ranks);
    Row row{train(arguments, runs.path(), ranks, images, images * ranks, threads)};
    const auto& first = rows.empty() ? row.run : rows.front().run;
    row.predicted_s = predicted_step_s(first, ranks, images * ranks, parts);
    rows.push_back(row);
  }
  if (arguments.json)
    print(to_json(rows, parts, arguments.weak));
  else
    print_table(rows, parts, arguments.weak);
  return kDone;
}

}  // namespace

void add_bench_scaling(CLI::App& bench, Action& action) {
  auto [command, arguments] = add_subcommand(
      bench, action, "scaling",
      "The same training with several numbers of ranks on this machine, by mpirun", bench_scaling,
      /*handles_signals=*/true);
  arguments.config.add_to(command);
  command.add_option("--ranks", arguments.ranks, "numbers of ranks")
      ->delimiter(',')
      ->allow_extra_args(false)  // CONFIG may follow
      ->type_name("N,N")
      ->capture_default_str()
      ->check(positive());
  command.add_option("--steps", arguments.steps, "that are measured, after three to warm up")
      ->capture_default_str()
      ->check(positive());
  command.add_flag("--weak", arguments.weak,
                   "keep the images of a rank, instead of dividing data.batch_size");
  command
      .add_option("--link-gbs", arguments.link_gbs,
                  "GB/s of gradients between ranks, for the prediction")
      ->capture_default_str()
      ->check(positive());
  command
      .add_option("--link-us", arguments.link_us,
                  "microseconds of a message between ranks, for the prediction")
      ->capture_default_str()
      ->check(not_negative());
  command
      .add_option("--out", arguments.output,
                  "keep the run folders in this folder, as ranks-N/NAME-1; default: remove them")
      ->type_name("DIR");
  add_renamed(command, "--output", "--out");
  add_json_flag(command, arguments.json);
  add_examples(command,
               {"trainer bench scaling configs/maskrcnn.toml --ranks 1,2",
                "trainer bench scaling configs/maskrcnn.toml --ranks 1,2,4 --weak --json"});
}

}  // namespace millrace::cli
