// JSON of the plainest form, read in one pass without an index of the text: names, numbers and
// texts without escapes. A reader that meets anything else gives up, and json.h reads the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/coco/data/fields.h"
#include "millrace/coco/data/plain_number.h"

namespace millrace::coco {

/// A place in a text. Its members skip white space and move past what they read; after one that
/// gave false the place and what was read mean nothing. What they take is JSON, and its values have
/// the bits that json.h gives.
class PlainJson {
 public:
  static constexpr std::size_t kPadding = 16;  // bytes after the text, which must be 0

  PlainJson(const char* begin, const char* end) : at_(begin), end_(end) {}

  const char* at() const { return at_; }
  /// The next character that is not white space; 0 at the end.
  char next() {
    skip_space(at_);
    return *at_;
  }
  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    skip_space(at_);
    if (std::strncmp(at_, word.data(), word.size()) != 0) return false;
    at_ += word.size();
    return true;
  }

  /// ASCII without escapes.
  bool text(std::string_view& to) { return take('"') && text_after_quote(to); }

  /// Hands each field of an object to its reader, which gives false if it cannot read the value;
  /// skips other fields. False also where a field is there twice or a required one is missing.
  template <typename... Fs>
  bool fields(Field<Fs>... known) {
    if (!take('{')) return false;
    do {
      if (!take('"')) return false;
      bool read = true;
      const auto took = [&](auto& one) {
        const std::size_t size = one.name.size();
        if (std::memcmp(at_, one.name.data(), size) != 0 || at_[size] != '"') return false;
        at_ += size + 1;
        read = take(':') && !std::exchange(one.seen, true) && one.read();
        return true;
      };
      if (!(took(known) || ...)) {
        std::string_view name;
        read = text_after_quote(name) && take(':') && skip_value();
      }
      if (!read) return false;
    } while (take(','));
    return take('}') && ((known.seen || !known.required) && ...);
  }

  /// Text of run lengths, unchecked, in which backslashes are escaped: in the text itself or, where
  /// it has such, in `spare`.
  bool counts(std::string_view& to, std::string& spare);

  bool integer(std::int64_t& to) {
    const bool negative = take('-');
    const char* const begin = at_;
    std::uint64_t value = 0;
    for (; *at_ >= '0' && *at_ <= '9'; ++at_)
      value = value * 10 + static_cast<unsigned>(*at_ - '0');
    const auto count = at_ - begin;
    constexpr auto kSafe = 18;  // below 2^63
    if (count == 0 || count > kSafe || (*begin == '0' && count > 1)) return false;
    to = negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
    return *at_ != '.' && (*at_ | ' ') != 'e';
  }

  /// A finite number.
  bool number(double& to) {
    skip_space(at_);
    return PlainNumber::read(at_, to);
  }

  /// true, false or a number.
  bool flag(bool& to) {
    if (next() == 't') return to = take("true");
    to = false;
    if (next() == 'f') return take("false");
    double value = 0;
    if (!number(value)) return false;
    to = value != 0;
    return true;
  }

  /// Appends an array of finite numbers.
  bool numbers(std::vector<double>& to) {
    if (!take('[')) return false;
    if (take(']')) return true;
    const char* at = at_;  // a variable of its own, which can stay in a register
    for (;; ++at) {
      double value = 0;
      skip_space(at);
      if (!PlainNumber::read(at, value)) return false;
      to.push_back(value);
      skip_space(at);
      if (*at != ',') break;
    }
    at_ = at;
    return take(']');
  }
  /// An array of as many.
  bool numbers(std::span<double> to) {
    char before = '[';
    for (double& value : to) {
      if (!take(before) || !number(value)) return false;
      before = ',';
    }
    return take(']');
  }

  /// Calls `item()`, which reads it, for each item of an array; false where that gives false.
  template <class F>
  bool each(F item) {
    if (!take('[')) return false;
    if (take(']')) return true;
    do {
      if (!item()) return false;
    } while (take(','));
    return take(']');
  }

  /// Skips a text, a number or a word: what a field holds that nobody asks for.
  bool skip_value() {
    std::string_view text_of;
    double value = 0;
    const char c = next();
    return c == '"'   ? text(text_of)
           : c == 'n' ? take("null")
           : c == 't' ? take("true")
           : c == 'f' ? take("false")
                      : number(value);
  }

 private:
  bool text_after_quote(std::string_view& to) {
    const char* begin = at_;
    while (*at_ >= ' ' && *at_ < '\x7f' && *at_ != '"' && *at_ != '\\') ++at_;
    to = {begin, at_};
    return *at_++ == '"';
  }
  static void skip_space(const char*& at) {
    while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t') ++at;
  }

  const char* at_;
  const char* end_;
};

inline bool PlainJson::counts(std::string_view& to, std::string& spare) {
  if (!take('"')) return false;
  const auto find = [this](const char* from, char c) {
    return static_cast<const char*>(std::memchr(from, c, static_cast<std::size_t>(end_ - from)));
  };
  const char* const close = find(at_, '"');
  if (!close) return false;
  const auto find_escape = [close](const char* from) {
    const auto* at = std::memchr(from, '\\', static_cast<std::size_t>(close - from));
    return at ? static_cast<const char*>(at) : close;
  };
  const char* begin = at_;
  const char* escape = find_escape(begin);
  at_ = close + 1;
  if (escape == close) {
    to = {begin, close};
    return true;
  }
  spare.clear();
  for (; escape != close; escape = find_escape(begin)) {
    if (escape[1] != '\\') return false;
    spare.append(begin, escape + 1);
    begin = escape + 2;
  }
  spare.append(begin, close);
  to = spare;
  return true;
}

}  // namespace millrace::coco
