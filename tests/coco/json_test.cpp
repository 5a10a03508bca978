// The JSON reader reads numbers with the same bits as strtod and rejects everything that is not
// JSON.
#include "millrace/coco/data/json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <optional>
#include <random>

#include "millrace/coco/data/segmentation.h"

namespace millrace::coco {
namespace {

/// Returns the result of `read`; nullopt if it fails or does not read the whole string.
template <typename F>
auto read_whole(const std::string& text, F read)
    -> std::optional<std::remove_cvref_t<decltype(read(std::declval<JsonReader&>()))>> {
  const std::string padded = text + std::string(JsonReader::kPadding, '\0');
  JsonReader reader(padded.data(), padded.data() + text.size());
  try {
    auto value = read(reader);
    if (reader.is_at_end()) return value;
  } catch (const Wrong&) {
  } catch (const Broken&) {
  }
  return {};
}

std::optional<double> number_of(const std::string& text) {
  return read_whole(text, [](JsonReader& reader) { return reader.number(); });
}

void expect_number(const std::string& text) {
  const auto value = number_of(text);
  ASSERT_TRUE(value) << text;
  EXPECT_EQ(std::bit_cast<std::uint64_t>(*value),
            std::bit_cast<std::uint64_t>(std::strtod(text.c_str(), nullptr)))
      << text;
}

TEST(Json, ReadsNumbersLikeStrtod) {
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
                           "1e-400",
                           "-1e-400",
                           "4.9e-324",
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

TEST(Json, RejectsInvalidNumbers) {
  for (const char* text :
       {"",   "-",    ".5",  "1.",  "01",    "-01.5", "00.25", "1e",  "1e+",   "1.e3",
        "+1", "0x10", "nan", "inf", "1e999", "1.2.3", "1,5",   "--1", "1e5.5", "1 2"})
    EXPECT_FALSE(number_of(text)) << text;
}

TEST(Json, Reads64BitIntegers) {
  const auto integer = [](const std::string& text) {
    return read_whole(text, [](JsonReader& reader) { return reader.integer(); });
  };
  EXPECT_EQ(integer("0"), 0);
  EXPECT_EQ(integer("-12"), -12);
  EXPECT_EQ(integer("999999999999999999"), 999999999999999999);
  EXPECT_EQ(integer("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(integer("-1.2e1"), -12);
  EXPECT_EQ(integer("9007199254740992.0"), 9007199254740992);
  for (const char* text : {"", "-", "007", "1.5", "1e30", "9223372036854775808", "true"})
    EXPECT_FALSE(integer(text)) << text;
}

TEST(Json, UnescapesStrings) {
  for (const bool as_counts : {false, true}) {
    const auto text_of = [&](const std::string& text) {
      return read_whole(text, [&](JsonReader& reader) {
        return std::string(as_counts ? reader.counts() : reader.text());
      });
    };
    EXPECT_EQ(text_of(R"("PQ1n")"), "PQ1n");
    EXPECT_EQ(text_of(R"("")"), "");
    EXPECT_EQ(text_of(R"("\\a\\\\b\\")"), R"(\a\\b\)");
    EXPECT_EQ(text_of(R"("a\"b\n\u0041")"), "a\"b\nA");
    EXPECT_EQ(text_of("\"\\ud83d\\ude00\xc3\xa4\""), "\xf0\x9f\x98\x80\xc3\xa4");
    for (const char* text : {R"("PQ)", R"("\")", R"("\)", R"("\q")", R"("\ud800")", "PQ"})
      EXPECT_FALSE(text_of(text)) << text;
  }
}

TEST(Json, RequiresUtf8) {
  const auto is_text = [](const std::string& text) {
    return read_whole('"' + text + '"',
                      [](JsonReader& reader) { return std::string(reader.text()); });
  };
  for (const char* sound : {"\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                            "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "\x7f"})
    EXPECT_EQ(is_text(sound), sound);
  for (const char* wrong : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                            "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
                            "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\x01", "a\n"})
    EXPECT_FALSE(is_text(wrong)) << wrong;
}

TEST(Json, SkipsAnyValue) {
  const auto is_skipped = [](const std::string& text) {
    return read_whole(text,
                      [](JsonReader& reader) {
                        reader.skip();
                        return true;
                      })
        .has_value();
  };
  for (const char* value :
       {"1", "-1.5e3", "null", "true", R"("a\"]b")", "[]", "{}", R"([1, {"a": [2, "}"]}, null])",
        R"({"a": {"b": []}, "c": "\\"})", "\"\xc3\xa4\""})
    EXPECT_TRUE(is_skipped(value)) << value;
  for (const char* value :
       {"", ",", ":", "]", "}", "[1", "{\"a\": [1]", R"("a)", R"(["a])", "\xc3"})
    EXPECT_FALSE(is_skipped(value)) << value;
}

/// Reads a string as one annotation; nullopt if it is invalid.
std::optional<Annotation> annotation(const std::string& text) {
  return read_whole(text, [](JsonReader& reader) {
    Records records;
    read_annotation(reader, records);
    return records.annotations.at(0);
  });
}

TEST(Json, AcceptsUnknownFields) {
  const auto one = annotation(
      "{\"license\": 3, \"note\": \"x\", \"id\" : 5,\n\t\"image_id\":7,\"category_id\":2,"
      "\"bbox\":[1,2,3,4.5],\"iscrowd\":false, \"segmentation\": [] }");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->id, 5);
  EXPECT_EQ(one->area, 13.5);
  EXPECT_EQ(one->shape.kind, ShapeKind::none);
}

TEST(Json, RejectsMalformedAnnotations) {
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
  EXPECT_EQ(with("\"id\":5", "\"id\":5,\"id\":6")->id, 6);
  EXPECT_TRUE(with("\"id\":5", "\"id\":5,\"note\":\"\xc3\xa4\""));
  EXPECT_TRUE(with("\"id\":5", "\"id\":5,\"note\":{}"));
  EXPECT_FALSE(with("\"id\":5,", ""));
  EXPECT_FALSE(with("\"id\":5", "\"i\\u0064\":5"));
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
