#include "millrace/tools/formats/files/texts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"

namespace millrace::formats {
namespace {

constexpr std::string_view kSpace = " \t\r\n\v\f", kMark = "\xEF\xBB\xBF";

std::string_view without_mark(std::string_view text) {
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

template <class Number>
std::optional<Number> whole_word(std::string_view word) {
  if (word.starts_with('+')) word.remove_prefix(1);
  Number value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return {};
  return value;
}

/// Returns the most frequent separator (comma, semicolon or tab) of the first row, outside quotes.
char divider_of(std::string_view text) {
  constexpr std::string_view kDividers = ",;\t";
  std::size_t counts[kDividers.size()] = {};
  bool in_quotes = false;
  for (const char one : text) {
    if (one == '"') in_quotes = !in_quotes;
    if (in_quotes) continue;
    if (one == '\n') break;
    if (const auto found = kDividers.find(one); found != std::string_view::npos) ++counts[found];
  }
  return kDividers[static_cast<std::size_t>(std::ranges::max_element(counts) - counts)];
}

}  // namespace

std::string beginning_of(const std::filesystem::path& file, std::uint64_t most) {
  try {
    const InputFile input(file);
    std::string bytes(std::min(input.size(), most), '\0');
    input.read(0, bytes);
    return bytes;
  } catch (const Error&) {
    return {};
  }
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

LineCounter::LineCounter(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') ends_.push_back(static_cast<std::ptrdiff_t>(i));
}

int LineCounter::line_of(std::ptrdiff_t offset) const {
  if (offset < 0) return 0;
  return static_cast<int>(std::ranges::lower_bound(ends_, offset) - ends_.begin()) + 1;
}

std::vector<TextLine> lines_of(std::string_view text) {
  std::vector<TextLine> lines;
  text = without_mark(text);
  for (int number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    if (const auto line = trimmed(text.substr(0, end)); !line.empty())
      lines.push_back({number, line});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (;;) {
    const auto first = line.find_first_not_of(kSpace);
    if (first == std::string_view::npos) return words;
    line.remove_prefix(first);
    const auto end = std::min(line.find_first_of(kSpace), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::optional<double> number_in(std::string_view word) {
  const auto value = whole_word<double>(word);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<long long> integer_in(std::string_view word) { return whole_word<long long>(word); }

std::vector<std::string> names_in(const std::filesystem::path& file) {
  std::vector<std::string> names;
  const auto text = read_file(file);
  for (const auto& line : lines_of(text)) names.emplace_back(line.text);
  return names;
}

std::vector<CsvRow> csv_rows(std::string_view text) {
  text = without_mark(text);
  const char divider = divider_of(text);
  std::vector<CsvRow> rows;
  CsvRow row{1, {}};
  std::string field;
  bool quoted = false, was_quoted = false;
  int line = 1;
  const auto end_field = [&] {
    row.fields.push_back(was_quoted ? field : std::string(trimmed(field)));
    field.clear();
    was_quoted = false;
  };
  const auto end_row = [&] {
    end_field();
    const bool is_empty = row.fields.size() == 1 && row.fields[0].empty();
    if (!is_empty) rows.push_back(std::move(row));
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char one = text[i];
    if (one == '\n') ++line;
    if (quoted) {
      if (one != '"')
        field += one;
      else if (i + 1 < text.size() && text[i + 1] == '"')
        field += text[++i];
      else
        quoted = false;
    } else if (one == '"' && trimmed(field).empty()) {
      quoted = was_quoted = true;
      field.clear();
    } else if (one == divider) {
      end_field();
    } else if (one == '\n') {
      end_row();
      row = {line, {}};
    } else if (!was_quoted || kSpace.find(one) == std::string_view::npos) {
      field += one;
    }
  }
  end_row();
  return rows;
}

}  // namespace millrace::formats
