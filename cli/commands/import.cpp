// trainer import: converts annotations of other tools to COCO's layout.
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "millrace/base/text.h"
#include "millrace/cli/command.h"
#include "millrace/cli/findings_text.h"
#include "millrace/tools/formats/format.h"
#include "millrace/tools/formats/import_folder.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

struct ImportArguments {
  fs::path source, out;
  std::string format;
  std::size_t max_examples = 5;
  bool json = false;
};

/// Returns true if the first image of a new folder is the source's file, not a copy.
bool is_linked(const formats::Imported& imported, const fs::path& out) {
  const auto& split = imported.splits[0];
  const auto source = split.images / split.data->text(split.data->images[0].file_name);
  std::error_code unknown;
  for (const auto& entry : fs::recursive_directory_iterator(out, unknown))
    if (entry.path().filename() == source.filename() &&
        fs::equivalent(entry.path(), source, unknown))
      return true;
  return false;
}

std::string split_text(const formats::Split& split) {
  return fmt::format("  {}: {}, {}, {}\n", split.name, counted(split.data->images.size(), "image"),
                     counted(split.data->annotations.size(), "object"),
                     counted(split.data->categories.size(), "class", "classes"));
}

Json json_of_import(const formats::Imported& imported, const coco::Findings& findings,
                    const ImportArguments& arguments) {
  Json splits = Json::array();
  for (const auto& split : imported.splits)
    splits.push_back({{"name", split.name},
                      {"images", split.data->images.size()},
                      {"objects", split.data->annotations.size()},
                      {"categories", split.data->categories.size()}});
  return {{"format", imported.from.format->name},
          {"to", "coco"},
          {"out", arguments.out.string()},
          {"splits", std::move(splits)},
          {"findings", findings_json(findings.sorted())}};
}

/// Returns the suggested next command for the new folder, which has COCO's layout.
std::string next_step(const formats::Imported& imported, const fs::path& out) {
  const auto& splits = imported.splits;
  if (splits.size() == 1)
    return fmt::format("trainer init DIR --data {}, which also makes a validation split",
                       out.string());
  return fmt::format(
      "trainer doctor configs/maskrcnn.toml --set data.root={} --set data.train={} --set "
      "data.val={}",
      out.string(), splits[0].name, splits[1].name);
}

int import_labels(const ImportArguments& arguments) {
  coco::Findings findings(arguments.max_examples);
  const auto imported =
      formats::import_folder(arguments.source, arguments.out, arguments.format, findings);
  if (arguments.json) {
    print(json_of_import(imported, findings, arguments));
    return kDone;
  }
  auto text =
      fmt::format("{}: read as {}{}\n", arguments.source.string(), imported.from.format->name,
                  imported.from.why.empty() ? "" : ": " + imported.from.why);
  for (const auto& split : imported.splits) text += split_text(split);
  text += findings_text(findings.sorted());
  text += fmt::format("\n{}: written as coco; the images are {}\n", arguments.out.string(),
                      is_linked(imported, arguments.out)
                          ? "hard links to the source's files, which take no space; copy an image "
                            "before changing it"
                          : "copies, because the file system does not support hard links");
  print_lines(text);
  suggest_next(next_step(imported, arguments.out));
  return kDone;
}

/// Returns "coco, csv, ..." with a description of each format.
std::string format_doc() {
  std::string doc;
  for (const auto& one : formats::formats()) doc += fmt::format("\n{}: {}", one.name, one.title);
  return doc;
}

}  // namespace

void add_import(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "import", import_labels);
  command.add_option("PATH", arguments.source, "folder with images and labels")->required();
  add_option(command, "--out", arguments.out, "DIR", "folder to create")->required();
  add_option(command, "--format", arguments.format, "NAME",
             "format of PATH, if detection fails or is wrong:" + format_doc());
  add_option(command, "--max", arguments.max_examples, "N",
             "maximum number of examples per kind of finding")
      ->check(not_negative())
      ->capture_default_str();
  add_json_flag(command, arguments.json);
  add_examples(command, {"trainer import photos --out data/photos",
                         "trainer import VOC2012 --format voc --out data/voc"});
}

}  // namespace millrace::cli
