// Detects the annotation format of other tools in a folder, and reads it into COCO's structures
// (docs/own-data.md).
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

/// One split of a data set that was read. Every image's file exists as `images` / its file name.
/// Its size is the annotated one, or the upright size (after EXIF rotation) if no label has a size.
struct Split {
  std::string name;              // "train", "val", "test" or kWhole; for COCO, derived from the
                                 // file name
  std::filesystem::path images;  // folder of the images
  std::shared_ptr<const coco::Dataset> data;
};

/// Returns why a folder may have a format, such as "3 XML files in Annotations"; nullopt if it does
/// not. Examines names and the first bytes of a few files.
using DetectFormat = std::optional<std::string>(const Listing& folder);
/// Reads all splits; their categories are the same. Adds problems of labels to `findings`. An
/// object with a problem is kept as written if COCO can represent it, otherwise left out. Throws
/// Error if the whole folder is unreadable.
using ReadFolder = std::vector<Split>(const Listing& folder, coco::Findings& findings);

DetectFormat detect_coco, detect_csv, detect_labelme, detect_masks, detect_voc, detect_yolo;
ReadFolder read_coco, read_csv, read_labelme, read_masks, read_voc, read_yolo;

/// A format. Both functions may be called from any thread; `read` uses the threads of the caller's
/// arena.
struct Format {
  std::string_view name;   // value of `--format`, such as "voc"
  std::string_view title;  // one line, such as "Pascal VOC: an XML file per image"
  DetectFormat* detect;
  ReadFolder* read;
};

/// Returns all formats, sorted by name.
std::span<const Format> formats();

/// Returns the format with this name. If it is unknown, throws ConfigError with a similar name or
/// all known ones.
const Format& find_format(std::string_view name);

/// The format detected in a folder, and the reason.
struct Detected {
  const Format* format;
  std::string why;
};

/// Returns the format of a folder. Throws ConfigError if no format fits, with the formats that were
/// tried and the files found, or if several fit, with the reason for each.
Detected detect_format(const Listing& folder);

}  // namespace millrace::formats
