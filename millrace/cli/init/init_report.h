// What `trainer init` says.
#pragma once

#include <string>

#include "millrace/cli/command.h"

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

 private:
  bool as_json_;
};

}  // namespace millrace::cli
