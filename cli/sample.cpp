// trainer sample: make the sample data set.
#include "coco/sample.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/text.h"
#include "cli/command.h"

namespace millrace::cli {
namespace {

struct Arguments {
  std::filesystem::path out;
  coco::SampleOptions options;
};

int sample(const Arguments& arguments) {
  coco::make_sample(arguments.out, arguments.options);
  fmt::print("{}: {} to train on, {} to validate; use it with --set data.root={}\n",
             arguments.out.string(), counted(arguments.options.train, "image"),
             arguments.options.val, arguments.out.string());
  return kDone;
}

}  // namespace

void add_sample(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "sample", "Make the sample data set: pictures of shapes with exact annotations");
  auto arguments = std::make_shared<Arguments>();
  auto& options = arguments->options;
  command->add_option("--out", arguments->out, "the folder to make")->required()->type_name("DIR");
  command->add_option("--train", options.train, "training images")
      ->capture_default_str()
      ->check(positive());
  command->add_option("--val", options.val, "validation images")
      ->capture_default_str()
      ->check(positive());
  command->add_option("--seed", options.seed, "the same seed gives the same bytes")
      ->capture_default_str()
      ->check(not_negative());
  add_examples(*command, {"trainer sample --out data/sample",
                          "trainer sample --out /tmp/large --train 118000 --val 5000 --seed 7"});
  command->callback([=, &action] { action = [=] { return sample(*arguments); }; });
}

}  // namespace millrace::cli
