#include "millrace/coco/data/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "millrace/base/errors.h"

namespace millrace::coco {
namespace {

[[noreturn]] void wrong(json::value value, std::string_view field, std::string_view what) {
  throw Wrong{place(value), fmt::format("'{}' is not {}", field, what)};
}

/// The first byte that is no UTF-8.
std::size_t first_fault_of_utf8(std::string_view text) {
  const auto sound = [&](std::size_t begin, std::size_t count) {
    return begin + count <= text.size() && simdjson::validate_utf8(text.data() + begin, count);
  };
  std::size_t at = 0;
  for (const std::size_t most : {std::size_t{1} << 20, std::size_t{4}})  // blocks, characters
    for (std::size_t step = most; step + 4 > most && step > 0;) {  // a character has 1 to 4 bytes
      if (sound(at, step))
        at += step, step = most;
      else
        --step;
    }
  return at;
}

/// Throws Error unless the first bytes of a file are of the expected form: see `open_json`.
void expect_opening(std::string_view head, std::string_view source, char opening) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto refuse = [&](std::size_t byte, std::string_view why) {
    throw Error(fmt::format("{}: byte {}: not JSON of the expected form: {}", source, byte, why));
  };
  if (head.starts_with("\xef\xbb\xbf"))
    refuse(0, "a byte order mark; save the file as UTF-8 without one");
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff"))
    refuse(0, "UTF-16; save the file as UTF-8");
  const auto first = head.find_first_not_of(kSpace);
  if (first == head.npos) return;  // the reader says that there is nothing, or that it ends
  const bool object = opening == '{';
  if (head[first] != opening)
    refuse(first, object ? "an object, '{', must begin here"
                         : "an array of objects, '[', must begin here");
  const auto second = head.find_first_not_of(kSpace, first + 1);
  if (second == head.npos) return;
  if (object ? head[second] != '"' && head[second] != '}' : head[second] == '[')
    refuse(second, object ? "a name in quotes must begin here" : "an object, '{', must begin here");
}

}  // namespace

InputFile open_json(const std::filesystem::path& file, char opening) {
  InputFile opened(file);
  std::string head(std::min<std::uint64_t>(opened.size(), 4096), '\0');
  opened.read(0, head);
  expect_opening(head, file.string(), opening);
  return opened;
}

std::string read_json(const std::filesystem::path& file, char opening) {
  return read_file(
      file, {.most = kMostText,
             .spare = simdjson::SIMDJSON_PADDING,
             .look = [&](std::string_view head) { expect_opening(head, file.string(), opening); },
             .pipes = Pipes::taken});
}

std::string record_name(std::string_view section, std::size_t index,
                        std::optional<std::int64_t> id) {
  return fmt::format("{}[{}]", section, index) + (id ? fmt::format(" (id {})", *id) : "");
}

const char* place(json::value value) { return value.raw_json_token().data(); }

std::int64_t integer(json::value value, std::string_view field) {
  std::int64_t plain = 0;
  if (value.get_int64().get(plain) == simdjson::SUCCESS) return plain;
  json::number read;
  if (value.get_number().get(read) != simdjson::SUCCESS) wrong(value, field, "an integer");
  if (read.is_int64()) return read.get_int64();
  constexpr double kExact = 9007199254740992.;  // 2^53: up to here doubles are exact
  const double real = read.as_double();
  if (read.is_uint64() || real != std::floor(real) || std::abs(real) > kExact)
    wrong(value, field, "an integer below 2^63");
  return static_cast<std::int64_t>(real);
}

double number(json::value value, std::string_view field) {
  double read = 0;
  if (!read_number(value, read)) wrong(value, field, "a finite number");
  return read;
}

double long_number(std::string_view text, double read) {
  std::from_chars(text.data(), text.data() + text.size(), read);  // keeps it if out of range
  return read;
}

std::string_view text(json::value value, std::string_view field) {
  std::string_view read;
  if (value.get_string().get(read) != simdjson::SUCCESS) wrong(value, field, "a string");
  return read;
}

json::array array(json::value value, std::string_view field) {
  json::array read;
  const auto code = value.get_array().get(read);
  if (code == simdjson::INCORRECT_TYPE) wrong(value, field, "an array");
  if (code != simdjson::SUCCESS) throw simdjson::simdjson_error(code);
  return read;
}

bool flag(json::value value, std::string_view field) {
  bool read = false;
  if (value.get_bool().get(read) == simdjson::SUCCESS) return read;
  return number(value, field) != 0;
}

bool numbers_if_any(json::value value, std::string_view field, std::span<double> out) {
  const char* at = place(value);
  std::size_t count = 0;
  for (json::value item : array(value, field)) {
    double read = 0;
    if (!read_number(item, read)) wrong(item, field, "a finite number");
    if (count < out.size()) out[count] = read;
    ++count;
  }
  if (count != out.size() && count != 0)
    throw Wrong{at, fmt::format("'{}' has {} numbers, not {}", field, count, out.size())};
  return count > 0;
}

void numbers(json::value value, std::string_view field, std::span<double> out) {
  const char* at = place(value);
  if (!numbers_if_any(value, field, out))
    throw Wrong{at, fmt::format("'{}' is empty; it needs {} numbers", field, out.size())};
}

JsonText::JsonText(std::string text, std::string source)
    : text_(std::move(text)), source_(std::move(source)) {
  begin();
}

void JsonText::begin() {
  document_ = {};  // it refers to the parser's memory, which may move
  if (text_.find_first_not_of(" \t\r\n") == std::string::npos) fail("the file is empty");
  text_.reserve(text_.size() + simdjson::SIMDJSON_PADDING);
  const simdjson::padded_string_view view(text_.data(), text_.size(), text_.capacity());
  if (const auto code = parser_.iterate(view).get(document_)) fail_json(code);
}

void JsonText::fail(const char* at, const std::string& why) const { fail(offset(at), why); }

void JsonText::fail(std::size_t byte, const std::string& why) const {
  byte = std::min(byte, text_.size());
  const auto end = text_.begin() + static_cast<std::ptrdiff_t>(byte);
  const auto line = std::count(text_.begin(), end, '\n') + 1;
  fail(fmt::format("line {}, byte {}: {}", line, byte, why));
}

void JsonText::fail(const std::string& why) const { throw Error(source_ + ": " + why); }

void JsonText::fail_json(simdjson::error_code code) {
  switch (code) {
    case simdjson::INCOMPLETE_ARRAY_OR_OBJECT:
    case simdjson::UNCLOSED_STRING:
      fail(text_.size(), "the JSON ends early; the file is truncated");
    case simdjson::UTF8_ERROR:
      fail(first_fault_of_utf8(text_), "not JSON: the text is not UTF-8");
    case simdjson::CAPACITY:
      fail("the file is too large: 4 GiB is the limit");
    case simdjson::MEMALLOC:
      fail("not enough memory to read the file");
    default:
      fail(here(), fmt::format("not JSON of the expected form: {}", simdjson::error_message(code)));
  }
}

const char* JsonText::here() {
  const char* at = nullptr;
  if (document_.is_alive() && document_.current_location().get(at) == simdjson::SUCCESS) return at;
  return text_.data() + text_.size();
}

std::optional<std::int64_t> JsonText::id_of(json::object& record) {
  std::int64_t id = 0;
  const bool known = record.reset().error() == simdjson::SUCCESS &&
                     record.find_field_unordered("id").get_int64().get(id) == simdjson::SUCCESS;
  return known ? std::optional(id) : std::nullopt;
}

}  // namespace millrace::coco
