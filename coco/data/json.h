// A reader for large JSON files, record by record in one pass, with errors that contain the place.
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/coco/data/plain_number.h"

namespace millrace::coco {

/// Thrown for a value that its field does not accept. Reading can continue after its record.
struct Wrong {
  const char* at;
  std::string why;
  std::string_view field = {};  // innermost wrong field; empty = the field being read
};

/// Thrown if the text is not JSON from this place on, or for a wrong record that is not tolerated.
/// `JsonText` converts it to an Error with file, line and byte.
struct Broken : Error {
  Broken(const char* place, const std::string& why) : Error(why), at(place) {}
  const char* at;
};

/// A report on an unreadable record, for a caller that continues with the next record.
struct RecordFault {
  std::string_view section;
  std::size_t index = 0;           // position in the section
  std::optional<std::int64_t> id;  // nullopt if not readable
  std::size_t byte = 0;            // offset of the fault in the text
  std::string_view field;          // innermost wrong field; empty = the record itself
  std::string why;
};

/// Returns "annotations[3] (id 7)".
std::string record_name(std::string_view section, std::size_t index,
                        std::optional<std::int64_t> id = {});

/// A field of an object and the function that reads it. The name is a string literal.
template <typename F>
struct Field {
  std::string_view name;
  bool required;
  F read;
  bool seen = false;
};
template <typename F>
Field<F> required(std::string_view name, F read) {
  return {name, true, std::move(read)};
}
template <typename F>
Field<F> optional(std::string_view name, F read) {
  return {name, false, std::move(read)};
}

/// A position in a text. Members skip white space and move past what they read. A value of a wrong
/// type throws Wrong with the field's name; text that is not JSON throws Broken. Skipped values are
/// only scanned for their ends, not verified.
class JsonReader {
 public:
  static constexpr std::size_t kPadding = 32;  // number of zero bytes required after the text

  JsonReader(const char* begin, const char* end) : begin_(begin), at_(begin), end_(end) {}

  /// From now on, reports wrong records to `on_fault` and leaves them out instead of throwing.
  void tolerate(std::function<void(RecordFault)> on_fault) { on_fault_ = std::move(on_fault); }

  const char* at() const { return at_; }
  std::size_t offset(const char* at) const { return static_cast<std::size_t>(at - begin_); }
  /// Returns the next character that is not white space; 0 at the end.
  char next() {
    skip_space(at_);
    return *at_;
  }
  bool is_at_end() { return next() == '\0' && at_ == end_; }
  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  bool take_null() { return take_word("null"); }

  std::int64_t integer() {
    skip_space(at_);
    const char* at = at_;  // a local copy, here and below, can stay in a register
    const bool negative = *at == '-';
    const char* const first = at += negative;
    std::uint64_t value = 0;
    for (; *at >= '0' && *at <= '9'; ++at) value = value * 10 + static_cast<unsigned>(*at - '0');
    const auto count = at - first;
    constexpr auto kSafe = 18;  // digits that always fit below 2^63
    if (count == 0 || count > kSafe || (*first == '0' && count > 1) || *at == '.' ||
        (*at | ' ') == 'e')
      return unusual_integer();
    at_ = at;
    return negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
  }
  /// Reads a finite number.
  double number() {
    skip_space(at_);
    const char* at = at_;
    double value = 0;
    if (!PlainNumber::read(at, value)) wrong("a finite number");
    at_ = at;
    return value;
  }
  /// Reads true, false or a number (COCO uses 0 and 1).
  bool flag() {
    const char first = next();
    if (first == 't' && take_word("true")) return true;
    if (first == 'f' && take_word("false")) return false;
    return number() != 0;
  }
  /// Reads a string. The result is valid until the next string is read.
  std::string_view text() {
    if (next() != '"') wrong("a string");
    const char* const begin = at_;
    skip_plain();
    return *at_ == '"' ? std::string_view{begin + 1, at_++} : unusual_text(begin);
  }
  /// Reads a string; skips a value of another type and returns nullopt.
  std::optional<std::string_view> text_if_any() {
    if (next() == '"') return text();
    skip();
    return {};
  }
  /// Reads a string of run lengths, in which usually only backslashes are escaped. Not verified.
  std::string_view counts();

  /// Reads an array. Calls `item()` for each item, which must read it.
  template <class F>
  void each(F item) {
    begin_array();
    if (take(']')) return;
    do item();
    while (take(','));
    expect(']');
  }
  /// Appends an array of finite numbers. Returns false at the first item that is not a finite
  /// number.
  bool numbers(std::vector<double>& to) {
    return each_number([&](double value) { to.push_back(value); });
  }
  /// Reads an array of exactly `out.size()` numbers. Returns false for an empty array.
  bool numbers_if_any(std::span<double> out) {
    std::size_t count = 0;
    skip_space(at_);
    const char* const begin = at_;
    const bool all = each_number([&](double value) {
      if (count < out.size()) out[count] = value;
      ++count;
    });
    if (!all) wrong("a finite number");
    if (count != out.size() && count != 0) wrong_count(begin, count, out.size());
    return count > 0;
  }

  /// Reads an object. Calls the reader of each known field, in any order, and skips other fields.
  /// Throws Wrong if a required field is missing.
  template <typename... Fs>
  void fields(Field<Fs>... known) {
    const auto outer = field_;
    if (next() != '{') wrong("an object");
    const char* const begin = at_++;
    if (!take('}')) {
      do {
        if (next() != '"') broken(at_, "expected a quoted name here");
        const auto took = [&](auto& one) {
          const std::size_t size = one.name.size();
          if (std::memcmp(at_ + 1, one.name.data(), size) != 0 || at_[size + 1] != '"')
            return false;
          at_ += size + 2;
          expect(':');
          field_ = one.name.data();
          one.seen = true;
          one.read();
          return true;
        };
        if (!(took(known) || ...)) {
          skip_text();
          expect(':');
          skip();
        }
      } while (take(','));
      expect('}');
    }
    field_ = outer;
    const auto check = [&](const auto& one) {
      if (one.required && !one.seen) missing_field(begin, one.name);
    };
    (check(known), ...);
  }

  /// Reads the array `section` of objects, calling `on_record()` for each. Errors contain the
  /// section, the index and the id.
  template <typename F>
  void list(std::string_view section, F on_record) {
    begin_array();
    if (take(']')) return;
    records(section, on_record);
    expect(']');
  }
  /// Reads comma-separated objects without brackets like `list`. Returns their number.
  template <typename F>
  std::size_t records(std::string_view section, F on_record) {
    std::size_t index = 0;
    do {
      if (next() != '{') no_record(section, index);
      const char* const begin = at_;
      field_ = "";
      try {
        on_record();
      } catch (const Wrong& wrong) {
        report(wrong, section, index, begin);
      }
      ++index;
    } while (take(','));
    return index;
  }

  /// Skips a value.
  void skip();

  /// Throws Wrong with "'field' is not `what`".
  [[noreturn]] void wrong(std::string_view what) const;

 private:
  void skip_plain() {  // the plain characters of a string
    const char* at = at_;
    do ++at;
    while (*at >= ' ' && *at < '\x7f' && *at != '"' && *at != '\\');
    at_ = at;
  }
  void skip_text() {
    const char* const begin = at_;
    skip_plain();
    if (*at_ == '"')
      ++at_;
    else
      skip_unusual_text(begin);
  }
  static void skip_space(const char*& at) {
    while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t') ++at;
  }
  bool take_word(std::string_view word) {
    skip_space(at_);
    if (std::memcmp(at_, word.data(), word.size()) != 0) return false;
    at_ += word.size();
    return true;
  }
  void begin_array() {
    if (!take('[')) wrong("an array");
  }
  /// Calls `use` for each number of an array. Returns false at the first item that is not a number.
  template <class F>
  bool each_number(F use) {
    begin_array();
    if (take(']')) return true;
    for (const char* at = at_;; ++at) {
      double value = 0;
      skip_space(at);
      const char* const begin = at;
      if (!PlainNumber::read(at, value)) {
        at_ = begin;
        return false;
      }
      use(value);
      skip_space(at);
      if (*at == ',') continue;
      at_ = at;
      expect(']');
      return true;
    }
  }
  [[gnu::always_inline]] void expect(char c) {
    if (!take(c)) missing(c);
  }

  std::int64_t unusual_integer();
  std::string_view unusual_text(const char* begin);
  void skip_unusual_text(const char* begin);
  [[noreturn]] void wrong_count(const char* at, std::size_t count, std::size_t needed) const;
  [[noreturn]] static void missing_field(const char* at, std::string_view name);
  /// Throws Broken; at the end of the text, reports a truncated file.
  [[noreturn]] void fail(const char* at, const std::string& why) const;
  /// Throws Broken for text that is not JSON.
  [[noreturn]] void broken(const char* at, std::string_view why) const;
  [[noreturn]] void missing(char c) const;
  [[noreturn]] void no_record(std::string_view section, std::size_t index) const;
  /// Reports the record that begins at `begin` and moves past it, or throws Broken.
  void report(const Wrong& wrong, std::string_view section, std::size_t index, const char* begin);

  const char* begin_;
  const char* at_;
  const char* end_;
  // Innermost field being read; a single pointer, since it is stored for each field.
  const char* field_ = "";
  std::string spare_;  // storage of an unescaped string
  std::function<void(RecordFault)> on_fault_;
};

/// Maximum bytes of a text that is read in order, since it is held in memory.
inline constexpr std::uint64_t kMostText = UINT32_MAX;

/// Opens a JSON file to be read in pieces. The file must begin with UTF-8 text and `opening`, the
/// brace of an object or the bracket of an array of objects. Otherwise throws Error before a large
/// file is read.
InputFile open_json(const std::filesystem::path& file, char opening);

/// Returns the text of such a file or pipe. Throws Error.
std::string read_json(const std::filesystem::path& file, char opening);

/// A JSON document and its text.
class JsonText {
 public:
  JsonText(std::string text, std::string source);

  /// Reads the document, which must begin with `opening`, by calling `body(JsonReader&)`. Throws
  /// Error as "file: line 3, byte 120: why".
  template <typename F>
  void read(char opening, F body) const {
    try {
      JsonReader reader = begin(opening);
      body(reader);
      if (!reader.is_at_end())
        throw Broken(reader.at(), "extra text after the end of the JSON document");
    } catch (const Wrong& wrong) {
      refuse(wrong.at, wrong.why);
    } catch (const Broken& broken) {
      refuse(broken.at, broken.what());
    }
  }

  /// Throws an Error with the line of this byte.
  [[noreturn]] void fail(std::size_t byte, const std::string& why) const;

 private:
  JsonReader begin(char opening) const;
  [[noreturn]] void refuse(const char* at, const std::string& why) const;

  std::size_t size_;
  std::string text_, source_;  // text_ includes the padding
};

}  // namespace millrace::coco
