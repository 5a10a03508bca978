// The reader of plain JSON: what it takes has the bits that others read, and it takes nothing that
// is no JSON.
#include "millrace/coco/data/plain_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <optional>
#include <random>

#include "millrace/coco/data/annotation_record.h"
#include "tests/coco/datasets.h"

namespace millrace::coco {
namespace {

/// A text with what has to follow it.
class Padded {
 public:
  explicit Padded(const std::string& text)
      : text_(text + std::string(PlainJson::kPadding, '\0')), size_(text.size()) {}
  PlainJson begin() const { return {text_.data(), end()}; }
  const char* end() const { return text_.data() + size_; }

 private:
  std::string text_;
  std::size_t size_;
};

/// The value of a text that is a number from beginning to end.
std::optional<double> number_of(const std::string& text) {
  const Padded padded(text);
  PlainJson plain = padded.begin();
  double value = 0;
  if (!plain.number(value) || plain.at() != padded.end()) return {};
  return value;
}

void expect_number(const std::string& text) {
  const auto value = number_of(text);
  ASSERT_TRUE(value) << text;
  EXPECT_EQ(std::bit_cast<std::uint64_t>(*value),
            std::bit_cast<std::uint64_t>(std::strtod(text.c_str(), nullptr)))
      << text;
}

TEST(PlainJson, NumbersHaveTheBitsOfTheCLibrary) {
  for (const char* text : {"0",
                           "-0",
                           "0.0",
                           "-0.5",
                           "7",
                           "10",
                           "99999999",
                           "100000000",
                           "1234567.8",
                           "0.1234567",
                           "12345678.25",
                           "9007199254740993",
                           "0.1",
                           "258.15350341796875",
                           "1e3",
                           "1E-2",
                           "2.5e+10",
                           "1.7976931348623157e308",
                           "2.2250738585072014e-308",
                           "0.9876543210123456",
                           "12345.678901234567890123",
                           "18446744073709551615",
                           "123456789012345678901234567890"})
    expect_number(text);
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const double value = std::uniform_real_distribution<>(-2000, 2000)(random);
    expect_number(fmt::format("{}", value));
    expect_number(fmt::format("{:.{}f}", value, random() % 20));
    expect_number(fmt::format("{:.{}e}", value, random() % 20));
    expect_number(fmt::format("{}", static_cast<float>(value)));
    expect_number(fmt::format("{}", random() >> random() % 64));
  }
}

TEST(PlainJson, TakesNoNumberThatIsNone) {
  for (const char* text :
       {"",   "-",    ".5",  "1.",  "01",    "-01.5", "00.25", "1e",  "1e+",   "1.e3",
        "+1", "0x10", "nan", "inf", "1e999", "1.2.3", "1,5",   "--1", "1e5.5", "1 2"})
    EXPECT_FALSE(number_of(text)) << text;
}

TEST(PlainJson, IntegersAreThoseOfSixtyFourBits) {
  const auto integer = [](const std::string& text) -> std::optional<std::int64_t> {
    const Padded padded(text);
    PlainJson plain = padded.begin();
    std::int64_t value = 0;
    if (!plain.integer(value) || plain.at() != padded.end()) return {};
    return value;
  };
  EXPECT_EQ(integer("0"), 0);
  EXPECT_EQ(integer("-12"), -12);
  EXPECT_EQ(integer("999999999999999999"), 999999999999999999);
  for (const char* text : {"", "-", "007", "1.0", "1e3", "9223372036854775808", "true"})
    EXPECT_FALSE(integer(text)) << text;
}

TEST(PlainJson, CountsAreUnescaped) {
  const auto counts = [](const std::string& text) -> std::optional<std::string> {
    const Padded padded(text);
    PlainJson plain = padded.begin();
    std::string_view value;
    std::string spare;
    if (!plain.counts(value, spare) || plain.at() != padded.end()) return {};
    return std::string(value);
  };
  EXPECT_EQ(counts(R"("PQ1n")"), "PQ1n");
  EXPECT_EQ(counts(R"("")"), "");
  EXPECT_EQ(counts(R"("\\a\\\\b\\")"), R"(\a\\b\)");
  for (const char* text : {R"("PQ)", R"("a\"b")", R"("a\nb")", R"("\u0041")", "PQ"})
    EXPECT_FALSE(counts(text)) << text;
}

/// What a whole text is read as; nothing where it is not plain.
std::optional<Annotation> annotation(const std::string& text) {
  const Padded padded(text);
  PlainJson plain = padded.begin();
  Records records;
  if (!read_plain_annotation(plain, records) || plain.at() != padded.end()) return {};
  return records.annotations.at(0);
}

TEST(PlainJson, UsualAnnotationsArePlain) {
  for (const auto& [seed, gap] : {std::pair(1U, ", "), {2U, ","}}) {
    const std::string all = RandomFile(seed).annotations;
    for (std::size_t at = all.find('{'); at != all.npos;) {
      std::size_t end = all.find(fmt::format("}}{}{{\"segm", gap), at);
      if (end == all.npos) end = all.rfind('}');
      const auto text = all.substr(at, end - at + 1);
      EXPECT_TRUE(annotation(text)) << text;
      at = all.find('{', end);
    }
  }
  const auto one = annotation(
      "{\"license\": 3, \"note\": \"x\", \"id\" : 5,\n\t\"image_id\":7,\"category_id\":2,"
      "\"bbox\":[1,2,3,4.5],\"iscrowd\":false, \"segmentation\": [] }");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->id, 5);
  EXPECT_EQ(one->area, 13.5);
  EXPECT_EQ(one->shape.kind, ShapeKind::none);
}

TEST(PlainJson, WhatIsNotPlainOrNotSoundIsLeftToOthers) {
  const std::string sound =
      R"({"id":5,"image_id":7,"category_id":2,"bbox":[1,2,3,4],"segmentation":[[1,2,3,4,5,6]]})";
  ASSERT_TRUE(annotation(sound));
  for (std::size_t size = 0; size < sound.size(); ++size)
    EXPECT_FALSE(annotation(sound.substr(0, size))) << size;
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = sound;
    text.replace(text.find(from), from.size(), to);
    return annotation(text);
  };
  EXPECT_FALSE(with("\"id\":5", "\"id\":5,\"id\":6"));
  EXPECT_FALSE(with("\"id\":5,", ""));
  EXPECT_FALSE(with("\"id\":5", "\"i\\u0064\":5"));
  EXPECT_FALSE(with("\"id\":5", "\"id\":5,\"note\":\"\xc3\xa4\""));
  EXPECT_FALSE(with("\"id\":5", "\"id\":5,\"note\":{}"));
  EXPECT_FALSE(with("\"id\":5", "\"id\":\"5\""));
  EXPECT_FALSE(with("3,4]", "3,-4]"));
  EXPECT_FALSE(with("3,4]", "3,4,5]"));
  EXPECT_FALSE(with("3,4]", "3]"));
  EXPECT_FALSE(with("5,6]", "5]"));
  EXPECT_FALSE(with("5,6]", "5,6,]"));
  EXPECT_FALSE(with("[[1,2,3,4,5,6]]", "[[1,2,3,4]]"));
  EXPECT_FALSE(with("}", ",}"));
}

}  // namespace
}  // namespace millrace::coco
