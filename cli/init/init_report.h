// Output of `trainer init`, and of `trainer doctor` for a folder without a configuration.
#pragma once

#include <filesystem>
#include <string>

#include "millrace/cli/command.h"
#include "millrace/cli/init/source_data.h"

namespace millrace::cli {

/// Prints paragraphs at once, in lines of 80 columns; with --json, collects one object to print at
/// the end.
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

  /// Examines the data of `folder` (see cli::examine) and reports their contents and problems.
  /// Throws what cli::examine throws.
  void examine(const std::filesystem::path& folder, SourceData& data, bool masks);

 private:
  bool as_json_;
};

}  // namespace millrace::cli
