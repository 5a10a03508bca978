// The data of a first configuration: read in any supported format, examined and reported as by
// `trainer doctor`, and divided into train and val if necessary.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "millrace/cli/command.h"
#include "millrace/coco/data/findings.h"
#include "millrace/dataflow/detection/data_split.h"
#include "millrace/tools/data/split.h"
#include "millrace/tools/formats/format.h"

namespace millrace::cli {

/// The contents of a data folder.
struct SourceData {
  std::string format, why;  // "Pascal VOC", "40 XML files in Annotations"
  formats::Split train;
  std::optional<formats::Split> val;
  std::vector<std::string> unused;  // splits that are neither train nor val
  coco::Findings findings;          // from the reader, then from the doctor's checks
  /// True if a configuration can use the folder unchanged: it has COCO's layout with both splits,
  /// and no error was found.
  bool is_ready = false;
};

/// Returns a split with these classes; if empty, with the names of all its categories.
DataSplit as_data_split(const formats::Split& split, std::vector<std::string> classes = {});

/// Reads a folder. `format`: the name of its format; empty = detect from the files. Throws
/// ConfigError if the folder does not exist, has no labels or an unclear division into splits;
/// Error if it cannot be read.
SourceData read_source(const std::filesystem::path& folder, const std::string& format);

/// Output of `trainer init`, and of `trainer doctor` for a folder without a configuration. Prints
/// paragraphs at once, in lines of 80 columns; with --json, collects one object to print at the
/// end.
class InitReport {
 public:
  explicit InitReport(bool as_json) : as_json_(as_json) {}

  Json json = Json::object();

  /// Prints "WHAT: TEXT" and adds it to `json` as a member.
  void add(const std::string& what, const std::string& text);
  /// Prints a paragraph; nothing with --json.
  void print(const std::string& text);
  /// Prints text unwrapped; nothing with --json.
  void print_line(const std::string& line);

  /// Examines the splits of `folder` and reports their contents and problems. Adds findings to
  /// `data.findings`, and removes images that training would skip. `masks`: masks are learned, so
  /// shapes are checked too. Throws ConfigError if nothing is left to train on.
  void examine(const std::filesystem::path& folder, SourceData& data, bool masks);

 private:
  bool as_json_;
};

/// The result of dividing images into train and val.
struct Division {
  std::size_t copies = 0, scenes = 0, cut = 0;  // see advice::ImageGroups
  std::vector<std::string> unvalidated;         // classes without an object in val
  bool same = false;                            // too few images to divide: both splits are equal
};

/// Divides the only split into train and val (see advice::choose_split). REQUIRES: `data` has no
/// val.
Division divide(SourceData& data, std::uint64_t seed);

/// Returns images of val that are near-copies of images of train, as "a.jpg as b.jpg". nullopt if
/// the data set is so large that the comparison would take minutes. REQUIRES: `data` has a val.
std::optional<std::vector<std::string>> leaks(const SourceData& data);

}  // namespace millrace::cli
