// What coco-eval is asked for beyond the twelve figures.
#pragma once

#include <cstddef>
#include <string>

#include "millrace/cli/command.h"
#include "millrace/coco/analysis/analysis.h"

namespace millrace::cli {

struct AnalysisArguments {
  bool analyze = false;
  // Of the bootstrap; 0: none, or the usual number where results are compared
  std::size_t draws = 0;
  std::string versus, csv, html;

  void add_to(CLI::App& command);

  /// Whether anything is asked for.
  bool any() const;
  coco::Analysis run(const coco::Dataset& truth, const coco::Detections& detections,
                     const coco::EvaluateOptions& options) const;

  /// Writes the table and the page; `truth` and `detections` are the files that were read.
  void write_files(const coco::Analysis& analysis, coco::IouType iou, const std::string& truth,
                   const std::string& detections) const;
  std::string text(const coco::Analysis& analysis) const;
  void add(Json& json, const coco::Analysis& analysis) const;
};

}  // namespace millrace::cli
