// trainer import-config: a recipe of detectron2 or MMDetection as a configuration of ours.
#include "millrace/migration/import_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/cli/command.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace::cli {
namespace {

struct ImportArguments {
  std::filesystem::path file, out;
  std::int64_t gpus = 0, images = 0;  // 0: not said
  std::vector<std::string> overrides;
};

/// Whether two values are the same to an option: 1 and 1.0, 0.5 and [0.5].
bool alike(const Config& a, const Config& b) {
  const auto* list = std::get_if<Config::Array>(&a.data);
  const auto* other = std::get_if<Config::Array>(&b.data);
  if (list && other) return std::ranges::equal(*list, *other, alike);
  if (list || other)
    return (list ? *list : *other).size() == 1 &&
           alike((list ? *list : *other).front(), list ? b : a);
  const auto number = [](const Config& value) -> std::optional<double> {
    if (const auto* whole = std::get_if<std::int64_t>(&value.data))
      return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&value.data)) return *real;
    return std::nullopt;
  };
  if (number(a) && number(b)) return *number(a) == *number(b);
  return value_text(a) == value_text(b);
}

/// A tree without the values that are the same without them.
Config without_defaults(const Config& table, const Config& complete, const Config& usual,
                        const std::string& path = "") {
  Config kept(Config::Table{}, table.origin);
  for (const auto& [key, value] : table.table()) {
    const auto at = path.empty() ? key : path + "." + key;
    if (value.is_table()) {
      auto below = without_defaults(value, complete, usual, at);
      if (!below.table().empty()) kept.set(key, std::move(below));
      continue;
    }
    const auto* given = complete.find_path(at);
    const auto* otherwise = usual.find_path(at);
    const bool says_nothing = given && otherwise && alike(*given, *otherwise) && at != "model.type";
    if (!says_nothing) kept.set(key, value);
  }
  return kept;
}

/// The tables in the order of our configurations.
Config in_order(const Config& tree) {
  Config all;
  for (const auto* table : {"data", "model", "train", "optimizer", "schedule", "callbacks"})
    if (const auto* present = tree.find(table)) all.set(table, *present);
  return all;
}

/// Checks the translation as `trainer run` would and leaves out what is the default.
Config checked(const Config& tree) {
  Config usual;
  usual.set_path("model.type", *tree.find_path("model.type"));
  return without_defaults(in_order(tree), resolve(tree).tree, resolve(usual).tree);
}

/// One paragraph per reason, in the order in which they came up.
std::string left_out_text(const std::vector<LeftOut>& left_out) {
  std::vector<std::pair<std::string, std::string>> groups;
  for (const auto& one : left_out) {
    auto group = std::ranges::find(groups, one.reason, &std::pair<std::string, std::string>::first);
    if (group == groups.end()) group = groups.insert(groups.end(), {one.reason, ""});
    group->second += fmt::format("    {}  {} = {}\n", one.place, one.key, one.value);
  }
  std::string text;
  for (const auto& [reason, keys] : groups) text += fmt::format("  {}:\n{}", reason, keys);
  return text;
}

std::size_t values_in(const Config& tree) { return leaves(tree).size(); }

int import(const ImportArguments& arguments) {
  if (!arguments.out.empty() && std::filesystem::exists(arguments.out))
    throw ConfigError(fmt::format("{} exists: remove it, or choose another name for --out",
                                  arguments.out.string()));
  ImportOptions options{arguments.overrides};
  if (arguments.gpus > 0) options.gpus = arguments.gpus;
  if (arguments.images > 0) options.images = arguments.images;
  const auto imported = import_config(arguments.file, options);
  const auto tree = checked(imported.tree);
  const auto text = fmt::format(
      "# {}, a recipe of {}, by `trainer import-config`. Each value names the line that it comes "
      "from;\n# values that are Millrace's defaults are left out.\n\n{}",
      arguments.file.filename().string(), imported.from, to_toml(tree, /*origins=*/true));
  if (arguments.out.empty())
    print_text(text);
  else
    write_file_atomically(arguments.out, text);
  if (!imported.left_out.empty())
    print_to_stderr(fmt::format("{} not translated, because\n{}",
                                counted(std::ssize(imported.left_out), "value"),
                                left_out_text(imported.left_out)));
  const auto name = arguments.out.empty() ? "FILE" : arguments.out.string();
  print_to_stderr(
      fmt::format("{}{}. Next: trainer config {} shows all of it, trainer run {} trains\n",
                  counted(static_cast<long long>(values_in(tree)), "value"),
                  arguments.out.empty() ? "; --out FILE keeps them" : " in " + name, name, name));
  return kDone;
}

}  // namespace

void add_import_config(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(
      app, action, "import-config",
      "Turn a recipe of detectron2 (.yaml) or MMDetection (.py) into a configuration", import);
  command
      .add_option("FILE", arguments.file,
                  "the recipe; the files that it inherits from are read, too. No code of it is run")
      ->required();
  command.add_option("OVERRIDES", arguments.overrides,
                     "values instead of those in the file: KEY VALUE ... as detectron2's command "
                     "lines end, key=value ... as MMDetection's --cfg-options");
  command.add_option("--out", arguments.out, "write here instead of to standard output")
      ->type_name("FILE");
  command
      .add_option(
          "--gpus", arguments.gpus,
          "how many GPUs the recipe is for, a process each: SOLVER.IMS_PER_BATCH is divided "
          "by it (default: 1), MMDetection's batch is multiplied by it (default: as its "
          "auto_scale_lr says, else 8)")
      ->type_name("N")
      ->check(positive());
  command
      .add_option("--images", arguments.images,
                  "images of the training split that have an object, to turn iterations into "
                  "epochs; known of COCO 2017")
      ->type_name("N")
      ->check(positive());
  add_examples(
      command,
      {"trainer import-config configs/COCO-Detection/faster_rcnn_R_50_FPN_1x.yaml --gpus 8",
       "trainer import-config mine.yaml --images 2965 --out mine.toml SOLVER.BASE_LR 0.01",
       "trainer import-config configs/mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py --out "
       "mask_rcnn.toml"});
}

}  // namespace millrace::cli
