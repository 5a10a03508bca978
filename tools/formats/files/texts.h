// Text files of labels: lines, numbers and lists of names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::formats {

/// Up to `most` first bytes of a file; empty if it cannot be read.
std::string beginning_of(const std::filesystem::path& file, std::uint64_t most);

/// A line without its end and the white space around it.
struct TextLine {
  int number = 0;  // from 1
  std::string_view text;
};

/// Why a line cannot be read.
struct LineFault {
  int line = 0;
  std::string why;
};

/// The lines of byte offsets.
class LineCounter {
 public:
  explicit LineCounter(std::string_view text);
  /// Counts from 1; 0 for a negative offset.
  int line_of(std::ptrdiff_t offset) const;

 private:
  std::vector<std::ptrdiff_t> ends_;
};

/// The lines that are not empty; a byte order mark is left out.
std::vector<TextLine> lines_of(std::string_view text);

std::string_view trimmed(std::string_view text);

/// The words of a line, divided by white space.
std::vector<std::string_view> words_of(std::string_view line);

/// A whole word that is a finite number; nullopt for anything else.
std::optional<double> number_in(std::string_view word);
std::optional<long long> integer_in(std::string_view word);

/// The names of a list, one a line. Throws Error naming the file.
std::vector<std::string> names_in(const std::filesystem::path& file);

/// One row of a CSV file. A field in quotes may hold commas, line ends and doubled quotes.
struct CsvRow {
  int line = 0;  // its first line, from 1
  std::vector<std::string> fields;
};

/// The rows that are not empty, divided by commas, or by semicolons or tabs if the first row has
/// more of these.
std::vector<CsvRow> csv_rows(std::string_view text);

}  // namespace millrace::formats
