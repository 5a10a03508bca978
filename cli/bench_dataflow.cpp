// trainer bench dataflow: how fast the training flow delivers batches, where its time goes, and how far
// it is from decoding JPEGs alone.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/digest.h"
#include "base/text.h"
#include "cli/bench.h"
#include "cli/decode_floor.h"
#include "cli/sample_data.h"
#include "dataflow/detection.h"
#include "dataflow/detection_sources.h"
#include "trainer/threads.h"

namespace millrace::cli {
namespace {

constexpr double kFloorSeconds = 1.0;       // that decoding alone is measured for
constexpr std::int64_t kFloorImages = 128;  // of the training set, at most, for that

struct Arguments {
  ConfigArguments config;
  std::int64_t batches = 0, from = 0, threads = 0;
  double seconds = 0;
  bool digest = false, json = false;
};

/// User and system time of the whole process.
double cpu_s() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

std::int64_t peak_rss_bytes() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return std::int64_t{1024} * used.ru_maxrss;
}

/// What draining a flow for a while gave.
struct Measurement {
  std::int64_t batches = 0, images = 0, bytes = 0;
  double wall_s = 0, cpu_s = 0;
  std::vector<std::string> digests;
  FlowReport flow;
};

Measurement drain(DataFlow<Batch>& flow, const Arguments& arguments) {
  Measurement result;
  const auto began = std::chrono::steady_clock::now();
  const double cpu_before = cpu_s();
  const auto wall = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  const auto wanted = arguments.batches - arguments.from;
  while (arguments.seconds > 0 ? wall() < arguments.seconds : result.batches < wanted) {
    const auto delivery = flow.next();
    if (!delivery) break;
    ++result.batches;
    result.images += static_cast<std::int64_t>(delivery->value.size());
    result.bytes += static_cast<std::int64_t>(delivery->value.bytes());
    if (arguments.digest) result.digests.push_back(hex(digest(delivery->value)));
  }
  result.wall_s = wall();
  result.cpu_s = cpu_s() - cpu_before;
  result.flow = flow.report();
  return result;
}

/// The place behind the first `count` batches of a flow.
Cursor cursor_behind(std::int64_t count, DataFlow<Batch>& flow) {
  Cursor cursor;
  for (std::int64_t i = 0; i < count; ++i)
    if (auto delivery = flow.next()) cursor = delivery->cursor;
  return cursor;
}

/// The stage that the threads spend most time in.
std::string bottleneck(const FlowReport& flow) {
  const auto slowest = std::ranges::max_element(flow.stages, {}, &StageReport::busy_s);
  return slowest == flow.stages.end() ? "" : slowest->name;
}

DecodeFloor decode_floor(const Source<Sample>& source, int threads) {
  const auto step = std::max<std::int64_t>(1, source.size() / kFloorImages);
  std::vector<std::string> files;
  for (std::int64_t i = 0; i < source.size(); i += step)
    if (auto file = source[i].path; std::filesystem::exists(file)) files.push_back(std::move(file));
  return measure_decode_floor(files, threads, kFloorSeconds);
}

Json to_json(const Measurement& m, const DecodeFloor& floor, int threads) {
  Json stages = Json::array();
  for (const auto& stage : m.flow.stages)
    stages.push_back(
        {{"name", stage.name},
         {"items", stage.items},
         {"busy_s", stage.busy_s},
         {"ms_per_item", stage.items ? 1e3 * stage.busy_s / static_cast<double>(stage.items) : 0.0},
         {"waiting", stage.waiting}});
  Json json = {{"images_per_s", static_cast<double>(m.images) / m.wall_s},
               {"images_per_cpu_s", static_cast<double>(m.images) / m.cpu_s},
               {"decode_floor_images_per_s", floor.images_per_s},
               {"decode_floor_images_per_cpu_s", floor.images_per_cpu_s},
               {"mb_per_s", 1e-6 * static_cast<double>(m.bytes) / m.wall_s},
               {"batches", m.batches},
               {"images", m.images},
               {"skipped", m.flow.skipped},
               {"wall_s", m.wall_s},
               {"cpu_s", m.cpu_s},
               {"threads", threads},
               {"stages", std::move(stages)},
               {"bottleneck", bottleneck(m.flow)},
               {"peak_rss_bytes", peak_rss_bytes()}};
  return json;
}

void print_text(const Measurement& m, const DecodeFloor& floor, int threads) {
  const double rate = static_cast<double>(m.images) / m.wall_s;
  fmt::print("{} in {} ({}) with {}\n", fmt::format("{} batches", m.batches),
             duration_text(m.wall_s), counted(m.images, "image"), counted(threads, "thread"));
  fmt::print("  {:8.1f} images/s   {:.1f} an s of CPU, {:.0f} MB/s of batches\n", rate,
             static_cast<double>(m.images) / m.cpu_s,
             1e-6 * static_cast<double>(m.bytes) / m.wall_s);
  if (floor.images_per_s > 0)
    fmt::print(
        "  {:8.1f} images/s   JPEG decode alone, the floor: the flow runs at {:.0f} % of it\n",
        floor.images_per_s, 100 * rate / floor.images_per_s);
  fmt::print("  peak memory {}, {} skipped\n\n", byte_text(static_cast<double>(peak_rss_bytes())),
             m.flow.skipped);
  fmt::print("  {:<24} {:>9} {:>9} {:>9}\n", "stage", "items", "ms each", "busy");
  for (const auto& stage : m.flow.stages)
    fmt::print("  {:<24} {:>9} {:>9.3f} {:>8.1f}s{}\n", stage.name, stage.items,
               stage.items ? 1e3 * stage.busy_s / static_cast<double>(stage.items) : 0.0,
               stage.busy_s, stage.name == bottleneck(m.flow) ? "  <- bottleneck" : "");
  for (std::size_t i = 0; i < m.digests.size(); ++i)
    fmt::print("{}{}", i == 0 ? "\n  " : " ", m.digests[i]);
  if (!m.digests.empty()) fmt::print("\n");
}

int bench_dataflow(const Arguments& arguments) {
  auto recipe = arguments.config.load();
  if (arguments.threads > 0) recipe.data.threads = arguments.threads;
  const Threads threads(recipe.train.threads, recipe.data.threads);
  make_sample_on_first_use(recipe);
  const auto train = open_train_data(recipe.data, recipe.sources);
  const auto start = [&](const Cursor& cursor) {
    return start_train_flow(recipe.data, recipe.stages, train,
                            static_cast<std::uint64_t>(recipe.train.seed), {}, cursor);
  };
  const Cursor cursor = arguments.from > 0 ? cursor_behind(arguments.from, *start({})) : Cursor{};
  const auto result = drain(*start(cursor), arguments);

  const int used = recipe.data.threads > 0 ? static_cast<int>(recipe.data.threads)
                                           : static_cast<int>(std::thread::hardware_concurrency());
  const auto floor = decode_floor(*train.source, used);
  if (!arguments.json) return print_text(result, floor, used), kDone;
  auto json = to_json(result, floor, used);
  if (arguments.digest) json["digests"] = result.digests;
  print(json);
  return kDone;
}

}  // namespace

void add_bench_dataflow(CLI::App& bench, Action& action) {
  auto* command = bench.add_subcommand(
      "dataflow",
      "Images/s of the training flow, time of each stage, and JPEG decode alone beside it");
  auto arguments = std::make_shared<Arguments>();
  arguments->config.add_to(*command);
  auto* batches =
      command->add_option("--batches", arguments->batches, "stop behind this batch (default 200)")
          ->check(CLI::PositiveNumber);
  command->add_option("--seconds", arguments->seconds, "or stop after this time")
      ->check(CLI::PositiveNumber)
      ->excludes(batches);
  command->add_option("--threads", arguments->threads, "of the flow; 0: as data.threads says")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--from", arguments->from, "start behind this many batches, through a cursor")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--digest", arguments->digest,
                    "also give a hash of each batch: equal hashes, equal bytes");
  add_json_flag(*command, arguments->json);
  add_examples(
      *command,
      {"trainer bench dataflow configs/maskrcnn.toml --seconds 10",
       "trainer bench dataflow configs/maskrcnn.toml --batches 20 --from 12 --digest --json"});
  command->callback([=, &action] {
    if (arguments->seconds == 0 && arguments->batches == 0) arguments->batches = 200;
    if (arguments->seconds == 0 && arguments->from >= arguments->batches)
      throw CLI::ValidationError("--from",
                                 "starts behind the last of the batches that --batches asks for");
    action = [=] { return bench_dataflow(*arguments); };
  });
}

}  // namespace millrace::cli
