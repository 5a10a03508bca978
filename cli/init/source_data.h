// The data that a first configuration is made for: read in whatever format they have, examined as
// `trainer doctor` does, and divided if they are not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "millrace/coco/data/findings.h"
#include "millrace/dataflow/detection/data_split.h"
#include "millrace/tools/data/split.h"
#include "millrace/tools/formats/format.h"

namespace millrace::cli {

/// What a folder was found to hold.
struct SourceData {
  std::string format, why;  // "Pascal VOC", "40 XML files in Annotations"
  formats::Split train;
  std::optional<formats::Split> val;
  std::vector<std::string> unused;  // splits that are neither
  coco::Findings findings;          // of the reader, then of the doctor
  /// A configuration may read the folder as it is: it has COCO's layout with both splits, and
  /// nothing in it had to be left out.
  bool is_ready = false;
};

/// A split with these classes; empty: those of its categories.
DataSplit as_data_split(const formats::Split& split, std::vector<std::string> classes = {});

/// Reads a folder; `format`: its name, empty: as its files tell. Throws ConfigError for one that is
/// not there, has no labels, or whose splits cannot be told apart; Error if it cannot be read.
SourceData read_source(const std::filesystem::path& folder, const std::string& format);

/// Examines the splits; what is found is added to `data.findings`, and images that training would
/// skip are taken out. `masks`: shapes are learned. Throws ConfigError if nothing is left to train
/// on.
void examine(SourceData& data, bool masks);

/// How the images were divided.
struct Division {
  std::size_t copies = 0, scenes = 0, cut = 0;  // see advice::ImageGroups
  std::vector<std::string> unvalidated;         // classes without an object to evaluate on
  bool same = false;  // there is too little to divide: both splits are the same
};

/// Divides the only split (see advice::choose_split) of seed `seed`. REQUIRES: there is no `val`.
Division divide(SourceData& data, std::uint64_t seed);

/// Images of `val` that are near-copies of some of `train`, "a.jpg as b.jpg". Nothing for a data
/// set so large that comparing would take minutes. REQUIRES: there is a `val`.
std::optional<std::vector<std::string>> leaks(const SourceData& data);

/// One sentence for each kind of finding that matters, with its first example.
std::vector<std::string> sentences(const coco::Findings& findings);

}  // namespace millrace::cli
