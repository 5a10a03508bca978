// trainer pack: packs images and annotations into a record store.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/cli/arguments.h"
#include "millrace/cli/command.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/dataflow/store/pack_records.h"
#include "millrace/dataflow/store/record_header.h"
#include "millrace/trainer/cluster/processors.h"

namespace millrace::cli {
namespace {

struct PackArguments {
  ConfigArguments config;
  std::filesystem::path out;
  std::string split = "train";
  SmallerImages images;
  std::int64_t shard_megabytes = 0;
};

/// Prints what --max-side changed, and warns about its effect on training.
void report_smaller(const PackReport& report, const SmallerImages& images,
                    const ImageOptions& training) {
  print_formatted(
      "{} reduced to a longer side of {} pixels, as JPEG of quality {}, with objects scaled to "
      "match; {} kept byte for byte; {} of image files instead of {}\n",
      counted(report.smaller, "image"), images.max_side, images.quality,
      report.images - report.smaller, byte_text(report.bytes_after),
      byte_text(report.bytes_before));
  if (report.unreadable > 0)
    log_warning("{} cannot be decoded and will be skipped in training, as before; first: {}",
                counted(report.unreadable, "image"), report.first_unreadable);
  if (report.smaller > 0 && images.max_side < training.max_side)
    log_warning(
        "data.max_side is {}: training will enlarge the reduced images; --max-side {} keeps all "
        "detail that it can use",
        training.max_side, training.max_side);
}

/// Returns the data to pack: all images of the split or, for "train", the output of
/// [[data.sources]] if there are any.
TrainData open_data(const Recipe& recipe, const std::string& split) {
  if (split == "train" && !recipe.sources.empty()) {
    auto data = recipe.data;
    data.source.clear();  // a data server's data are packed where it runs
    return open_train_data(data, recipe.sources);
  }
  const auto& name = split == "train" ? recipe.data.train
                     : split == "val" ? recipe.data.val
                                      : split;
  auto opened = open_split(recipe.data, name);
  auto classes = opened.classes;
  return {std::move(classes),
          std::make_shared<const DetectionSource>(std::move(opened), /*filter_empty=*/false)};
}

int pack(const PackArguments& arguments) {
  const auto recipe = arguments.config.load();
  const auto [classes, opened] = open_data(recipe, arguments.split);
  const auto& source = *opened;
  const bool is_declared = arguments.split == "train" && !recipe.sources.empty();
  auto images = arguments.images;
  images.strict = recipe.data.strict_decoding;
  images.max_pixels = recipe.data.max_pixels;
  const auto threads = recipe.data.threads > 0
                           ? recipe.data.threads
                           : static_cast<std::int64_t>(allowed_processor_count());
  const auto report =
      pack_records(source, classes, arguments.out,
                   {.images = images,
                    .threads = static_cast<int>(threads),
                    .shard_bytes = static_cast<std::uint64_t>(arguments.shard_megabytes) << 20});
  if (arguments.images.max_side > 0) report_smaller(report, arguments.images, recipe.data);
  print_formatted(
      "{}: {}, {}{}; read it with\n\n[[data.sources]]\ntype = \"records\"\nfolder = \"{}\"\n{}",
      arguments.out.string(), counted(source.size(), "image"),
      byte_text(std::filesystem::file_size(records_file(arguments.out))),
      report.shards > 0 ? " and " + counted(report.shards, "shard") : "",
      std::filesystem::absolute(arguments.out).lexically_normal().string(),
      // The declared sources have already filtered the images.
      is_declared ? "filter_empty = false\n\ninstead of the sources that it contains\n" : "");
  suggest_next("add these lines to {0}, then trainer bench dataflow {0} measures the gain",
               arguments.config.file);
  return kDone;
}

}  // namespace

void add_pack(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "pack", pack);
  arguments.config.add_to(command);
  add_option(command, "--out", arguments.out, "DIR", "folder to create")->required();
  command
      .add_option("--split", arguments.split,
                  "split to pack: train ([[data.sources]], or data.train), val (data.val), or the "
                  "name of another split")
      ->capture_default_str();
  auto* max_side =
      command
          .add_option("--max-side", arguments.images.max_side,
                      "maximum longer side in pixels; larger images are reduced permanently")
          ->check(CLI::Range(1, 65500));
  command
      .add_option("--quality", arguments.images.quality,
                  "quality of the JPEGs that --max-side makes")
      ->check(CLI::Range(1, 100))
      ->needs(max_side)
      ->capture_default_str();
  command
      .add_option("--shards", arguments.shard_megabytes,
                  "approximate size in MiB of tar files for images, in WebDataset's layout")
      ->check(CLI::Range(1, 1 << 20))
      ->expected(0, 1)
      ->default_str("256");
  add_examples(command, {"trainer pack configs/maskrcnn.toml --out packed",
                         "trainer pack configs/maskrcnn.toml --max-side 1333 --out packed",
                         "trainer pack configs/maskrcnn.toml --shards 256 --out shards",
                         "trainer pack configs/maskrcnn.toml --split val --out packed_val"});
}

}  // namespace millrace::cli
