// Sources declared in TOML: what each gives, how they combine, and what is said of those that
// cannot work.
#include "millrace/dataflow/sources/train_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/data_split.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "tests/dataflow/flows.h"
#include "tests/dataflow/tiny_coco.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

TrainData open(const DataOptions& data, const std::string& toml) {
  return open_train_data(data, tables_of(toml));
}

/// Options of a training that needs no disk.
DataOptions no_disk() {
  DataOptions data;
  data.root = "no/such/folder";
  data.classes = {"cat", "dog"};
  data.batch_size = 3;
  data.short_side = {40};
  data.max_side = 80;
  return data;
}

std::string complaint(const std::string& toml, const DataOptions& data = no_disk()) {
  return message_of<ConfigError>([&] { open(data, toml); });
}

TEST(DeclaredSources, GiveWithoutATableTheTrainingSplit) {
  const TinyCoco files(8);
  const auto data = files.options();
  const auto split = open_split(data, data.train);
  const auto expected = digests(*start_train_flow(data, {}, split, 1), 12);
  const auto plain = open_train_data(data, {});
  const auto coco = open(data, R"(sources = [{ type = "coco" }])");
  for (const auto& train : {plain, coco}) {
    EXPECT_EQ(train.classes, split.classes);
    EXPECT_EQ(digests(*start_train_flow(data, {}, train, 1), 12), expected);
  }
}

TEST(DeclaredSources, CombineByName) {
  const auto train = open(no_disk(), R"(
    [[sources]]
    name = "all"
    type = "mix"
    of = ["few", "twice"]
    weights = [1, 3]
    [[sources]]
    name = "few"
    type = "take"
    of = "fake"
    count = 4
    [[sources]]
    type = "fake"
    count = 10
    [[sources]]
    name = "other"
    type = "fake"
    count = 3
    seed = 2
    [[sources]]
    name = "twice"
    type = "repeat"
    of = ["both"]
    times = 2
    [[sources]]
    name = "both"
    type = "concat"
    of = ["other", "fake"]
  )");
  EXPECT_EQ(train.source->size(), 4 + 3 + 10);
  const auto repeats = train.source->repeats();
  ASSERT_EQ(repeats.size(), 17U);
  EXPECT_THAT(std::vector(repeats.begin(), repeats.begin() + 4), Each(30.0 / 4 / 4));
  EXPECT_THAT(std::vector(repeats.begin() + 4, repeats.end()), Each(DoubleEq(30.0 * 3 / 4 / 13)));
}

TEST(DeclaredSources, GiveEpochsOfAFixedSize) {
  const auto train = open(no_disk(), R"(sources = [
      { type = "fake", count = 10 }, { type = "fixed_size", of = "fake", count = 4 } ])");
  EXPECT_THAT(train.source->repeats(), AllOf(SizeIs(10), Each(0.4)));
  EXPECT_EQ(start_train_flow(no_disk(), {}, train, 1)->epoch_size(), 4);
}

TEST(DeclaredSources, RepeatRareClasses) {
  const TinyCoco files(8);  // cats in images 0, 2, 4, 6, dogs in 1, 3, 5; image 7 is empty
  const auto train = open(files.options(), R"(sources = [
      { type = "coco", filter_empty = false },
      { type = "repeat_factor", of = "coco", threshold = 0.5 } ])");
  const double dogs = std::sqrt(0.5 * 8 / 3);
  EXPECT_THAT(train.source->repeats(), ElementsAre(1, dogs, 1, dogs, 1, dogs, 1, 1));
}

TEST(DeclaredSources, NumberClassesByName) {
  const TinyCoco files(4);
  auto data = files.options();
  data.classes = {"horse", "dog", "cat"};
  const auto source = open(data, R"(sources = [{ type = "coco" }])").source;
  ASSERT_EQ(source->size(), 3);
  EXPECT_EQ((*source)[0].objects.classes.front(), 2);
  EXPECT_EQ((*source)[1].objects.classes.front(), 1);
  data.classes = {"horse", "cow"};
  EXPECT_THAT(complaint(R"(sources = [{ type = "coco" }])", data),
              AllOf(HasSubstr("none of the classes horse, cow"), HasSubstr("cat, dog")));
}

TEST(DeclaredSources, ReadAFolderWithoutAnnotations) {
  const TinyCoco files(5);
  const auto folder = files.image(0).parent_path();
  std::filesystem::copy(folder / "picture2.jpg", folder / "A.JPG");
  std::filesystem::copy(folder / "picture2.jpg", folder / "notes.txt");
  const auto data = no_disk();
  const auto source =
      open(data, "sources = [{ type = 'folder', root = '" + folder.string() + "' }]").source;
  ASSERT_EQ(source->size(), 6);
  EXPECT_EQ((*source)[0].path, folder / "A.JPG");
  EXPECT_EQ((*source)[5].path, folder / "picture4.jpg");
  const auto batch = start_train_flow(data, {}, {data.classes, source}, 1)->next()->value;
  EXPECT_EQ(batch.size(), 3U);
  EXPECT_GT(batch.images[0].original_width, 0);
  auto by_shape = data;
  by_shape.shape_buckets = 3;  // for sizes that are not known yet
  EXPECT_EQ(start_train_flow(by_shape, {}, {data.classes, source}, 1)->next()->value.size(), 3U);
  EXPECT_THAT(complaint("sources = [{ type = 'folder', root = '/no/photos' }]"),
              HasSubstr("no folder '/no/photos'"));
  std::filesystem::create_directory(folder / "empty");
  EXPECT_THAT(
      complaint("sources = [{ type = 'folder', root = '" + (folder / "empty").string() + "' }]"),
      HasSubstr("test.toml:1:12: source 'folder' has no samples"));
}

TEST(FakeSource, GivesTheSameBytesForAnyNumberOfThreadsAndFromAnyCursor) {
  auto data = no_disk();
  const auto source =
      open(data,
           R"(sources = [{ type = "fake", count = 7, width = 33, height = 50, objects = 5 }])")
          .source;
  const auto sample = (*source)[3];
  EXPECT_EQ(sample.image.size(), cv::Size(33, 50));
  EXPECT_EQ(sample.objects.size(), 5U);
  for (const auto& box : sample.objects.boxes) {
    EXPECT_TRUE(0 <= box.x1 && box.x1 < box.x2 && box.x2 <= 33);
    EXPECT_TRUE(0 <= box.y1 && box.y1 < box.y2 && box.y2 <= 50);
  }
  data.threads = 1;
  const auto expected = digests(*start_train_flow(data, {}, {data.classes, source}, 1), 10);
  data.threads = 8;
  const auto flow = start_train_flow(data, {}, {data.classes, source}, 1);
  for (std::size_t k = 0; k < 10; ++k) {
    const auto item = flow->next();
    EXPECT_EQ(digest(item->value), expected[k]);
    EXPECT_EQ(digests(*start_train_flow(data, {}, {data.classes, source}, 1, {}, item->cursor),
                      static_cast<int>(9 - k)),
              std::vector(expected.begin() + static_cast<std::ptrdiff_t>(k) + 1, expected.end()));
  }
}

TEST(ShuffleWindow, KeepsNeighboursTogether) {
  auto data = no_disk();
  data.batch_size = 10;
  data.aspect_grouping = false;
  data.shuffle_window = 10;
  const auto source =
      open(data, R"(sources = [{ type = "fake", count = 100, width = 8, height = 8 }])").source;
  const auto flow = start_train_flow(data, {}, {data.classes, source}, 1);
  for (int i = 0; i < 10; ++i) {
    const auto batch = flow->next()->value;
    std::vector<std::int64_t> window;
    for (const auto& image : batch.images) window.push_back((image.image_id - 1) / 10);
    EXPECT_THAT(window, Each(window.front()));
  }
}

TEST(DeclaredSources, SayWhatCannotWork) {
  const std::string fake = "{ type = 'fake' }";
  EXPECT_THAT(
      complaint("sources = [{ type = 'fak' }]"),
      AllOf(HasSubstr("test.toml:1:21: unknown source 'fak'"), HasSubstr("did you mean 'fake'")));
  EXPECT_THAT(complaint("sources = [{ count = 3 }]"),
              HasSubstr("test.toml:1:12: a source is a table with its name in `type"));
  EXPECT_THAT(complaint("sources = [{ type = 'fake', count = 0 }]"), HasSubstr("count"));
  EXPECT_THAT(complaint("sources = [{ type = 'fake', cont = 1 }]"),
              HasSubstr("did you mean 'count'"));
  EXPECT_THAT(complaint("sources = [{ type = 'take', of = 'take' }]"),
              HasSubstr("is made of itself: 'take' of 'take'"));
  EXPECT_THAT(complaint("sources = [" + fake + ", { type = 'take', of = 'fame' }]"),
              AllOf(HasSubstr("test.toml:1:31: source 'take' is made of 'fame'"),
                    HasSubstr("did you mean 'fake'")));
  EXPECT_THAT(complaint("sources = [{ name = 'a', type = 'take', of = 'b' }, { name = 'b', type = "
                        "'take', of = 'a' }]"),
              HasSubstr("is made of itself: 'a' of 'b' of 'a'"));
  EXPECT_THAT(complaint("sources = [" + fake + ", " + fake + "]"),
              HasSubstr("another has this name already"));
  EXPECT_THAT(
      complaint("sources = [" + fake + ", { name = 'b', type = 'fake' }]"),
      AllOf(HasSubstr("test.toml:1:31"), HasSubstr("'fake', 'b'"), HasSubstr("type = \"concat\"")));
  EXPECT_THAT(complaint("sources = [" + fake + ", { type = 'mix', of = 'fake', weights = 0 }]"),
              HasSubstr("test.toml:1:31: no source of a mix has a weight above 0"));
  EXPECT_THAT(complaint("sources = [" + fake + ", { type = 'mix', of = 'fake' }]"),
              HasSubstr("1 sources are given 0 weights"));
  EXPECT_THAT(complaint("sources = [" + fake + ", { type = 'mix', of = 'fake', weights = -1 }]"),
              HasSubstr("weights"));
  EXPECT_THAT(complaint("sources = [" + fake +
                        ", { name = 'b', type = 'fake' }, { type = 'take', of = ['b', 'fake'] }]"),
              HasSubstr("takes one source in `of = \"...\"`, not 2"));
  EXPECT_THAT(complaint("sources = [{ type = 'concat' }]"),
              HasSubstr("there is no source to put together"));
}

TEST(DeclaredSources, NeedTheNamesOfTheClasses) {
  auto data = no_disk();
  data.classes = {};
  EXPECT_THAT(complaint("sources = [{ type = 'fake' }]", data),
              HasSubstr("data.classes: name the classes"));
}

}  // namespace
}  // namespace millrace
