// What `trainer init` says, and `trainer doctor` of a folder without a configuration.
#pragma once

#include <filesystem>
#include <string>

#include "millrace/cli/command.h"
#include "millrace/cli/init/source_data.h"

namespace millrace::cli {

/// Paragraphs as they come, in lines of 80 columns, or one object for scripts at the end.
class InitReport {
 public:
  explicit InitReport(bool as_json) : as_json_(as_json) {}

  Json json = Json::object();

  /// "WHAT: TEXT", and a member of `json`.
  void say(const std::string& what, const std::string& text);
  /// A paragraph for people.
  void tell(const std::string& text);
  /// A line for people, as it is.
  void tell_line(const std::string& line);

  /// Examines the data of `folder` (see cli::examine) and says what they are and what is wrong with
  /// them. Throws as that.
  void examine(const std::filesystem::path& folder, SourceData& data, bool masks);

 private:
  bool as_json_;
};

}  // namespace millrace::cli
