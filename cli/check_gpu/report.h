// What one part of `trainer check-gpu` has found, in a file that is whole after every addition: a
// part that crashes or hangs leaves what it had found until then.
#pragma once

#include <filesystem>
#include <string>

#include "millrace/cli/command.h"

namespace millrace::cli {

/// For one thread. The file is one JSON object:
///   checks   [{what, ok, found}]         what was compared, and how it came out
///   facts    {name: text}                of the device and its libraries
///   tables   {title: [{column: value}]}  measurements
///   notes    [sentence]                  what could not be done, and why
///   skipped  sentence                    why nothing was done; absent otherwise
class PartReport {
 public:
  /// Writes an empty report.
  explicit PartReport(std::filesystem::path file);

  /// `found`: the figures that decided, such as "2.1e-07, at most 1e-05".
  void check(const std::string& what, bool ok, const std::string& found);
  /// The same of an error that is at most `most`; NaN is not.
  void check_error(const std::string& what, double error, double most);
  void fact(const std::string& name, const std::string& text);
  /// A row of a table; rows of one table have the same columns.
  void row(const std::string& table, Json columns);
  void note(const std::string& sentence);
  void skip(const std::string& why);

  /// No check has failed.
  bool ok() const { return ok_; }

 private:
  void write() const;

  std::filesystem::path file_;
  Json content_;
  bool ok_ = true;
};

}  // namespace millrace::cli
