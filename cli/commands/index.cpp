// trainer index: makes a record store of existing shards.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/cli/command.h"
#include "millrace/dataflow/store/index_shards.h"
#include "millrace/dataflow/store/record_store.h"
#include "millrace/dataflow/store/remote/remote.h"

namespace millrace::cli {
namespace {

struct IndexArguments {
  std::vector<std::string> shards;
  std::filesystem::path out;
};

/// Returns local shards with absolute paths, so that the store can be used from any folder.
std::vector<std::string> settled(std::vector<std::string> shards) {
  for (auto& shard : shards)
    if (!is_url(shard)) shard = std::filesystem::absolute(shard).lexically_normal().string();
  return shards;
}

OpenShard opener(const std::vector<std::string>& shards) {
  const auto remote =
      std::ranges::any_of(shards, is_url) ? Remote::open({}) : std::shared_ptr<Remote>();
  return [remote](const std::string& name) {
    return is_url(name) ? in_large_pieces(remote->file(name)) : open_local_file(name);
  };
}

/// Returns the folders and URLs of the shards in the configuration's syntax.
std::string folders_text(const std::vector<std::string>& shards) {
  std::set<std::string> folders;
  for (const auto& shard : shards) folders.insert(fmt::format("\"{}\"", shard_folder(shard)));
  return joined(std::vector(folders.begin(), folders.end()));
}

int index(const IndexArguments& arguments) {
  const auto shards = settled(arguments.shards);
  const auto report = index_shards(shards, opener(shards), arguments.out);
  print_formatted(
      "{}: {} in {}, classes {}; read it with\n\n[[data.sources]]\ntype = \"records\"\n"
      "folder = \"{}\"\nshards = [{}]\n",
      arguments.out.string(), counted(report.images, "image"),
      counted(arguments.shards.size(), "shard"), joined(report.classes),
      std::filesystem::absolute(arguments.out).lexically_normal().string(), folders_text(shards));
  if (report.without_annotations > 0)
    log_warning("{} without annotations, because no JSON file is beside them",
                counted(report.without_annotations, "image"));
  if (report.without_area > 0)
    log_warning("left out {} whose box is outside the image",
                counted(report.without_area, "object"));
  return kDone;
}

}  // namespace

void add_index(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "index", index);
  add_option(command, "shards", arguments.shards, "SHARD",
             "paths or URLs of tar files in WebDataset's layout, or of TFRecord files of "
             "TensorFlow's Object Detection API")
      ->required();
  add_option(command, "--out", arguments.out, "DIR", "folder to create")->required();
  add_examples(command, {"trainer index shards/*.tar --out index",
                         "trainer index train.tfrecord-000*-of-00010 --out index"});
}

}  // namespace millrace::cli
