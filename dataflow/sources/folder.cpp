// The source "folder": images without annotations.
#include <filesystem>
#include <stdexcept>

#include "millrace/base/options.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/dataflow/sources/detection_sources.h"

namespace millrace {
namespace {

struct FolderOptions {
  std::string root;
  void describe(Options& o) {
    o.add("root", root, "folder of the images; subfolders are not read");
  }

  void check(const Config& table) const {
    require(table, "root", !root.empty(), "is required: the folder of the images");
  }
};

SourcePtr<Sample> open_folder(const FolderOptions& options, const SourceContext&) {
  if (!std::filesystem::is_directory(options.root))
    throw std::invalid_argument("no folder '" + options.root + "'; set `root`");
  auto files = images_in(options.root);
  const auto size = std::ssize(files);
  return generate(size, [files = std::move(files)](std::int64_t index) {
    Sample sample;
    sample.image_id = index + 1;
    sample.path = files[static_cast<std::size_t>(index)].string();
    return sample;
  });
}

MILLRACE_REGISTER(register_source<FolderOptions>(
    "folder", "images of a folder in the order of their names, without objects", open_folder));

}  // namespace
}  // namespace millrace
