// Reading in pieces: the same data set and the same messages as reading in order.
#include "millrace/coco/data/readers.h"

#include <gmock/gmock.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include "millrace/base/errors.h"
#include "tests/coco/datasets.h"
#include "tests/support/data.h"
#include "tests/support/scratch.h"
#include "tests/support/thrown.h"

namespace millrace::coco {
namespace {

using testing::Scratch;

/// Reads a text both ways and expects one result.
void expect_read(const Scratch& scratch, const std::string& json, std::size_t piece_bytes) {
  const InputFile file(scratch.file("x.json", json));
  auto records = read_pieces(file, piece_bytes);
  ASSERT_TRUE(records) << piece_bytes;
  expect_equal(*assemble(std::move(*records), "x"), *parse_dataset(json, "x"));
}

TEST(AnnotationPieces, AreTheSameForAnySizeAndNumberOfThreads) {
  const Scratch scratch;
  for (unsigned seed = 1; seed <= 6; ++seed)
    for (const std::size_t bytes : {1, 64, 300, 1000, 7777, 1000000})
      expect_read(scratch, RandomFile(seed).json(), bytes);
  const auto json = RandomFile(3, 2000).json();
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, 8);
  for (const int threads : {1, 2, 3, 8})
    tbb::task_arena(threads).execute([&] { expect_read(scratch, json, 2000); });
}

TEST(AnnotationPieces, StandWhereTheyLike) {
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

/// A file that is large enough for pieces, with something before, among and after its annotations.
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

TEST(AnnotationPieces, WrongGuessesAreReadInOrder) {
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

TEST(AnnotationPieces, FaultsOfLargeFilesAreToldAsThoseOfSmallOnes) {
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

TEST(AnnotationPieces, OfDamagedTextAreRightOrNothing) {
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
  EXPECT_GT(same, 100);  // digits that changed
}

TEST(AnnotationPieces, OfRealPhotosAreTheSame) {
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
