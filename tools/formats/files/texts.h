// Parses text files of labels: lines, numbers and lists of names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::formats {

/// Returns up to `most` first bytes of a file; empty if it cannot be read.
std::string beginning_of(const std::filesystem::path& file, std::uint64_t most);

/// A line without line end and surrounding white space.
struct TextLine {
  int number = 0;  // from 1
  std::string_view text;
};

/// Reason why a line is invalid.
struct LineFault {
  int line = 0;
  std::string why;
};

/// Converts byte offsets to line numbers.
class LineCounter {
 public:
  explicit LineCounter(std::string_view text);
  /// Returns the line number from 1; 0 for a negative offset.
  int line_of(std::ptrdiff_t offset) const;

 private:
  std::vector<std::ptrdiff_t> ends_;
};

/// Returns the lines that are not empty, without a byte order mark.
std::vector<TextLine> lines_of(std::string_view text);

std::string_view trimmed(std::string_view text);

/// Returns the words of a line, separated by white space.
std::vector<std::string_view> words_of(std::string_view line);

/// Returns the finite number that a word consists of; nullopt if it is anything else.
std::optional<double> number_in(std::string_view word);
std::optional<long long> integer_in(std::string_view word);

/// Returns the names of a list, one per line. Throws Error with the file's name if it cannot be
/// read.
std::vector<std::string> names_in(const std::filesystem::path& file);

/// A row of a CSV file. A quoted field may contain commas, line ends and doubled quotes.
struct CsvRow {
  int line = 0;  // its first line, from 1
  std::vector<std::string> fields;
};

/// Returns the rows that are not empty. Fields are separated by commas, or by semicolons or tabs if
/// the first row has more of these.
std::vector<CsvRow> csv_rows(std::string_view text);

}  // namespace millrace::formats
