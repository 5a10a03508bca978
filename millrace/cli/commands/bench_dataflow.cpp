// trainer bench dataflow: how fast the training flow delivers batches, where its time goes, and how
// far it is from decoding, resizing and copying alone.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "millrace/base/text.h"
#include "millrace/cli/bench/flow_floors.h"
#include "millrace/cli/bench/flow_measurement.h"
#include "millrace/cli/commands/bench.h"
#include "millrace/cli/config_arguments.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/trainer/cluster/processors.h"
#include "millrace/trainer/cluster/threads.h"

namespace millrace::cli {
namespace {

constexpr double kFloorSeconds = 1.0;       // that each floor is measured for
constexpr std::int64_t kFloorImages = 128;  // of the training set, at most, to measure the floors

struct BenchDataflowArguments {
  ConfigArguments config;
  std::int64_t batches = 0, from = 0, threads = 0;
  double seconds = 0;
  bool digest = false, json = false;
};

/// The place after the first `count` batches of a flow.
Cursor cursor_behind(std::int64_t count, DataFlow<Batch>& flow) {
  Cursor cursor;
  for (std::int64_t i = 0; i < count; ++i)
    if (auto delivery = flow.next()) cursor = delivery->cursor;
  return cursor;
}

/// Decoding, resizing and copying alone, of the images that the flow has delivered.
FlowFloors floors_under(const FlowMeasurement& measured, const Source<Sample>& source,
                        int threads) {
  const auto step = std::max<std::int64_t>(1, source.size() / kFloorImages);
  std::vector<FloorImage> images;
  for (std::int64_t i = 0; i < source.size(); i += step) {
    const auto sample = source[i];
    const auto found = measured.delivered.find(sample.image_id);
    if (found != measured.delivered.end() && std::filesystem::exists(sample.path))
      images.push_back({sample.path, {found->second.width, found->second.height}});
  }
  return measure_floors(images, threads, kFloorSeconds);
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

double ms_per_item(const StageReport& stage) {
  return 1e3 * share(stage.busy_s, static_cast<double>(stage.items));
}

Json to_json(const FlowMeasurement& m, const FlowFloors& floors, int threads) {
  const auto images = static_cast<double>(m.images);
  Json stages = Json::array();
  for (std::size_t k = 0; k < m.flow.stages.size(); ++k) {
    const auto& stage = m.flow.stages[k];
    stages.push_back({{"name", stage.name},
                      {"items", stage.items},
                      {"busy_s", stage.busy_s},
                      {"busy_share", share(stage.busy_s, m.busy_s())},
                      {"ms_per_item", ms_per_item(stage)},
                      {"waiting", stage.waiting},
                      {"mean_waiting", m.mean_waiting.empty() ? 0.0 : m.mean_waiting[k]}});
  }
  return {{"images_per_s", share(images, m.wall_s)},
          {"images_per_cpu_s", share(images, m.cpu_s)},
          {"decode_floor_images_per_s", floors.decode_images_per_s},
          {"decode_floor_images_per_cpu_s", floors.decode_images_per_cpu_s},
          {"floors",
           {{"decode_ms", floors.decode_ms},
            {"resize_ms", floors.resize_ms},
            {"copy_ms", floors.copy_ms},
            {"sum_ms", floors.sum_ms()}}},
          {"share_of_floors", share(floors.sum_ms() * images, 1e3 * m.cpu_s)},
          {"mb_per_s", 1e-6 * share(static_cast<double>(m.bytes), m.wall_s)},
          {"padding_share", m.padding_share()},
          {"pixels_per_image", share(static_cast<double>(m.image_bytes) / 3, images)},
          {"batches", m.batches},
          {"images", m.images},
          {"skipped", m.flow.skipped},
          {"wall_s", m.wall_s},
          {"cpu_s", m.cpu_s},
          {"consumer_wait_s", m.flow.wait_s},
          {"threads", threads},
          {"stages", std::move(stages)},
          {"bottleneck", m.bottleneck()},
          {"verdict", m.verdict(threads)},
          {"peak_rss_bytes", m.peak_rss_bytes}};
}

void print_text(const FlowMeasurement& m, const FlowFloors& floors, int threads) {
  const auto images = static_cast<double>(m.images);
  const double rate = share(images, m.wall_s), cpu_ms = 1e3 * share(m.cpu_s, images);
  fmt::print("{} batches in {} ({}) with {}\n", m.batches, duration_text(m.wall_s),
             counted(m.images, "image"), counted(threads, "thread"));
  fmt::print("  {:8.1f} images/s   {:.1f} an s of CPU, {:.0f} MB/s of batches, {:.0f} % padding\n",
             rate, share(images, m.cpu_s), 1e-6 * share(static_cast<double>(m.bytes), m.wall_s),
             100 * m.padding_share());
  if (floors.decode_images_per_s > 0) {  // the source has JPEG files
    fmt::print("  {:8.1f} images/s   JPEG decode alone: the flow runs at {:.0f} % of it\n",
               floors.decode_images_per_s, 100 * share(rate, floors.decode_images_per_s));
    fmt::print(
        "  {:8.2f} ms         of CPU an image; decode {:.2f} + resize {:.2f} + copy {:.2f}, each "
        "alone, are {:.0f} % of it\n",
        cpu_ms, floors.decode_ms, floors.resize_ms, floors.copy_ms,
        100 * share(floors.sum_ms(), cpu_ms));
  }
  fmt::print("  peak memory {}, {} skipped\n", byte_text(static_cast<double>(m.peak_rss_bytes)),
             m.flow.skipped);
  fmt::print("  {}\n\n", m.verdict(threads));
  fmt::print("  {:<24} {:>9} {:>9} {:>9} {:>7}\n", "stage", "items", "ms each", "busy", "queue");
  for (std::size_t k = 0; k < m.flow.stages.size(); ++k) {
    const auto& stage = m.flow.stages[k];
    fmt::print("  {:<24} {:>9} {:>9.3f} {:>7.1f} % {:>7.1f}\n", stage.name, stage.items,
               ms_per_item(stage), 100 * share(stage.busy_s, m.busy_s()),
               m.mean_waiting.empty() ? 0.0 : m.mean_waiting[k]);
  }
  for (std::size_t i = 0; i < m.digests.size(); ++i)
    fmt::print("{}{}", i == 0 ? "\n  " : " ", m.digests[i]);
  if (!m.digests.empty()) fmt::print("\n");
}

int bench_dataflow(const BenchDataflowArguments& arguments) {
  auto recipe = arguments.config.load();
  if (arguments.threads > 0) recipe.data.threads = arguments.threads;
  const Threads threads(recipe.train.threads, recipe.data.threads);
  const auto train = open_train_data(recipe.data, recipe.sources);
  const auto start = [&](const Cursor& cursor) {
    return start_train_flow(recipe.data, recipe.stages, train,
                            static_cast<std::uint64_t>(recipe.train.seed), {}, cursor);
  };
  const Cursor cursor = arguments.from > 0 ? cursor_behind(arguments.from, *start({})) : Cursor{};
  const auto result = drain(
      *start(cursor), {arguments.batches - arguments.from, arguments.seconds, arguments.digest});

  const int used = recipe.data.threads > 0 ? static_cast<int>(recipe.data.threads)
                                           : static_cast<int>(allowed_processor_count());
  const auto floors = train.source ? floors_under(result, *train.source, used) : FlowFloors{};
  if (!arguments.json) return print_text(result, floors, used), kDone;
  auto json = to_json(result, floors, used);
  if (arguments.digest) json["digests"] = result.digests;
  print(json);
  return kDone;
}

}  // namespace

void add_bench_dataflow(CLI::App& bench, Action& action) {
  auto* command = bench.add_subcommand("dataflow",
                                       "Images/s of the training flow, time of each stage, and "
                                       "decode, resize and copy alone beside it");
  auto arguments = std::make_shared<BenchDataflowArguments>();
  arguments->config.add_to(*command);
  auto* batches =
      command->add_option("--batches", arguments->batches, "stop behind this batch (default 200)")
          ->check(positive());
  command->add_option("--seconds", arguments->seconds, "or stop after this time")
      ->check(positive())
      ->excludes(batches);
  command->add_option("--threads", arguments->threads, "of the flow; 0: as data.threads says")
      ->check(not_negative());
  command->add_option("--from", arguments->from, "start behind this many batches, through a cursor")
      ->check(not_negative());
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
