// Reading large JSON files record by record, with errors that say where. Not for several threads.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "millrace/base/files.h"
#include "millrace/coco/data/fields.h"

namespace millrace::coco {

namespace json = simdjson::ondemand;

/// An error at a place in the text. `JsonText` makes it an Error with file, line, byte and record.
struct Wrong {
  const char* at;
  std::string why;
  std::string_view field = {};  // the innermost field that is wrong; empty: the record itself
};

/// A record that cannot be read, for those who continue after it.
struct RecordFault {
  std::string_view section;
  std::size_t index = 0;           // in the section
  std::optional<std::int64_t> id;  // if it can be read
  std::size_t byte = 0;            // offset of the fault in the text
  std::string_view field;          // see Wrong
  std::string why;
};

/// "annotations[3] (id 7)".
std::string record_name(std::string_view section, std::size_t index,
                        std::optional<std::int64_t> id = {});

/// The longest text that the parser takes, in bytes.
inline constexpr std::uint64_t kMostText = UINT32_MAX - simdjson::SIMDJSON_PADDING;

/// The value of a field, or Wrong naming the field.
std::int64_t integer(json::value value, std::string_view field);
double number(json::value value, std::string_view field);
std::string_view text(json::value value, std::string_view field);
json::array array(json::value value, std::string_view field);
/// true, false or a number: COCO writes 0 and 1.
bool flag(json::value value, std::string_view field);
/// The value of a number of many digits: some of these simdjson 3.0 reads wrongly. `read` for one
/// beyond all doubles.
double long_number(std::string_view text, double read);

/// Reads a finite number; false for anything else. A call of its own would double the time.
simdjson_inline bool read_number(json::value value, double& to) {
  constexpr std::size_t kSafe = 19;  // digits
  const std::string_view text = value.raw_json_token();
  if (value.get_double().get(to) != simdjson::SUCCESS) return false;
  if (text.size() > kSafe) to = long_number(text, to);
  return true;
}

/// Exactly as many numbers as `out` holds.
void numbers(json::value value, std::string_view field, std::span<double> out);
/// The same, or false for an empty array.
bool numbers_if_any(json::value value, std::string_view field, std::span<double> out);

/// A JSON file to be read in parts. Its first bytes must be UTF-8 and `opening`, the brace of an
/// object or the bracket of an array of objects: else throws Error before a large file is read.
InputFile open_json(const std::filesystem::path& file, char opening);

/// The text of such a file or pipe. Throws Error.
std::string read_json(const std::filesystem::path& file, char opening);

/// Where a value begins, for Wrong.
const char* place(json::value value);

inline auto required(std::string_view name, std::int64_t& to) {
  return required(name, [&to, name](json::value value) { to = integer(value, name); });
}
/// Hands each field of an object that begins at `at` to its reader, in any order, and ignores other
/// fields. Throws Wrong if a required one is missing.
template <typename... Fs>
void read_fields(json::object fields, const char* at, Field<Fs>... known) {
  for (json::field field : fields) {
    const auto key = field.key();
    json::value value = field.value();
    const auto took = [&](auto& one) {
      if (!(key == one.name)) return false;
      try {
        one.read(value);
      } catch (Wrong& wrong) {
        if (wrong.field.empty()) wrong.field = one.name;
        throw;
      }
      return one.seen = true;
    };
    static_cast<void>((took(known) || ...));
  }
  const auto check = [&](const auto& one) {
    if (one.required && !one.seen) throw Wrong{at, "'" + std::string(one.name) + "' is missing"};
  };
  (check(known), ...);
}

/// A document and its text.
class JsonText {
 public:
  JsonText(std::string text, std::string source);
  /// Without a text: see `replace`.
  explicit JsonText(std::string source) : source_(std::move(source)) {}

  /// Replaces the text by what `fill(std::string&)` makes of it, so that its memory is used again.
  template <typename F>
  void replace(F fill) {
    fill(text_);
    begin();
  }

  /// From now on a record that is wrong is reported to `on_fault` and left out instead of thrown.
  void tolerate(std::function<void(RecordFault)> on_fault) { on_fault_ = std::move(on_fault); }

  /// Reads the document as one object; see `read_fields`.
  template <typename... Fs>
  void read(Field<Fs>... fields) {
    checked([&] { read_fields(document_.get_object(), text_.data(), std::move(fields)...); });
  }

  /// Calls `on_record(object, begin)` for each object of an array; errors get section, index and
  /// id.
  template <typename F>
  void each_record(json::array records, std::string_view section, F on_record) {
    std::size_t index = 0;
    for (json::value value : records) {
      const char* begin = place(value);
      if (*begin != '{') fail(begin, record_name(section, index) + " is not an object");
      json::object record = value.get_object();
      try {
        on_record(record, begin);
      } catch (const Wrong& wrong) {
        const auto id = id_of(record);
        if (!on_fault_) fail(wrong.at, record_name(section, index, id) + ": " + wrong.why);
        on_fault_({section, index, id, offset(wrong.at), wrong.field, wrong.why});
      }
      ++index;
    }
  }

  /// The same if the document itself is the array.
  template <typename F>
  void each_record(std::string_view section, F on_record) {
    checked([&] { each_record(document_.get_array(), section, on_record); });
  }

  /// The same if anything may follow the array. Returns the byte of the closing bracket.
  template <typename F>
  std::size_t each_record_of_prefix(std::string_view section, F on_record) {
    translated([&] { each_record(document_.get_array(), section, on_record); });
    return text_.rfind(']', offset(here()) - 1);
  }

  std::size_t offset(const char* at) const { return static_cast<std::size_t>(at - text_.data()); }

  /// Throws Error: "file: line 3, byte 120: why".
  [[noreturn]] void fail(const char* at, const std::string& why) const;
  [[noreturn]] void fail(std::size_t byte, const std::string& why) const;
  /// Throws Error without a place.
  [[noreturn]] void fail(const std::string& why) const;

 private:
  template <typename F>
  void checked(F read) {
    translated(read);
    if (const char* at = here(); at != text_.data() + text_.size())
      fail(at, "text goes on after the end of the JSON document");
  }
  template <typename F>
  void translated(F read) {
    try {
      read();
    } catch (const Wrong& wrong) {
      fail(wrong.at, wrong.why);
    } catch (const simdjson::simdjson_error& problem) {
      fail_json(problem.error());
    }
  }
  void begin();
  [[noreturn]] void fail_json(simdjson::error_code code);
  /// The current position: the end of the text once all is read.
  const char* here();
  static std::optional<std::int64_t> id_of(json::object& record);
  std::string text_, source_;
  json::parser parser_;
  json::document document_;
  std::function<void(RecordFault)> on_fault_;
};

}  // namespace millrace::coco
