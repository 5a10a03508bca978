#include "millrace/tools/formats/import_folder.h"

#include <fmt/format.h>

#include <system_error>

#include "millrace/base/disk/part_folder.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/coco/data/dataset_file.h"

namespace millrace::formats {
namespace {

namespace fs = std::filesystem;

/// Creates a hard link if the file system supports it, otherwise a copy.
void place_image(const fs::path& from, const fs::path& to) {
  try {
    fs::create_directories(to.parent_path());
    const auto source = fs::canonical(from);  // a link to a link breaks if its target moves
    std::error_code cannot_link;
    fs::create_hard_link(source, to, cannot_link);
    if (cannot_link) fs::copy_file(source, to);
  } catch (const fs::filesystem_error& problem) {
    throw Error(fmt::format("cannot link or copy {} to {}: {}", from.string(), to.string(),
                            problem.code().message()));
  }
}

void write_split(const Split& split, const fs::path& out) {
  for (const auto& image : split.data->images) {
    const auto name = split.data->text(image.file_name);
    place_image(split.images / name, out / split.name / name);
  }
  const auto file = out / "annotations" / ("instances_" + split.name + ".json");
  std::error_code unknown;
  fs::create_directories(file.parent_path(), unknown);  // write_dataset reports the failure
  coco::write_dataset(file, *split.data);
}

}  // namespace

Imported import_folder(const fs::path& source, const fs::path& out, std::string_view from,
                       coco::Findings& findings) {
  Imported imported{{from.empty() ? nullptr : &find_format(from), {}}, {}};
  const Listing folder(source);
  if (from.empty()) imported.from = detect_format(folder);
  PartFolder part(out, PartFolder::Existing::refuse);
  imported.splits = imported.from.format->read(folder, findings);
  for (const auto& split : imported.splits) write_split(split, part.path());
  sync_file_system(part.path());
  part.publish();
  return imported;
}

}  // namespace millrace::formats
