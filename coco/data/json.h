// Reading large JSON files record by record in one pass, with errors that say where. Not for
// several threads.
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

/// A value at a place in the text that is not what its field needs. Reading may go on after its
/// record.
struct Wrong {
  const char* at;
  std::string why;
  std::string_view field = {};  // the innermost field that is wrong; empty: the one being read
};

/// The text is not JSON from this place on, or a record is wrong and must not be. `JsonText` makes
/// it an Error with file, line and byte.
struct Broken : Error {
  Broken(const char* place, const std::string& why) : Error(why), at(place) {}
  const char* at;
};

/// A record that cannot be read, for a caller that continues after it.
struct RecordFault {
  std::string_view section;
  std::size_t index = 0;           // in the section
  std::optional<std::int64_t> id;  // if it can be read
  std::size_t byte = 0;            // offset of the fault in the text
  std::string_view field;          // the innermost field that is wrong; empty: the record itself
  std::string why;
};

/// "annotations[3] (id 7)".
std::string record_name(std::string_view section, std::size_t index,
                        std::optional<std::int64_t> id = {});

/// What to do with one field of an object. The name is a literal.
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

/// A place in a text. Members skip white space and move past what they read. Values that are not
/// what they are asked for throw Wrong naming the field; text that is not JSON throws Broken. Of
/// values that are skipped only the ends are looked for.
class JsonReader {
 public:
  static constexpr std::size_t kPadding = 32;  // bytes after the text, which must be 0

  JsonReader(const char* begin, const char* end) : begin_(begin), at_(begin), end_(end) {}

  /// From now on a record that is wrong is reported to `on_fault` and left out instead of thrown.
  void tolerate(std::function<void(RecordFault)> on_fault) { on_fault_ = std::move(on_fault); }

  const char* at() const { return at_; }
  std::size_t offset(const char* at) const { return static_cast<std::size_t>(at - begin_); }
  /// The next character that is not white space; 0 at the end.
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
    const char* at = at_;  // a variable of its own, here and below, can stay in a register
    const bool negative = *at == '-';
    const char* const first = at += negative;
    std::uint64_t value = 0;
    for (; *at >= '0' && *at <= '9'; ++at) value = value * 10 + static_cast<unsigned>(*at - '0');
    const auto count = at - first;
    constexpr auto kSafe = 18;  // digits, below 2^63
    if (count == 0 || count > kSafe || (*first == '0' && count > 1) || *at == '.' ||
        (*at | ' ') == 'e')
      return unusual_integer();
    at_ = at;
    return negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
  }
  /// A finite number.
  double number() {
    skip_space(at_);
    const char* at = at_;
    double value = 0;
    if (!PlainNumber::read(at, value)) wrong("a finite number");
    at_ = at;
    return value;
  }
  /// true, false or a number: COCO writes 0 and 1.
  bool flag() {
    const char first = next();
    if (first == 't' && take_word("true")) return true;
    if (first == 'f' && take_word("false")) return false;
    return number() != 0;
  }
  /// Valid until the next text.
  std::string_view text() {
    if (next() != '"') wrong("a string");
    const char* const begin = at_;
    skip_plain();
    return *at_ == '"' ? std::string_view{begin + 1, at_++} : unusual_text(begin);
  }
  /// The same, or nullopt for a value of another kind, which is skipped.
  std::optional<std::string_view> text_if_any() {
    if (next() == '"') return text();
    skip();
    return {};
  }
  /// A text that holds run lengths, which mostly have no escapes but of backslashes. Not checked.
  std::string_view counts();

  /// Calls `item()`, which reads it, for each item of an array.
  template <class F>
  void each(F item) {
    begin_array();
    if (take(']')) return;
    do item();
    while (take(','));
    expect(']');
  }
  /// Appends an array of finite numbers. False at the first item that is none.
  bool numbers(std::vector<double>& to) {
    return each_number([&](double value) { to.push_back(value); });
  }
  /// An array of exactly as many numbers as `out` holds, or false for an empty one.
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

  /// Hands each field of an object to its reader, in any order, and skips other fields. Throws
  /// Wrong if a required one is missing.
  template <typename... Fs>
  void fields(Field<Fs>... known) {
    const auto outer = field_;
    if (next() != '{') wrong("an object");
    const char* const begin = at_++;
    if (!take('}')) {
      do {
        if (next() != '"') broken(at_, "a name in quotes must begin here");
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

  /// Reads the objects of the array `section`, each with `on_record()`. Errors get section, index
  /// and id.
  template <typename F>
  void list(std::string_view section, F on_record) {
    begin_array();
    if (take(']')) return;
    records(section, on_record);
    expect(']');
  }
  /// The same for objects in a row, with commas between them. Returns how many there are.
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

  /// Throws Wrong: "'field' is not `what`".
  [[noreturn]] void wrong(std::string_view what) const;

 private:
  void skip_plain() {  // of a text
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
  /// Hands each number of an array to `use`. False at the first item that is none.
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
  /// Throws Broken, about the end of the text if that is the place.
  [[noreturn]] void fail(const char* at, const std::string& why) const;
  /// The same for text that is not JSON.
  [[noreturn]] void broken(const char* at, std::string_view why) const;
  [[noreturn]] void missing(char c) const;
  [[noreturn]] void no_record(std::string_view section, std::size_t index) const;
  /// Reports a record that begins there and moves past it, or throws Broken.
  void report(const Wrong& wrong, std::string_view section, std::size_t index, const char* begin);

  const char* begin_;
  const char* at_;
  const char* end_;
  const char* field_ = "";  // the innermost that is being read; one word, stored for each field
  std::string spare_;       // an unescaped text
  std::function<void(RecordFault)> on_fault_;
};

/// The longest text that is read in order, in bytes: it is held in memory.
inline constexpr std::uint64_t kMostText = UINT32_MAX;

/// A JSON file to be read in parts. Its first bytes must be UTF-8 and `opening`, the brace of an
/// object or the bracket of an array of objects: else throws Error before a large file is read.
InputFile open_json(const std::filesystem::path& file, char opening);

/// The text of such a file or pipe. Throws Error.
std::string read_json(const std::filesystem::path& file, char opening);

/// A document and its text.
class JsonText {
 public:
  JsonText(std::string text, std::string source);

  /// Reads the document, which begins with `opening`, with `body(JsonReader&)`. Throws Error:
  /// "file: line 3, byte 120: why".
  template <typename F>
  void read(char opening, F body) const {
    try {
      JsonReader reader = begin(opening);
      body(reader);
      if (!reader.is_at_end())
        throw Broken(reader.at(), "text goes on after the end of the JSON document");
    } catch (const Wrong& wrong) {
      refuse(wrong.at, wrong.why);
    } catch (const Broken& broken) {
      refuse(broken.at, broken.what());
    }
  }

  /// Throws such an Error.
  [[noreturn]] void fail(std::size_t byte, const std::string& why) const;

 private:
  JsonReader begin(char opening) const;
  [[noreturn]] void refuse(const char* at, const std::string& why) const;

  std::size_t size_;
  std::string text_, source_;  // with padding
};

}  // namespace millrace::coco
