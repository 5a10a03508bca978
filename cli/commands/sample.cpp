// trainer sample: makes the sample data set.
#include "millrace/coco/sample/sample.h"

#include <fmt/format.h>

#include <filesystem>

#include "millrace/base/text.h"
#include "millrace/cli/command.h"

namespace millrace::cli {
namespace {

struct SampleArguments {
  std::filesystem::path out;
  coco::SampleOptions options;
};

int sample(const SampleArguments& arguments) {
  coco::make_sample(arguments.out, arguments.options);
  print_formatted("{}: {} for training, {} for validation; use it with --set data.root={}\n",
                  arguments.out.string(), counted(arguments.options.train, "image"),
                  arguments.options.val, arguments.out.string());
  suggest_next(
      "trainer run configs/maskrcnn.toml --set data.root={0}; to see it first: trainer inspect "
      "configs/maskrcnn.toml --set data.root={0}",
      arguments.out.string());
  return kDone;
}

}  // namespace

void add_sample(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "sample", sample);
  auto& options = arguments.options;
  add_option(command, "--out", arguments.out, "DIR", "folder to create")->required();
  command.add_option("--train", options.train, "number of training images")
      ->capture_default_str()
      ->check(positive());
  command.add_option("--val", options.val, "number of validation images")
      ->capture_default_str()
      ->check(positive());
  command.add_option("--seed", options.seed, "random seed; the same seed gives the same bytes")
      ->capture_default_str()
      ->check(not_negative());
  add_examples(command, {"trainer sample --out data/sample",
                         "trainer sample --out /tmp/large --train 118000 --val 5000 --seed 7"});
}

}  // namespace millrace::cli
