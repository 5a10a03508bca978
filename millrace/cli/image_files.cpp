#include "millrace/cli/image_files.h"

#include <opencv2/core/mat.hpp>

#include "millrace/base/errors.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/dataflow/image/image_folder.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::vector<fs::path> find_images(std::span<const fs::path> paths) {
  std::vector<fs::path> files;
  for (const auto& path : paths) {
    if (!fs::exists(path)) throw Error(path.string() + ": there is no such file or folder");
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    const auto inside = images_in(path);
    files.insert(files.end(), inside.begin(), inside.end());
  }
  if (files.empty()) throw Error(paths.front().string() + ": no image in it");
  return files;
}

std::shared_ptr<const coco::Dataset> as_dataset(
    std::span<const fs::path> files, coco::Records categories, const std::string& source,
    const std::function<void(const fs::path&, const std::string&)>& on_bad) {
  coco::Records records = std::move(categories);
  for (const auto& file : files) {
    try {
      const auto size =
          decode_rgb(read_image_file(file), file.string(), {}, /*strict=*/false).size();
      const auto id = static_cast<std::int64_t>(records.images.size()) + 1;
      records.add_image(id, fs::absolute(file).string(), size.width, size.height);
    } catch (const std::exception& problem) {
      on_bad(file, problem.what());
    }
  }
  return assemble(std::move(records), source);
}

}  // namespace millrace::cli
