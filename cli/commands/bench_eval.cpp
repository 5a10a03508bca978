// trainer bench eval: measures the parts of an evaluation, beside reading the same bytes.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <tbb/global_control.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "millrace/base/clock.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/base/text.h"
#include "millrace/cli/bench/synthetic_results.h"
#include "millrace/cli/command.h"
#include "millrace/coco/data/annotation_cache.h"
#include "millrace/coco/evaluation/evaluate.h"
#include "millrace/trainer/cluster/processors.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

struct BenchEvalArguments {
  SyntheticResultsOptions set;
  std::string folder, annotations;
  int threads = 0, rounds = 3;
  bool json = false;
};

/// The user's folder, or a temporary one that is removed at the end.
class SetFolder {
 public:
  explicit SetFolder(const std::string& named) : path(named), ours_(named.empty()) {
    if (ours_) path = fs::temp_directory_path() / fmt::format("millrace-bench-{}", ::getpid());
  }
  SetFolder(const SetFolder&) = delete;
  ~SetFolder() {
    std::error_code ignored;
    if (ours_) fs::remove_all(path, ignored);
  }

  fs::path path;

 private:
  bool ours_;
};

/// Minimum time of each part over all rounds, in seconds. Wall-clock time, except `cpu`: CPU time
/// of all parts.
struct Parts {
  double read = 1e9, truth = 1e9, detections = 1e9, evaluate = 1e9, whole = 1e9, cpu = 1e9;
};

Parts measure(const fs::path& truth, const fs::path& detections, coco::IouType iou,
              const BenchEvalArguments& arguments) {
  Parts least;
  for (int round = 0; round < arguments.rounds; ++round) {
    auto last = Clock::now();
    const auto lap = [&](double& part) {
      const double took = seconds_since(last);
      part = std::min(part, took);
      last = Clock::now();
      return took;
    };
    for (const auto& file : {truth, detections}) read_file(file);
    lap(least.read);
    const double cpu = cpu_seconds();
    const auto objects = coco::read_dataset(truth);
    double whole = lap(least.truth);
    const auto found = coco::read_detections(detections);
    whole += lap(least.detections);
    coco::evaluate(*objects, found,
                   {.iou = iou, .area = coco::area_from(found), .threads = arguments.threads});
    whole += lap(least.evaluate);
    least.whole = std::min(least.whole, whole);
    least.cpu = std::min(least.cpu, cpu_seconds() - cpu);
  }
  return least;
}

/// Measures how long loading the user's annotations takes, without and with a cached copy.
int bench_load(const BenchEvalArguments& arguments) {
  const SetFolder cache({});
  ::setenv("MILLRACE_CACHE", cache.path.c_str(), 1);
  spdlog::set_level(spdlog::level::warn);
  const auto load = [&] {
    const auto began = Clock::now();
    const double cpu = cpu_seconds();
    coco::read_dataset_cached(arguments.annotations);
    return std::pair(seconds_since(began), cpu_seconds() - cpu);
  };
  const auto [first, first_cpu] = load();
  coco::finish_caching();
  const auto [again, again_cpu] = load();
  if (arguments.json)
    print({{"seconds", first},
           {"cpu_s", first_cpu},
           {"cached_s", again},
           {"cached_cpu_s", again_cpu}});
  else
    print_formatted(
        "{:.0f} MB: first load {:.3f} s ({:.2f} s of CPU time), from the cache {:.3f} s ({:.2f} "
        "s)\n",
        1e-6 * static_cast<double>(fs::file_size(arguments.annotations)), first, first_cpu, again,
        again_cpu);
  return kDone;
}

int bench_eval(const BenchEvalArguments& arguments) {
  if (!arguments.annotations.empty()) return bench_load(arguments);
  const SetFolder folder(arguments.folder);
  const auto files = write_synthetic_results(folder.path, arguments.set);
  const auto threads = arguments.threads > 0 ? static_cast<std::size_t>(arguments.threads)
                                             : allowed_processor_count();
  if (arguments.rounds == 0 || arguments.set.detections == 0) return kDone;
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);

  Json all = {{"images", arguments.set.images},
              {"detections", arguments.set.images * arguments.set.detections},
              {"threads", threads}};
  if (!arguments.json)
    print_formatted(
        "{} images, {} detections, {}, minimum of {}; ms\n  "
        "{:<6}{:>8}{:>12}{:>12}{:>12}{:>8}{:>8}   floor: reading the bytes\n",
        arguments.set.images, arguments.set.images * arguments.set.detections,
        counted(threads, "thread"), counted(arguments.rounds, "round"), "", "truth", "detections",
        "evaluate", "all", "CPU", "floor");
  for (const auto iou : {coco::IouType::box, coco::IouType::mask}) {
    const bool boxes = iou == coco::IouType::box;
    const auto p = measure(files.truth, boxes ? files.boxes : files.masks, iou, arguments);
    const std::string name = boxes ? "bbox" : "segm";
    all[name] = {{"read_truth_s", p.truth},  {"read_detections_s", p.detections},
                 {"evaluate_s", p.evaluate}, {"s", p.whole},
                 {"cpu_s", p.cpu},           {"floor_s", p.read}};
    if (!arguments.json)
      print_formatted("  {:<6}{:>8.1f}{:>12.1f}{:>12.1f}{:>12.1f}{:>8.1f}{:>8.1f}\n", name,
                      1e3 * p.truth, 1e3 * p.detections, 1e3 * p.evaluate, 1e3 * p.whole,
                      1e3 * p.cpu, 1e3 * p.read);
  }
  if (arguments.json)
    print(all);
  else
    suggest_next("docs/evaluation.md compares other evaluators");
  return kDone;
}

}  // namespace

void add_bench_eval(CLI::App& bench, Action& action) {
  auto [command, arguments] = add_subcommand(
      bench, action, "eval",
      "Time to read and score a generated data set of val2017's size, and to read its bytes alone",
      bench_eval);
  command
      .add_option("--images", arguments.set.images, "number of images of the generated data set")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  command.add_option("--detections", arguments.set.detections, "number of detections per image")
      ->capture_default_str()
      ->check(CLI::Range(0, 10000));
  command.add_option("--seed", arguments.set.seed, "seed of the generated data set")
      ->capture_default_str();
  command
      .add_option("--rounds", arguments.rounds,
                  "number of rounds, of which the minimum counts; 0 = only generate the data set")
      ->capture_default_str()
      ->check(not_negative());
  command.add_option("--threads", arguments.threads, "number of threads; 0 = all cores")
      ->check(not_negative());
  add_option(command, "--folder", arguments.folder, "DIR",
             "folder to keep the data set in: instances.json, boxes.json, masks.json");
  add_option(
      command, "--annotations", arguments.annotations, "FILE",
      "annotation file whose loading is measured instead, the first time and from the cache");
  add_json_flag(command, arguments.json);
  add_examples(command,
               {"trainer bench eval", "trainer bench eval --images 500 --threads 1 --json"});
}

}  // namespace millrace::cli
