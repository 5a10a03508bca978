#include "millrace/cli/init/data_folder.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/coco/data/dataset_file.h"
#include "millrace/coco/data/records.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

/// A name within the folder, not taken yet.
std::string own_name(const std::string& name, std::int64_t id, std::set<std::string>& taken) {
  const auto path = fs::path(name).lexically_normal();
  auto own = path.is_absolute() || path.begin()->string() == ".." ? path.filename().string()
                                                                  : path.string();
  if (!taken.insert(own).second)
    taken.insert(own = fmt::format("{}-{}", id, fs::path(own).filename().string()));
  return own;
}

void make_folder(const fs::path& folder) {
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) throw Error(fmt::format("{}: {}", folder.string(), problem.message()));
}

void link_or_copy(const fs::path& image, const fs::path& link, const fs::path& final_link,
                  PlacedImages& placed) {
  make_folder(link.parent_path());
  std::error_code problem;
  const auto target = fs::absolute(image).lexically_normal();
  const auto base = fs::absolute(final_link).lexically_normal().parent_path();
  // Seen from a folder that is itself reached by a link, ".." leads elsewhere
  const auto real_base = fs::weakly_canonical(base, problem);
  const auto real_target = fs::weakly_canonical(target.parent_path(), problem) / target.filename();
  auto relative = real_target.lexically_relative(real_base);
  if (relative.empty()) relative = real_target;
  fs::create_symlink(relative, link, problem);
  if (!problem) {
    ++placed.linked;
    return;
  }
  fs::copy_file(image, link, problem);
  if (problem)
    throw Error(fmt::format("{}: cannot be linked or copied to {}: {}", image.string(),
                            link.string(), problem.message()));
  ++placed.copied;
}

}  // namespace

PlacedImages write_split(const formats::Split& split, const fs::path& root,
                         const fs::path& final_root) {
  const auto& data = *split.data;
  coco::Records records;  // the images with their new names, and the rest
  std::set<std::string> taken;
  PlacedImages placed;
  make_folder(root / "annotations");
  make_folder(root / split.name);
  bool renamed = false;
  for (const auto& image : data.images) {
    const std::string name(data.text(image.file_name));
    const auto own = own_name(name, image.id, taken);
    renamed = renamed || own != name;
    link_or_copy(split.images / name, root / split.name / own, final_root / split.name / own,
                 placed);
    records.add_image(image.id, own, image.width, image.height);
  }
  const auto file = root / "annotations" / ("instances_" + split.name + ".json");
  if (!renamed) {
    coco::write_dataset(file, data);
    return placed;
  }
  for (const auto& category : data.categories)
    records.add_category(category.id, data.text(category.name));
  for (const auto& object : data.annotations)
    records.add(object, data.segmentation(object), data.keypoints_of(object));
  coco::write_dataset(file, *coco::assemble(std::move(records), data.source));
  return placed;
}

}  // namespace millrace::cli
