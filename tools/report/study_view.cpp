#include "millrace/tools/report/study_view.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"

namespace millrace::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr auto kStudyFile = "study.json";

/// Returns the name "VARIANT-seed-1/NAME-1" of a run folder, relative to the study's folder.
std::string name_in_study(const fs::path& run) {
  return (run.parent_path().filename() / run.filename()).string();
}

}  // namespace

bool is_study(const fs::path& folder) { return fs::exists(folder / kStudyFile); }

ordered_json study_view(const fs::path& folder) {
  const auto file = folder / kStudyFile;
  try {
    const auto study = ordered_json::parse(read_file(file));
    if (!study.contains("result"))
      throw Error(fmt::format(
          "{}: no result yet; `trainer study` writes it after all runs have ended", file.string()));
    ordered_json result = study.at("result");
    for (auto& variant : result.at("variants"))
      for (auto& run : variant.at("folders")) run = name_in_study(run.get<std::string>());
    return {{"study", std::move(result)}};
  } catch (const nlohmann::json::exception& problem) {
    throw Error(fmt::format("{}: not a study: {}", file.string(), problem.what()));
  }
}

}  // namespace millrace::report
