#include "millrace/tools/formats/import_folder.h"

#include <utility>

#include "millrace/base/disk/part_folder.h"
#include "millrace/base/files.h"

namespace millrace::formats {

Imported import_folder(const std::filesystem::path& source, const std::filesystem::path& out,
                       std::string_view from, std::string_view to, coco::Findings& findings) {
  const auto& target = find_format(to);
  const auto* format = from.empty() ? nullptr : &find_format(from);
  const Listing folder(source);
  Imported imported{format, {}, {}};
  if (!format) {
    auto detected = detect_format(folder);
    imported.from = detected.format;
    imported.why = std::move(detected.why);
  }
  PartFolder part(out, PartFolder::Existing::refuse);
  imported.splits = imported.from->read(folder, findings);
  target.write(imported.splits, part.path(), findings);
  sync_file_system(part.path());
  part.publish();
  return imported;
}

}  // namespace millrace::formats
