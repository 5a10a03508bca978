#include "millrace/cli/init/data_folder.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "millrace/base/disk/part_folder.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/coco/data/dataset_file.h"
#include "millrace/coco/data/records.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

/// Returns a file name inside the folder that is not yet taken.
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

/// Links the image, or copies it if links are not possible. Returns true for a copy.
bool link_or_copy(const fs::path& image, const fs::path& link, const fs::path& final_link) {
  make_folder(link.parent_path());
  std::error_code problem;
  const auto target = fs::absolute(image).lexically_normal();
  const auto base = fs::absolute(final_link).lexically_normal().parent_path();
  // In a folder that is itself reached through a link, ".." leads to another place.
  const auto real_base = fs::weakly_canonical(base, problem);
  const auto real_target = fs::weakly_canonical(target.parent_path(), problem) / target.filename();
  auto relative = real_target.lexically_relative(real_base);
  if (relative.empty()) relative = real_target;
  fs::create_symlink(relative, link, problem);
  if (!problem) return false;
  fs::copy_file(image, link, problem);
  if (problem)
    throw Error(fmt::format("{}: cannot link or copy it to {}: {}", image.string(), link.string(),
                            problem.message()));
  return true;
}

/// Writes `root`/annotations/instances_<name>.json and `root`/<name>/ for a split. Images become
/// symbolic links to their files, relative to `final_root`, to which `root` is renamed once it is
/// complete; copies on a file system without links. A name that leads out of its folder is replaced
/// by one that does not. Returns the number of copies.
std::size_t write_split(const formats::Split& split, const fs::path& root,
                        const fs::path& final_root) {
  const auto& data = *split.data;
  coco::Records records;  // images with their new names, and all else
  std::set<std::string> taken;
  std::size_t copies = 0;
  make_folder(root / "annotations");
  make_folder(root / split.name);
  bool renamed = false;
  for (const auto& image : data.images) {
    const std::string name(data.text(image.file_name));
    const auto own = own_name(name, image.id, taken);
    renamed = renamed || own != name;
    copies +=
        link_or_copy(split.images / name, root / split.name / own, final_root / split.name / own);
    records.add_image(image.id, own, image.width, image.height);
  }
  const auto file = root / "annotations" / ("instances_" + split.name + ".json");
  if (!renamed) {
    coco::write_dataset(file, data);
    return copies;
  }
  for (const auto& category : data.categories)
    records.add_category(category.id, data.text(category.name));
  for (const auto& object : data.annotations)
    records.add(object, data.segmentation(object), data.keypoints_of(object));
  coco::write_dataset(file, *coco::assemble(std::move(records), data.source));
  return copies;
}

}  // namespace

std::size_t write_folder(const fs::path& out, const SourceData& data, advice::Draft& draft) {
  std::size_t copies = 0;
  PartFolder folder(out, PartFolder::Existing::refuse);
  const auto root = folder.path() / "data", final_root = out / "data";
  for (const auto* split : {&data.train, &*data.val}) {
    const bool is_same = split == &*data.val && split->name == data.train.name;
    if (!is_same && !data.is_ready) copies += write_split(*split, root, final_root);
  }
  if (copies > 0) draft.about_root = "the images are copies";
  write_file_atomically(folder.path() / "base.toml", advice::base_text(draft));
  write_file_atomically(folder.path() / "config.toml", config_text(draft));
  sync_file_system(folder.path());
  folder.publish();
  return copies;
}

}  // namespace millrace::cli
