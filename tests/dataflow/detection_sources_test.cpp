// Sources declared in TOML: their samples, their combinations, and their errors.
#include "millrace/dataflow/sources/train_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/data_split.h"
#include "millrace/dataflow/detection_flows.h"
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

/// Returns options of a training run that reads no file.
DataOptions no_disk() {
  DataOptions data;
  data.root = "no/such/folder";
  data.classes = {"cat", "dog"};
  data.batch_size = 3;
  data.short_side = {40};
  data.max_side = 80;
  return data;
}

std::unique_ptr<DataFlow<Batch>> flow_from(const SourcePtr<Sample>& source, const DataOptions& data,
                                           const Cursor& start = {}) {
  return start_train_flow(data, {}, {data.classes, source}, 1, {}, start);
}

std::string complaint(const std::string& toml, const DataOptions& data = no_disk()) {
  return message_of<ConfigError>([&] { open(data, toml); });
}

TEST(DeclaredSources, DefaultToTrainingSplit) {
  const TinyCoco data(8);
  const auto split = open_split(data, data.train);
  const auto expected = digests(*train_flow(data), 12);
  const auto plain = open_train_data(data, {});
  const auto coco = open(data, R"(sources = [{ type = "coco" }])");
  for (const auto& train : {plain, coco}) {
    EXPECT_EQ(train.classes, split.classes);
    EXPECT_EQ(digests(*start_train_flow(data, {}, train, 1), 12), expected);
  }
}

TEST(DeclaredSources, CombineByName) {
  const auto train = open(no_disk(), R"(sources = [
      { name = "all", type = "mix", of = ["few", "twice"], weights = [1, 3] },
      { name = "few", type = "take", of = "fake", count = 4 },
      { type = "fake", count = 10 },
      { name = "other", type = "fake", count = 3, seed = 2 },
      { name = "twice", type = "repeat", of = ["both"], times = 2 },
      { name = "both", type = "concat", of = ["other", "fake"] } ])");
  EXPECT_EQ(train.source->size(), 4 + 3 + 10);
  const auto repeats = train.source->repeats();
  ASSERT_EQ(repeats.size(), 17U);
  EXPECT_THAT(std::vector(repeats.begin(), repeats.begin() + 4), Each(30.0 / 4 / 4));
  EXPECT_THAT(std::vector(repeats.begin() + 4, repeats.end()), Each(DoubleEq(30.0 * 3 / 4 / 13)));
}

TEST(DeclaredSources, CanHaveFixedSizeEpochs) {
  const auto train = open(no_disk(), R"(sources = [
      { type = "fake", count = 10 }, { type = "fixed_size", of = "fake", count = 4 } ])");
  EXPECT_THAT(train.source->repeats(), AllOf(SizeIs(10), Each(0.4)));
  EXPECT_EQ(start_train_flow(no_disk(), {}, train, 1)->epoch_size(), 4);
}

TEST(DeclaredSources, RepeatRareClasses) {
  const TinyCoco files(8);  // cats in images 0, 2, 4, 6, dogs in 1, 3, 5; image 7 is empty
  const auto train = open(files, R"(sources = [
      { type = "coco", filter_empty = false },
      { type = "repeat_factor", of = "coco", threshold = 0.5 } ])");
  const double dogs = std::sqrt(0.5 * 8 / 3);
  EXPECT_THAT(train.source->repeats(), ElementsAre(1, dogs, 1, dogs, 1, dogs, 1, 1));
}

TEST(DeclaredSources, MapClassesByName) {
  TinyCoco data(4);
  data.classes = {"horse", "dog", "cat"};
  const auto source = open(data, R"(sources = [{ type = "coco" }])").source;
  ASSERT_EQ(source->size(), 3);
  EXPECT_EQ((*source)[0].objects.classes.front(), 2);
  EXPECT_EQ((*source)[1].objects.classes.front(), 1);
  data.classes = {"horse", "cow"};
  EXPECT_THAT(complaint(R"(sources = [{ type = "coco" }])", data),
              AllOf(HasSubstr("horse, cow"), HasSubstr("cat, dog")));
}

TEST(DeclaredSources, UseImagesWithoutObjectsAsNegatives) {
  const TinyCoco data(8), others(4);
  const auto file = std::filesystem::path(others.root) / "annotations/instances_train2017.json";
  const auto complete = nlohmann::json::parse(std::ifstream(file));
  const auto sources = [&](const std::string& filter) {
    return "sources = [ { type = 'coco', name = 'a' }, { type = 'coco', name = 'b', root = '" +
           others.root + "', filter_empty = " + filter +
           " }, { type = 'concat', of = ['a', 'b'] } ]";
  };
  auto bare = complete, foreign = complete;
  bare["annotations"] = bare["categories"] = nlohmann::json::array();
  foreign["categories"][0]["name"] = "bus";
  foreign["categories"][1]["name"] = "car";
  for (const auto& json : {bare, foreign}) {
    std::ofstream(file) << json;
    const auto train = open(data, sources("false"));
    EXPECT_EQ(train.source->size(), 7 + 4);
    for (std::int64_t i = 7; i < 11; ++i) EXPECT_EQ((*train.source)[i].objects.size(), 0U);
    EXPECT_TRUE(start_train_flow(data, {}, train, 1)->next());
    EXPECT_THAT(complaint(sources("true"), data), HasSubstr(file.string()));
  }
}

TEST(DeclaredSources, ReadFolderWithoutAnnotations) {
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
  const auto batch = flow_from(source, data)->next()->value;
  EXPECT_EQ(batch.size(), 3U);
  EXPECT_GT(batch.images[0].original_width, 0);
  auto by_shape = data;
  by_shape.shape_buckets = 3;  // image sizes are not known yet
  EXPECT_EQ(flow_from(source, by_shape)->next()->value.size(), 3U);
  EXPECT_THAT(complaint("sources = [{ type = 'folder', root = '/no/photos' }]"),
              HasSubstr("'/no/photos'"));
  std::filesystem::create_directory(folder / "empty");
  EXPECT_THAT(
      complaint("sources = [{ type = 'folder', root = '" + (folder / "empty").string() + "' }]"),
      HasSubstr("test.toml:1:12: source 'folder' "));
}

TEST(FakeSource, YieldsSameBytesForAnyThreadCount) {
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
  const auto expected = digests(*flow_from(source, data), 10);
  data.threads = 8;
  const auto flow = flow_from(source, data);
  for (std::size_t k = 0; k < 10; ++k) {
    const auto item = flow->next();
    EXPECT_EQ(digest(item->value), expected[k]);
    EXPECT_EQ(digests(*flow_from(source, data, item->cursor), static_cast<int>(9 - k)),
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
  const auto flow = flow_from(source, data);
  for (int i = 0; i < 10; ++i) {
    const auto batch = flow->next()->value;
    std::vector<std::int64_t> window;
    for (const auto& image : batch.images) window.push_back((image.image_id - 1) / 10);
    EXPECT_THAT(window, Each(window.front()));
  }
}

TEST(DeclaredSources, RejectInvalidTables) {
  const std::string fake = "{ type = 'fake' }";
  const std::pair<std::string, std::vector<const char*>> cases[] = {
      {"{ type = 'fak' }", {"test.toml:1:21: ", "'fake'"}},
      {"{ count = 3 }", {"test.toml:1:12: ", "`type"}},
      {"{ type = 'fake', count = 0 }", {"count"}},
      {"{ type = 'fake', cont = 1 }", {"'count'"}},
      {"{ type = 'take', of = 'take' }", {"'take' of 'take'"}},
      {fake + ", { type = 'take', of = 'fame' }",
       {"test.toml:1:31: source 'take' ", "'fame'", "'fake'"}},
      {"{ name = 'a', type = 'take', of = 'b' }, { name = 'b', type = 'take', of = 'a' }",
       {"'a' of 'b' of 'a'"}},
      {fake + ", " + fake, {"already used"}},
      {fake + ", { name = 'b', type = 'fake' }",
       {"test.toml:1:31", "'fake', 'b'", "type = \"concat\""}},
      {fake + ", { type = 'mix', of = 'fake', weights = 0 }", {"test.toml:1:31: all weights"}},
      {fake + ", { type = 'mix', of = 'fake' }", {"1 sources have 0 weights"}},
      {fake + ", { type = 'mix', of = 'fake', weights = -1 }", {"weights"}},
      {fake + ", { name = 'b', type = 'fake' }, { type = 'take', of = ['b', 'fake'] }",
       {"one source in `of = \"...\"`, not 2"}},
      {"{ type = 'concat' }", {"no sources to combine"}}};
  for (const auto& [sources, told] : cases)
    for (const auto* part : told)
      EXPECT_THAT(complaint("sources = [" + sources + "]"), HasSubstr(part)) << sources;
}

TEST(DeclaredSources, RequireClassNames) {
  auto data = no_disk();
  data.classes = {};
  EXPECT_THAT(complaint("sources = [{ type = 'fake' }]", data), HasSubstr("data.classes: "));
}

}  // namespace
}  // namespace millrace
