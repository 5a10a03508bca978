// Files in wrong formats, truncated and endless files, and invalid values of every field.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <functional>
#include <map>
#include <thread>

#include "millrace/coco/data/detections.h"
#include "tests/coco/datasets.h"
#include "tests/support/scratch.h"
#include "tests/support/thrown.h"

namespace millrace::coco {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Scratch;

/// A reader of annotations or results; message() returns its error message, empty = none.
struct Reader {
  std::string name, opening;
  std::function<void(const fs::path&)> read;

  std::string message(const fs::path& file) const {
    return testing::message_of([&] { read(file); });
  }
};

std::vector<Reader> readers() {
  return {{"annotations", "an object ('{')", [](const fs::path& file) { read_dataset(file); }},
          {"results", "an array of objects ('[')",
           [](const fs::path& file) { read_detections(file); }}};
}

TEST(FileReaders, ReportWrongFormatByFirstBytes) {
  const Scratch scratch;
  for (const auto& reader : readers()) {
    const auto told = [&](const std::string& bytes) {
      const auto file = scratch.file("x", bytes);
      const auto message = reader.message(file);
      EXPECT_THAT(message, HasSubstr(file.string() + ": ")) << reader.name;
      return message;
    };
    const std::string wrong = "byte 0: not JSON";
    EXPECT_THAT(told(""), HasSubstr("is empty"));
    EXPECT_THAT(told(" \n\n"), HasSubstr("is empty"));
    EXPECT_THAT(told("hello"), AllOf(HasSubstr(wrong), HasSubstr(reader.opening)));
    EXPECT_THAT(told("  hello"), HasSubstr("byte 2: not JSON"));
    EXPECT_THAT(told("\xef\xbb\xbf{}"), AllOf(HasSubstr(wrong), HasSubstr("byte order mark")));
    EXPECT_THAT(told(std::string("\xff\xfe{\0", 4)), AllOf(HasSubstr(wrong), HasSubstr("UTF-16")));
    EXPECT_THAT(told(std::string("\0\0\0", 3)), HasSubstr(wrong));
    EXPECT_THAT(told(std::string(100000, '[')), HasSubstr("not JSON"));
    EXPECT_THAT(told(std::string(100000, '{')), HasSubstr("not JSON"));
    EXPECT_THAT(told("{\"images\": \"\xc3(\"}"), HasSubstr("not JSON"));
  }
}

TEST(FileReaders, RejectFoldersAndDevices) {
  const Scratch scratch;
  fs::create_directory(scratch / "folder");
  for (const auto& reader : readers()) {
    EXPECT_THAT(reader.message(scratch / "folder"), HasSubstr("Is a directory"));
    EXPECT_THAT(reader.message("/dev/zero"),
                AllOf(HasSubstr("/dev/zero: "), HasSubstr("a device")));
    EXPECT_THAT(reader.message(scratch / "none"),
                AllOf(HasSubstr("none: "), HasSubstr("No such file")));
  }
}

TEST(FileReaders, RejectEndlessPipes) {
  std::signal(SIGPIPE, SIG_IGN);
  const Scratch scratch;
  const auto pipe = scratch / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& reader : readers()) {
    const std::jthread endless([&] {
      const int out = ::open(pipe.c_str(), O_WRONLY | O_CLOEXEC);
      const std::string text(1 << 16, 'a');
      while (::write(out, text.data(), text.size()) > 0) continue;
      ::close(out);
    });
    EXPECT_THAT(reader.message(pipe), HasSubstr("pipe: byte 0: not JSON"));
  }
  const auto json = RandomFile(1, 3000).json();  // more than a pipe's buffer
  const std::jthread writer([&] { std::ofstream(pipe, std::ios::binary) << json; });
  expect_equal(*read_dataset(pipe), *parse_dataset(json, "x"));
}

long peak_mib() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss / 1024;
}

TEST(FileReaders, UseLittleMemoryForHugeFiles) {
  const Scratch scratch;
  const auto peak = peak_mib();
  for (const std::string head : {"", "[[", "{{", "aa", "  \n,"}) {
    const auto file = scratch.file("x", head);
    fs::resize_file(file, std::uintmax_t{4} << 30);  // a sparse file of zeros
    for (const auto& reader : readers())
      EXPECT_THAT(reader.message(file), HasSubstr("not JSON")) << reader.name;
  }
  const auto file = scratch.file("x", R"([{"image_id":)");
  fs::resize_file(file, std::uintmax_t{5} << 30);  // more than the parser accepts
  EXPECT_THAT(readers()[1].message(file), HasSubstr(file.string()));
  EXPECT_LT(peak_mib() - peak, 64);
}

TEST(FileReaders, RejectTruncationAtAnyByte) {
  const Scratch scratch;
  const auto refused_at_every_byte = [&](const Reader& reader, const std::string& whole) {
    ASSERT_EQ(reader.message(scratch.file("x", whole)), "");
    for (std::size_t size = 0; size < whole.size(); ++size)
      ASSERT_THAT(reader.message(scratch.file("x", whole.substr(0, size))),
                  HasSubstr((scratch / "x").string() + ": "));
  };
  refused_at_every_byte(readers()[0], RandomFile(1, 12).json());
  refused_at_every_byte(
      readers()[1],
      R"([{"image_id": 1, "category_id": 2, "bbox": [1, 2, 3.5, 4e0], "score": 0.25},
          {"image_id": 1, "category_id": 2, "segmentation": {"size": [5, 6], "counts": "23i0"}, "score": 1}])");
}

/// Values that a numeric field must reject, including NaN and infinity as Python writes them.
const std::vector<std::string> kNoNumbers = {
    R"("1")", "null",   "[]",  "{}",    "[1]",  "NaN", "Infinity", "-Infinity",
    "1e999",  "-1e999", "nan", "1.2.3", "0x10", "+1",  "''",       ""};
std::vector<std::string> no_integers() {
  auto values = kNoNumbers;
  values.insert(values.end(), {"1.5", "true", "9223372036854775808", "-9223372036854775809",
                               "18446744073709551616", "1e19", "9007199254740994.0"});
  return values;
}
std::vector<std::string> no_boxes() {
  std::vector<std::string> values = {"7",           "\"1,2,3,4\"", "{}",           "[1,2,3]",
                                     "[1,2,3,4,5]", "[[1,2,3,4]]", "[1,2,3,null]", "[1,2,-3,4]",
                                     "[1,2,3,-4]"};
  for (const auto& number : kNoNumbers) values.push_back("[1,2,3," + number + "]");
  return values;
}
const std::vector<std::string> kNoShapes = {
    "7", "\"x\"", "true", "{}", "[7]", "[{}]",
    // run lengths
    R"({"size": [5, 6]})", R"({"counts": [30]})", R"({"size": [5], "counts": [30]})",
    R"({"size": [5, 6, 1], "counts": [30]})", R"({"size": ["5", 6], "counts": [30]})",
    R"({"size": [-5, -6], "counts": [30]})", R"({"size": [5.5, 6], "counts": [33]})",
    R"({"size": [1e999, 6], "counts": [30]})", R"({"size": [4294967296, 1], "counts": [30]})",
    R"({"size": [65536, 65536], "counts": [30]})", R"({"size": [5, 6], "counts": [29]})",
    R"({"size": [5, 6], "counts": [31]})", R"({"size": [5, 6], "counts": [-1, 31]})",
    R"({"size": [5, 6], "counts": [1.5, 28.5]})", R"({"size": [5, 6], "counts": ["30"]})",
    R"({"size": [5, 6], "counts": [9223372036854775807, 9223372036854775807]})",
    R"({"size": [5, 6], "counts": "N"})", R"({"size": [5, 6], "counts": "oooooooo"})",
    R"({"size": [5, 6], "counts": "\u0000"})", R"({"size": [5, 6], "counts": "\ud800"})",
    R"({"size": [5, 6], "counts": 30})", R"({"size": [5, 6], "counts": null})"};

/// Returns a JSON record with these fields, in which one value is replaced.
using Fields = std::map<std::string, std::string>;
std::string record(Fields fields, const std::string& name, const std::string& value) {
  fields[name] = value;
  std::string text;
  for (const auto& [key, v] : fields)
    text += fmt::format("{}\"{}\": {}", text.empty() ? "{" : ", ", key, v);
  return text + "}";
}

/// Invalid values by field.
using Wrongs = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// Expects each invalid value to be reported with its byte offset. `before` and `after` enclose the
/// record.
void expect_refused(const Reader& reader, const Fields& fields, const std::string& before,
                    const std::string& after, const Wrongs& wrongs) {
  const Scratch scratch;
  for (const auto& [field, values] : wrongs) {
    const auto sound = before + record(fields, field, fields.at(field)) + after;
    ASSERT_EQ(reader.message(scratch.file("x", sound)), "");
    for (const auto& value : values) {
      const auto text = before + record(fields, field, value) + after;
      EXPECT_THAT(reader.message(scratch.file("x", text)),
                  AllOf(HasSubstr((scratch / "x").string() + ": "), HasSubstr("byte ")))
          << text;
    }
  }
}

TEST(FileReaders, CheckEveryFieldOfResults) {
  expect_refused(readers()[1],
                 {{"image_id", "1"},
                  {"category_id", "2"},
                  {"score", "0.5"},
                  {"bbox", "[1, 2, 3, 4]"},
                  {"segmentation", R"({"size": [5, 6], "counts": [30]})"}},
                 R"([{"image_id":1,"category_id":1,"bbox":[0,0,1,1],"score":1},)", "]",
                 {{"image_id", no_integers()},
                  {"category_id", no_integers()},
                  {"score", kNoNumbers},
                  {"bbox", no_boxes()},
                  {"segmentation", kNoShapes}});
}

TEST(FileReaders, CheckEveryFieldOfAnnotations) {
  expect_refused(
      readers()[0],
      {{"id", "4"},
       {"image_id", "1"},
       {"category_id", "2"},
       {"area", "3"},
       {"iscrowd", "0"},
       {"bbox", "[1, 2, 3, 4]"},
       {"segmentation", "[[1, 1, 2, 1, 2, 2]]"}},
      R"({"images": [{"id": 1, "file_name": "a", "width": 6, "height": 5}], "categories": [{"id": 2, "name": "b"}],
          "annotations": [)",
      "]}",
      {{"id", no_integers()},
       {"image_id", no_integers()},
       {"category_id", no_integers()},
       {"area", kNoNumbers},
       {"iscrowd", kNoNumbers},
       {"bbox", no_boxes()},
       {"segmentation", kNoShapes},
       {"segmentation",
        {"[[]]", "[[1, 2, 3, 4]]", "[[1, 2, 3, 4, 5, 6, 7]]", "[[1, 2, 3, 4, 5, NaN]]",
         "[[1, 2, 3, 4, 5, 1e999]]", R"({"size": [6, 5], "counts": [30]})"}}});
}

TEST(FileReaders, CheckEveryFieldOfImagesAndCategories) {
  auto no_sides = no_integers();
  no_sides.insert(no_sides.end(), {"0", "-1", "2147483648", "1048577"});
  const std::vector<std::string> no_texts = {"7",           "null",     "[]",       "{}", "true",
                                             "\"\\ud800\"", "\"\x01\"", "\"\xff\"", "\"", "'a'"};
  expect_refused(
      readers()[0], {{"id", "1"}, {"file_name", "\"a\""}, {"width", "6"}, {"height", "5"}},
      R"({"categories": [], "annotations": [], "images": [)", "]}",
      {{"id", no_integers()}, {"width", no_sides}, {"height", no_sides}, {"file_name", no_texts}});
  expect_refused(readers()[0], {{"id", "1"}, {"name", "\"a\""}},
                 R"({"images": [], "annotations": [], "categories": [)", "]}",
                 {{"id", no_integers()}, {"name", no_texts}});
}

TEST(FileReaders, RejectOversizedImages) {
  const Scratch scratch;
  const auto file = scratch.file("x", R"({"annotations": [], "categories": [], "images": [
      {"id": 1, "file_name": "a", "width": 65536, "height": 65536}]})");
  EXPECT_THAT(readers()[0].message(file), HasSubstr("images[0] (id 1): 65536 x 65536 pixels"));
}

TEST(FileReaders, AcceptUnknownFieldsOfLimitedDepth) {
  const Scratch scratch;
  const auto message = [&](const std::string& field, const std::string& value) {
    return readers()[1].message(scratch.file(
        "x", R"([{"image_id": 1, "category_id": 2, "bbox": [1, 2, 3, 4], "score": 0.5, ")" + field +
                 "\": " + value + "}]"));
  };
  EXPECT_EQ(message("x", std::string(500, '[') + std::string(500, ']')), "");
  EXPECT_NE(message("x", std::string(5000, '[')), "");
}

}  // namespace
}  // namespace millrace::coco
