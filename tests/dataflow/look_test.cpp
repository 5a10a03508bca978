// The stages 'print' and 'dump' show samples and batches and change nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "tests/dataflow/flows.h"
#include "tests/dataflow/tiny_coco.h"
#include "tests/support/log.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

namespace fs = std::filesystem;

/// Returns batches from the default stages with further stages after 'decode' and at the end.
std::vector<Batch> batches(const DataOptions& data, const std::string& after_decode = "",
                           const std::string& last = "") {
  return drain(*train_flow(data, pipeline(after_decode + kFlipAndResize, last)), 6);
}

TEST(Print, LogsFirstImages) {
  TinyCoco data(9);
  data.threads = 1;
  Log log;
  const auto shown = batches(data, "{ type = 'print', count = 4 }, ");
  const auto plain = batches(data);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(digest(shown[i]), digest(plain[i]));
  const auto text = log.take();
  EXPECT_EQ(std::ranges::count(text, '\n'), 4) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("image 10"), HasSubstr("picture"), HasSubstr(", now "),
                          HasSubstr(": 1 ")));
}

TEST(Dump, WritesModelInput) {
  TinyCoco data(9);
  data.threads = 1;
  const auto folder = fs::path(data.root) / "seen";
  const auto dump = ", { type = 'dump', folder = '" + folder.string() + "', count = 2, every = 3 }";
  const auto seen = batches(data, "", dump);
  const auto plain = batches(data);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(digest(seen[i]), digest(plain[i]));
  for (const int number : {0, 3}) {
    const auto name = "batch00000" + std::to_string(number);
    const auto json = nlohmann::json::parse(read_file(folder / (name + ".json")));
    const auto* found = &plain[static_cast<std::size_t>(number)];
    for (std::size_t i = 0; i < found->size(); ++i) {
      const auto& image = json.at("images")[i];
      const auto& truth = found->images[i];
      const auto& object = image.at("objects").at(0);
      EXPECT_EQ(object.at("class"), truth.image_id % 2 == 0 ? "cat" : "dog");
      EXPECT_FLOAT_EQ(object.at("box").at(2), found->objects[i].boxes[0].x2);
      EXPECT_EQ(object.at("segmentation").at(0).size(), 8U);
      const auto picture = picture_in(folder / image.at("picture"));
      ASSERT_FALSE(picture.empty());
      EXPECT_NEAR(double(picture.cols) / picture.rows, double(truth.width) / truth.height, 0.02);
    }
  }
  EXPECT_FALSE(fs::exists(folder / "batch000001.json"));
  EXPECT_FALSE(fs::exists(folder / "batch000006.json"));
}

/// Returns the contents of a folder's files by name.
std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = read_file(entry.path());
  return files;
}

TEST(Dump, NumbersBatchesByTrainingStep) {
  TinyCoco data(20);
  std::ofstream(data.image(5)) << "no JPEG";
  data.batch_size = 2;
  data.on_error = OnError::replace;
  const auto dump = [&](const fs::path& folder, int threads, Share share, bool resumes) {
    data.threads = threads;
    const auto stages = pipeline(kFlipAndResize, ", { type = 'dump', folder = '" + folder.string() +
                                                     "', count = 4, every = 3 }");
    Cursor cursor;
    auto flow = train_flow(data, stages, 1, share);
    for (int i = 0; i < 16; ++i) {
      cursor = flow->next()->cursor;
      if (resumes && i % 5 == 4) flow = train_flow(data, stages, 1, share, cursor);
    }
  };
  const auto folder = fs::path(data.root);
  for (const std::int64_t ranks : {1, 2}) {
    const auto plain = folder / fmt::format("plain{}", ranks);
    for (std::int64_t rank = 0; rank < ranks; ++rank) dump(plain, 1, {rank, ranks}, false);
    const auto expected = files_of(plain);
    EXPECT_EQ(expected.size(), static_cast<std::size_t>(4 * 3 * ranks));
    const auto other = folder / fmt::format("other{}", ranks);
    for (std::int64_t rank = 0; rank < ranks; ++rank) dump(other, 8, {rank, ranks}, true);
    EXPECT_EQ(files_of(other), expected) << ranks;
  }
}

TEST(Dump, ReportsUnwritableFolder) {
  const TinyCoco data(4);
  const auto complaint = [&](const std::string& options) -> std::string {
    return message_of<ConfigError>(
        [&] { batches(data, "", ", { type = 'dump'" + options + " }"); });
  };
  EXPECT_THAT(complaint(""), AllOf(HasSubstr("test.toml:1:"), HasSubstr("folder is required")));
  EXPECT_THAT(complaint(", folder = '/proc/seen'"), HasSubstr("/proc/seen: "));
}

}  // namespace
}  // namespace millrace
