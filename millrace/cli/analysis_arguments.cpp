#include "millrace/cli/analysis_arguments.h"

#include <filesystem>

#include "millrace/base/files.h"
#include "millrace/cli/analysis_output.h"
#include "millrace/coco/analysis/report_page.h"

namespace millrace::cli {

void AnalysisArguments::add_to(CLI::App& command) {
  command.add_flag("--analyze", analyze,
                   "also what kind of error costs how much, confusions, and each class");
  command
      .add_option("--bootstrap", draws,
                  "95 % intervals from so many draws of the images, such as 1000")
      ->type_name("N")
      ->check(CLI::Range(100, 100000));
  command
      .add_option("--versus", versus,
                  "compare with another results file, by a paired test (1000 draws where "
                  "--bootstrap does not say)")
      ->type_name("FILE");
  command.add_option("--csv", csv, "write a table of the classes")->type_name("FILE");
  command.add_option("--html", html, "write everything as one page")->type_name("FILE");
}

bool AnalysisArguments::any() const {
  return analyze || draws > 0 || !versus.empty() || !csv.empty() || !html.empty();
}

coco::Analysis AnalysisArguments::run(const coco::Dataset& truth,
                                      const coco::Detections& detections,
                                      const coco::EvaluateOptions& options) const {
  if (versus.empty()) return coco::analyze(truth, detections, options, draws);
  constexpr std::size_t kUsualDraws = 1000;
  const auto others = coco::read_detections(versus, &truth);
  return coco::analyze(truth, detections, options, draws > 0 ? draws : kUsualDraws, &others);
}

void AnalysisArguments::write_files(const coco::Analysis& analysis, coco::IouType iou,
                                    const std::string& truth, const std::string& detections) const {
  if (!csv.empty()) write_file_atomically(csv, analysis_csv(analysis));
  if (html.empty()) return;
  const auto name = [](const std::filesystem::path& file) { return file.filename().string(); };
  const coco::ReportNames names{name(truth), name(detections), name(versus)};
  write_file_atomically(html, coco::report_page(analysis, iou, names));
}

std::string AnalysisArguments::text(const coco::Analysis& analysis) const {
  std::string text;
  if (analysis.spread) text += spread_text(analysis);
  if (analyze) text += analysis_text(analysis);
  if (analysis.versus) text += versus_text(analysis);
  return text;
}

void AnalysisArguments::add(Json& json, const coco::Analysis& analysis) const {
  if (analyze) add_analysis(json, analysis);
  if (analysis.spread) json["bootstrap"] = spread_json(analysis);
  if (analysis.versus) json["versus"] = versus_json(analysis);
}

}  // namespace millrace::cli
