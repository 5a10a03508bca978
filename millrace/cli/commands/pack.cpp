// trainer pack: images and annotations into a record store.
#include <fmt/format.h>

#include "millrace/base/text.h"
#include "millrace/cli/arguments.h"
#include "millrace/cli/command.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "millrace/dataflow/store/record_store.h"

namespace millrace::cli {
namespace {

struct PackArguments {
  ConfigArguments config;
  std::filesystem::path out;
  std::string split = "train";
};

int pack(const PackArguments& arguments) {
  const auto recipe = arguments.config.load();
  const auto& name = arguments.split == "train" ? recipe.data.train
                     : arguments.split == "val" ? recipe.data.val
                                                : arguments.split;
  const auto split = open_split(recipe.data, name);
  const DetectionSource source(split, /*filter_empty=*/false);
  pack_records(source, split.classes, arguments.out);
  fmt::print(
      "{}: {}, {}; read it with\n\n[[data.sources]]\ntype = \"records\"\nfolder = \"{}\"\n",
      arguments.out.string(), counted(source.size(), "image"),
      byte_text(static_cast<double>(std::filesystem::file_size(records_file(arguments.out)))),
      arguments.out.string());
  suggest_next(fmt::format("with these lines in {0}, trainer bench dataflow {0} says what it gains",
                           arguments.config.file));
  return kDone;
}

}  // namespace

void add_pack(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(
      app, action, "pack", "Put the images and annotations of a split into a record store", pack);
  arguments.config.add_to(command);
  command.add_option("--out", arguments.out, "the folder to make")->required()->type_name("DIR");
  command
      .add_option("--split", arguments.split,
                  "train: data.train, val: data.val, or the name of another split")
      ->capture_default_str();
  add_examples(command, {"trainer pack configs/maskrcnn.toml --out packed",
                         "trainer pack configs/maskrcnn.toml --split val --out packed_val"});
}

}  // namespace millrace::cli
