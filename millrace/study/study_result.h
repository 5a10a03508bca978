// What a study found: figures of each variant over its seeds, and whether variants differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "millrace/study/difference.h"
#include "millrace/study/seed_noise.h"
#include "millrace/study/study_folder.h"

namespace millrace::study {

/// A figure of all seeds of a variant: AP and its kin from 0 to 1.
struct Figure {
  std::string name;            // "bbox/AP", "segm/AP50"
  std::vector<double> values;  // by seed
  Moments moments;
  // 95 % interval of the mean over seeds, on these images; NaN of one seed
  double low = 0, high = 0;
};

struct VariantResult {
  std::string name;
  std::vector<std::int64_t> seeds;             // of the runs that are done, ascending
  std::vector<std::filesystem::path> folders;  // of these runs
  std::vector<double> seconds;                 // of training, by seed
  std::vector<Figure> figures;                 // box figures, then those of masks; empty: no runs

  /// Nothing: not measured.
  const Figure* find(const std::string& figure) const;
};

struct StudyResult {
  std::string name;
  std::size_t runs = 0, done = 0, failed = 0;
  std::int64_t maths_threads = 0;
  std::size_t images = 0;  // that the runs were evaluated on
  std::size_t draws = 0;
  std::vector<VariantResult> variants;  // the order of the plan
  std::vector<Difference> differences;  // by variant, boxes before masks
  std::vector<std::string> remarks;     // what is left out, and why: sentences
};

/// From the last detections of all runs that are done, over their validation annotations. Depends
/// neither on threads nor on the order in which runs ended.
StudyResult study_result(const std::filesystem::path& folder, const Study& study);

}  // namespace millrace::study
