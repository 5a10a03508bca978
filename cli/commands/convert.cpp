// trainer convert: converts weights between file formats and naming schemes.
#include <fmt/format.h>

#include <filesystem>

#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/cli/arguments.h"
#include "millrace/cli/command.h"
#include "millrace/models/weights/conversion.h"

namespace millrace::cli {
namespace {

struct ConvertArguments {
  std::filesystem::path in, out;
  std::string names = "torchvision";
  bool force = false;
};

int convert(const ConvertArguments& arguments) {
  const auto& scheme = scheme_named(arguments.names);
  const auto done =
      convert_weights(arguments.in, arguments.out, scheme, force_weights(arguments.force));
  if (done.assumed_background)
    log_warning(
        "{} does not record whether the background class is first or last; assuming the order of "
        "{}",
        arguments.in.string(), done.from);
  if (done.lost_card)
    log_info("{} cannot record its model and classes, as {} does and a .safetensors file can",
             arguments.out.string(), arguments.in.string());
  if (!done.unnamed.empty()) {
    log_warning("kept the names of {} that {} has no name for, such as {}",
                counted(done.unnamed.size(), "tensor"), scheme.name, done.unnamed.front());
    for (const auto& name : done.unnamed) log_debug("  kept name: {}", name);
  }
  const auto heads =
      done.classes == 0 ? "no heads" : "heads for " + counted(done.classes, "class", "classes");
  const auto names = done.from.empty()
                         ? "names of its detector"
                         : fmt::format("{}, names of {} (from {})", heads, scheme.name, done.from);
  print_formatted("{}: {}, {}\n", arguments.out.string(), counted(done.tensors, "tensor"), names);
  suggest_next("trainer run CONFIG --set model.weights={0}; trainer eval CONFIG --weights {0}",
               arguments.out.string());
  return kDone;
}

std::string doc_of_schemes() {
  std::string doc = "naming scheme and order of classes of OUT:";
  for (const auto& scheme : schemes()) doc += fmt::format("\n{}: {}", scheme.name, scheme.doc);
  return doc;
}

}  // namespace

void add_convert(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "convert", convert);
  command
      .add_option(
          "IN", arguments.in,
          "checkpoint folder, .safetensors, .pth, .pkl or .npz; its naming scheme is detected")
      ->required();
  command.add_option("OUT", arguments.out, "file to write: .safetensors, .pth or .npz")->required();
  add_option(command, "--names", arguments.names, "SCHEME", doc_of_schemes())
      ->capture_default_str();
  add_force_flag(command, arguments.force);
  add_examples(command, {"trainer convert runs/maskrcnn-1/checkpoints/latest model.pth",
                         "trainer convert R-50.pkl data/weights/resnet50_msra.safetensors",
                         "trainer convert model_final.pkl model.npz --names tensorpack"});
}

}  // namespace millrace::cli
