// Reading a file in pieces returns the same data set and reports the same errors as reading it in
// order.
#include "millrace/coco/data/readers.h"

#include <gmock/gmock.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstring>

#include "millrace/base/errors.h"
#include "tests/coco/datasets.h"
#include "tests/support/data.h"
#include "tests/support/scratch.h"
#include "tests/support/thrown.h"

namespace millrace::coco {
namespace {

using testing::Scratch;

/// Reads JSON in order and in pieces and expects equal data sets.
void expect_read(const Scratch& scratch, const std::string& json, std::size_t piece_bytes) {
  const InputFile file(scratch.file("x.json", json));
  const auto expected = parse_dataset(json, "x");
  for (const auto& spill : {std::optional<Spill>(), std::optional(Spill{scratch.path(), 100})}) {
    auto records = read_pieces(file, piece_bytes, spill);
    ASSERT_TRUE(records) << piece_bytes;
    expect_equal(*assemble(std::move(*records), "x"), *expected);
  }
}

TEST(AnnotationPieces, AreIndependentOfSizeAndThreadCount) {
  const Scratch scratch;
  for (unsigned seed = 1; seed <= 6; ++seed)
    for (const std::size_t bytes : {1, 64, 300, 1000, 7777, 1000000})
      expect_read(scratch, RandomFile(seed).json(), bytes);
  const auto json = RandomFile(3, 2000).json();
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, 8);
  for (const int threads : {1, 2, 3, 8})
    tbb::task_arena(threads).execute([&] { expect_read(scratch, json, 2000); });
}

/// Returns JSON with names, numbers, escapes and shapes, whose strings contain `between`.
std::string small_file(const std::string& between) {
  return R"({"images": [{"file_name": "a \")" + between +
         R"(\" \u00e4\\.jpg", "id": 3, "width": 9, "height": 8}, {"id": 12, "width": 9, "height": 8,)"
         R"("file_name": "\\\\)" +
         between +
         R"("}], "categories": [{"id": 1, "name": "c"}], "annotations": [{"id": -1.2e1, "x": ")" +
         between +
         R"(\\","image_id": 12,"category_id": 1, "bbox": [1.25e-1, 0, 1, 1], "segmentation": [[1, 2,)"
         "3, 4.5, 5, 6]]},\n"
         R"({"id": 7 , "image_id": 3,"category_id": 1, "bbox": [0,0,1,1], "segmentation": {"counts":)"
         R"([3, 69], "size": [8, 9]}} , {"id": 5, "image_id": 12, "category_id": 1, "bbox": [0, 0,)"
         R"(10, 20], "area": 12345.678901234567890123}]} )";
}

TEST(AnnotationPieces, MayEndAtAnyByte) {
  const Scratch scratch;
  const auto json = small_file("} {");
  for (std::size_t bytes = 1; bytes <= json.size(); ++bytes) expect_read(scratch, json, bytes);

  const auto trap = small_file("}, {");
  const InputFile file(scratch.file("trap.json", trap));
  int read = 0;
  for (std::size_t bytes = 1; bytes <= trap.size(); ++bytes)
    if (auto records = read_pieces(file, bytes)) {
      expect_equal(*assemble(std::move(*records), "x"), *parse_dataset(trap, "x"));
      ++read;
    }
  EXPECT_GT(read, 0);
}

TEST(AnnotationPieces, AcceptAnyOrderOfSections) {
  const Scratch scratch;
  const RandomFile parts(1);
  const auto& [images, annotations, categories] = parts;
  for (const auto& json :
       {fmt::format(R"({{"annotations":{},"images":{},"categories":{}}})", annotations, images,
                    categories),
        fmt::format(R"({{"categories":{},"images":{},"annotations" : {}}} )", categories, images,
                    annotations),
        fmt::format("{{\"images\":{},\"annotations\"\n:\t{},\"more\":[{{\"id\":1}},{{}}],"
                    "\"categories\":{}}}",
                    images, annotations, categories),
        fmt::format(R"({{"about":"annotations","images":{},"categories":{},"annotations":[]}})",
                    images, categories)})
    for (const std::size_t bytes : {100, 3000, 1000000}) expect_read(scratch, json, bytes);
}

/// Returns JSON that is large enough to be read in pieces, with `first` before, `among` inside and
/// `last` after its annotations.
std::string large(const std::string& first, const std::string& among,
                  const std::string& last = "}") {
  const RandomFile parts(2, 13000);
  auto annotations = parts.annotations;
  annotations.insert(annotations.find("},{\"segm", annotations.size() / 2) + 1, among);
  return fmt::format(R"({{{}"images":{},"categories":{},"annotations":{}{})", first, parts.images,
                     parts.categories, annotations, last);
}

std::string one(const std::string& fields) {
  return R"(,{"id":1,"image_id":3,"category_id":1,"bbox":[0,0,1,1])" + fields + "}";
}

TEST(AnnotationPieces, FallBackToReadingInOrder) {
  const Scratch scratch;
  std::string traps;
  for (int i = 0; i < 20000; ++i) traps += R"({"a": "}, {"}, {"b": "\"}, {"}, )";
  const auto nested = R"("info":{"annotations":[{"id":1}]},)";
  for (const auto& json : {large(nested, ""), large("", one(R"(,"x":"}, {\"id\":5}, {")")),
                           large("", one(R"(,"x":[)" + traps + "{}]"))}) {
    ASSERT_GT(json.size(), 2U << 20);
    expect_equal(*read_dataset(scratch.file("x.json", json)), *parse_dataset(json, "x"));
  }
}

TEST(AnnotationPieces, ReportSameErrorsAsReadingInOrder) {
  const Scratch scratch;
  const auto whole = large("", "");
  ASSERT_GT(whole.size(), 2U << 20);
  const std::string broken[] = {
      whole.substr(0, whole.size() / 2),
      whole.substr(0, whole.size() - 1),
      whole + "]",
      large("", ",7"),
      large("", "},{"),
      large("", one(R"(,"segmentation":[[1,2,3,4]])")),
      large("", one(R"(,"area":"\xff")")),
      large("", one("") + one("")),
      large("", R"(,{"id":1,"image_id":2,"category_id":1,"bbox":[0,0,1,1]})"),
      large("", R"(,{"id":1,"image_id":3,"category_id":9,"bbox":[0,0,1,1]})"),
      large("", "", R"(,"annotations":[7]})"),
      large("", "", R"(,"images":[{"id":1}]})")};
  for (const auto& json : broken) {
    const auto file = scratch.file("x.json", json);
    const auto told = testing::message_of([&] { parse_dataset(json, file.string()); });
    EXPECT_NE(told, "");
    EXPECT_EQ(testing::message_of([&] { read_dataset(file); }), told);
  }
}

TEST(AnnotationPieces, SkipAndReportSameRecords) {
  const Scratch scratch;
  auto json = RandomFile(3, 60).json();
  const auto replace = [&](std::string_view from, std::string_view to, std::size_t after) {
    json.replace(json.find(from, after), from.size(), to);
  };
  replace("\"width\":", "\"width\":-", 0);
  for (const std::size_t after : {2000, 3000, 5000, 5100})
    replace("\"bbox\":[", "\"bbox\":[1,", after);
  replace("[[", "[[7,8,9],[", 4000);  // an invalid polygon, whose numbers must not be kept
  replace("\"name\":", "\"nam\":", json.find("\"categories\""));
  const InputFile file(scratch.file("x.json", json));
  const auto read = [&](std::size_t piece_bytes) {
    std::vector<RecordFault> faults;
    auto records = read_pieces(file, piece_bytes, {}, &faults);
    std::string told;
    if (!records) return std::pair(told, std::shared_ptr<const Dataset>());
    for (const auto& one : faults)
      told += fmt::format("{} {} {}: {}: {}\n", one.byte, one.field,
                          record_name(one.section, one.index, one.id), json.substr(one.byte, 9),
                          one.why);
    return std::pair(told, assemble(std::move(*records), "x", [](const RecordConflict&) {}));
  };
  const auto [told, expected] = read(json.size());
  EXPECT_EQ(std::ranges::count(told, '\n'), 7) << told;
  for (const std::size_t bytes : {1, 150, 1000, 3000}) {
    const auto [again, data] = read(bytes);
    EXPECT_EQ(again, told);
    ASSERT_TRUE(data);
    expect_equal(*data, *expected);
  }
  EXPECT_FALSE(read_pieces(file, 1000));
}

TEST(AnnotationPieces, ReportFirstError) {
  const Scratch scratch;
  const auto whole = RandomFile(1, 100).json();
  for (const auto& [from, to] :
       {std::pair("\"bbox\":[", "\"bbox\":[1,"), std::pair("\"width\":", "\"width\":\n\n-"),
        std::pair("\"category_id\":", "\"category\":")}) {
    auto json = whole;
    json.replace(json.find(from, json.size() / 20), std::strlen(from), to);
    const auto path = scratch.file("x.json", json);
    EXPECT_EQ(testing::message_of([&] { throw_first_fault(InputFile(path), "x"); }),
              testing::message_of([&] { parse_dataset(json, "x"); }));
  }
  throw_first_fault(InputFile(scratch.file("x.json", whole)), "x");
}

TEST(AnnotationPieces, RejectDamagedJson) {
  const Scratch scratch;
  const std::string whole = RandomFile(2, 30).json();
  std::mt19937 random(1);
  int same = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string damaged = whole;
    for (unsigned flips = 1 + random() % 3; flips > 0; --flips)
      damaged[random() % damaged.size()] =
          static_cast<char>(i % 4 ? "{}[]\",:0e- "[random() % 11] : random());
    const InputFile file(scratch.file("x.json", damaged));
    auto records = read_pieces(file, 150);
    if (!records) continue;
    std::shared_ptr<const Dataset> in_pieces, in_order;
    const auto told = testing::message_of([&] { in_pieces = assemble(std::move(*records), "x"); });
    testing::message_of([&] { in_order = parse_dataset(damaged, "x"); });
    ASSERT_EQ(in_pieces != nullptr, in_order != nullptr) << told;
    if (in_pieces) expect_equal(*in_pieces, *in_order), ++same;
  }
  EXPECT_GT(same, 100);  // changes of a digit only
}

TEST(AnnotationPieces, MatchWholeFileForRealPhotos) {
  MILLRACE_NEEDS_DATA("coco_mini");
  const auto json = testing::data_folder() / "coco_mini/annotations/instances_train2017.json";
  for (const std::size_t bytes : {1000, 30000}) {
    auto records = read_pieces(InputFile(json), bytes);
    ASSERT_TRUE(records);
    expect_equal(*assemble(std::move(*records), "x"), *read_dataset(json));
  }
}

}  // namespace
}  // namespace millrace::coco
