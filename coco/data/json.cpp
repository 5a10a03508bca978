#include "millrace/coco/data/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "millrace/base/word_wrap.h"

namespace millrace::coco {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kUnexpected = "not JSON of the expected form: ";
constexpr const char* kObjectBegins = "expected an object ('{') here";
constexpr const char* kArrayBegins = "expected an array of objects ('[') here";

/// Returns the position of the first byte that is not UTF-8, or the size of the text.
std::size_t first_fault_of_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto length = utf8_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return at;
}

/// Throws Error unless a file begins as `open_json` requires.
void expect_opening(std::string_view head, std::string_view source, char opening) {
  const auto refuse = [&](std::size_t byte, std::string_view why) {
    throw Error(fmt::format("{}: byte {}: {}{}", source, byte, kUnexpected, why));
  };
  if (head.starts_with("\xef\xbb\xbf"))
    refuse(0, "a byte order mark; save the file as UTF-8 without one");
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff"))
    refuse(0, "UTF-16; save the file as UTF-8");
  const auto first = head.find_first_not_of(kSpace);
  if (first == head.npos) return;  // the reader reports an empty or truncated file
  const bool object = opening == '{';
  if (head[first] != opening) refuse(first, object ? kObjectBegins : kArrayBegins);
  const auto second = head.find_first_not_of(kSpace, first + 1);
  if (second == head.npos) return;
  if (object ? head[second] != '"' && head[second] != '}' : head[second] == '[')
    refuse(second, object ? "expected a quoted name here" : kObjectBegins);
}

}  // namespace

std::string record_name(std::string_view section, std::size_t index,
                        std::optional<std::int64_t> id) {
  return fmt::format("{}[{}]", section, index) + (id ? fmt::format(" (id {})", *id) : "");
}

std::int64_t JsonReader::unusual_integer() {
  const char* at = at_;
  double real = 0;
  if (!PlainNumber::read(at, real)) wrong("an integer");
  const char* const begin = std::exchange(at_, at);
  std::int64_t exact = 0;
  if (const auto [end, fault] = std::from_chars(begin, at, exact);
      fault == std::errc() && end == at)
    return exact;
  at_ = begin;
  constexpr double kExact = 9007199254740992.;  // 2^53, up to which doubles are exact integers
  if (real != std::floor(real) || std::abs(real) > kExact) wrong("an integer below 2^63");
  at_ = at;
  return static_cast<std::int64_t>(real);
}

std::string_view JsonReader::unusual_text(const char* begin) {
  skip_unusual_text(begin);
  const std::string_view quoted(begin, at_);
  if (quoted.find('\\') == quoted.npos) return quoted.substr(1, quoted.size() - 2);
  const auto parsed = nlohmann::json::parse(quoted, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) {
    at_ = begin;
    wrong("a string");
  }
  spare_ = parsed.get<std::string>();
  return spare_;
}

void JsonReader::skip_unusual_text(const char* begin) {
  for (; *at_ != '"'; ++at_) {
    if (*at_ == '\\') ++at_;
    if (at_ >= end_ || (*at_ >= '\0' && *at_ < ' '))
      broken(std::min(at_, end_), "a string must not contain control characters");
  }
  ++at_;
  const std::string_view quoted(begin, at_);
  if (const auto fault = first_fault_of_utf8(quoted); fault < quoted.size())
    broken(begin + fault, "a string must be UTF-8");
}

std::string_view JsonReader::counts() {
  if (next() != '"') wrong("a string");
  const char* begin = at_ + 1;
  const auto find = [](const char* from, char c, const char* end) {
    const auto* at = std::memchr(from, c, static_cast<std::size_t>(end - from));
    return at ? static_cast<const char*>(at) : end;
  };
  const char* const close = find(begin, '"', end_);
  const char* escape = find(begin, '\\', close);
  if (close == end_) return text();
  if (escape == close) {
    at_ = close + 1;
    return {begin, close};
  }
  spare_.clear();
  for (; escape != close; escape = find(begin, '\\', close)) {
    if (escape[1] != '\\') return text();
    spare_.append(begin, escape + 1);
    begin = escape + 2;
  }
  spare_.append(begin, close);
  at_ = close + 1;
  return spare_;
}

void JsonReader::skip() {
  constexpr std::string_view kStructure = ",:[]{}\"";
  int depth = 0;
  do {
    const char c = next();
    if (c == '"') {
      skip_text();
    } else if (c == '[' || c == '{') {
      ++depth;
      ++at_;
    } else if (depth > 0 && kStructure.find(c) != kStructure.npos) {
      if (c == ']' || c == '}') --depth;
      ++at_;
    } else {
      const char* const begin = at_;
      while (*at_ > ' ' && kStructure.find(*at_) == kStructure.npos) ++at_;
      if (at_ == begin) broken(at_, "expected a value here");
    }
  } while (depth > 0);
}

void JsonReader::wrong(std::string_view what) const {
  if (at_ == end_) fail(at_, "");
  throw Wrong{at_, fmt::format("'{}' is not {}", field_, what), field_};
}

void JsonReader::wrong_count(const char* at, std::size_t count, std::size_t needed) const {
  throw Wrong{at, fmt::format("'{}' has {} numbers, not {}", field_, count, needed), field_};
}

void JsonReader::fail(const char* at, const std::string& why) const {
  throw Broken(at, at == end_ ? "the JSON ends early; the file is truncated" : why);
}

void JsonReader::broken(const char* at, std::string_view why) const {
  fail(at, fmt::format("{}{}", kUnexpected, why));
}

void JsonReader::missing(char c) const {
  broken(at_, fmt::format("expected {}'{}' here", c == ':' ? "" : "',' or ", c));
}

void JsonReader::missing_field(const char* at, std::string_view name) {
  throw Wrong{at, fmt::format("'{}' is missing", name)};
}

void JsonReader::no_record(std::string_view section, std::size_t index) const {
  fail(at_, record_name(section, index) + " is not an object");
}

void JsonReader::report(const Wrong& wrong, std::string_view section, std::size_t index,
                        const char* begin) {
  const auto field = wrong.field.empty() ? std::string_view(field_) : wrong.field;
  std::optional<std::int64_t> id;
  try {
    JsonReader again(begin, end_);
    again.fields(optional("id", [&] { id = again.integer(); }));
  } catch (const Wrong&) {
  } catch (const Broken&) {
  }
  if (!on_fault_)
    throw Broken(wrong.at, fmt::format("{}: {}", record_name(section, index, id), wrong.why));
  on_fault_({section, index, id, offset(wrong.at), field, wrong.why});
  at_ = begin;
  skip();
}

InputFile open_json(const std::filesystem::path& file, char opening) {
  InputFile opened(file);
  std::string head(std::min<std::uint64_t>(opened.size(), 4096), '\0');
  opened.read(0, head);
  expect_opening(head, file.string(), opening);
  return opened;
}

std::string read_json(const std::filesystem::path& file, char opening) {
  return read_file(
      file,
      {.max_bytes = kMostText,
       .spare = JsonReader::kPadding,
       .check_head = [&](std::string_view head) { expect_opening(head, file.string(), opening); },
       .pipes = Pipes::taken});
}

JsonText::JsonText(std::string text, std::string source)
    : size_(text.size()), text_(std::move(text)), source_(std::move(source)) {
  text_.append(JsonReader::kPadding, '\0');
}

JsonReader JsonText::begin(char opening) const {
  JsonReader reader(text_.data(), text_.data() + size_);
  const bool object = opening == '{';
  if (reader.is_at_end()) throw Error(source_ + ": the file is empty");
  if (reader.next() != opening)
    throw Broken(reader.at(),
                 fmt::format("{}{}", kUnexpected, object ? kObjectBegins : kArrayBegins));
  const auto text = std::string_view(text_).substr(0, size_);
  if (text[text.find_last_not_of(kSpace)] != (object ? '}' : ']'))
    throw Broken(text_.data() + size_, "the JSON ends early; the file is truncated");
  return reader;
}

void JsonText::refuse(const char* at, const std::string& why) const {
  const auto fault = first_fault_of_utf8(std::string_view(text_).substr(0, size_));
  if (fault < size_) fail(fault, "not JSON: the text is not UTF-8");
  fail(static_cast<std::size_t>(at - text_.data()), why);
}

void JsonText::fail(std::size_t byte, const std::string& why) const {
  const auto line = std::ranges::count(std::string_view(text_).substr(0, byte), '\n') + 1;
  throw Error(fmt::format("{}: line {}, byte {}: {}", source_, line, byte, why));
}

}  // namespace millrace::coco
