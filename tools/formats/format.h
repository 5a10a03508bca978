// Annotation formats of other tools: which one a folder has, and reading it into COCO's structures
// (docs/formats.md).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/coco/data/annotations.h"
#include "millrace/coco/data/findings.h"
#include "millrace/tools/formats/files/listing.h"

namespace millrace::formats {

/// One split of a data set that was read. Every image's file is `images` / its file name and is
/// there; its size is the one annotated, or the upright one if no label has any.
struct Split {
  std::string name;              // "train", "val", "test", kWhole; of COCO as its file is named
  std::filesystem::path images;  // folder
  std::shared_ptr<const coco::Dataset> data;
};

/// A format. Both functions may be called from any thread; `read` uses the threads of the caller's
/// arena.
struct Format {
  std::string_view name;   // as `--format` takes it: "voc"
  std::string_view title;  // one line: "Pascal VOC: an XML file per image"
  /// Why a folder looks like this format, "3 XML files in Annotations"; nullopt: it does not. Goes
  /// by names and by the first bytes of a few files.
  std::optional<std::string> (*look)(const Listing& folder);
  /// Reads all splits; their categories are the same. What is wrong with a label is added to
  /// `findings`: the object is kept as written if COCO can hold it, else left out. Throws Error
  /// if the folder as a whole cannot be read.
  std::vector<Split> (*read)(const Listing& folder, coco::Findings& findings);
};

/// All of them, by name.
std::span<const Format> formats();

/// Throws ConfigError with the known names.
const Format& find_format(std::string_view name);

/// What a folder was found to be.
struct Detected {
  const Format* format;
  std::string why;
};

/// Throws ConfigError if no format fits, with what was looked for and what is there, or if several
/// do, with the reasons for each.
Detected detect_format(const Listing& folder);

}  // namespace millrace::formats
