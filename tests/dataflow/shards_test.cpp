// Tar shards in WebDataset's layout and TFRecord files yield the same batches as the folder they
// were made from.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/proto_message.h"
#include "millrace/dataflow/detection/decode.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "millrace/dataflow/store/index_shards.h"
#include "millrace/dataflow/store/pack_records.h"
#include "millrace/dataflow/store/record_store.h"
#include "millrace/dataflow/store/remote/tar.h"
#include "millrace/dataflow/store/remote/tf_record.h"
#include "millrace/dataflow/store/sample_codec.h"
#include "millrace/dataflow/store/sample_json.h"
#include "tests/dataflow/flows.h"
#include "tests/dataflow/tiny_coco.h"
#include "tests/support/scratch.h"
#include "tests/support/shell.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

namespace fs = std::filesystem;

constexpr int kImages = 13;
constexpr std::uint64_t kShardBytes = 8192;  // a few images per shard

struct Sharded {
  TinyCoco files{kImages};
  DataOptions data = files;
  DetectionSource source{open_split(data, data.train), /*filter_empty=*/false};
  fs::path folder = fs::path(data.root) / "shards";
  PackReport report = pack_records(source, {"cat", "dog"}, folder, {.shard_bytes = kShardBytes});

  std::vector<std::string> tars() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".tar") names.push_back(entry.path().string());
    std::ranges::sort(names);
    return names;
  }
};

TrainData records(const DataOptions& data, const fs::path& folder) {
  return open_train_data(
      data,
      tables_of(fmt::format("sources = [{{ type = 'records', folder = '{}', shards = ['{}'] }}]",
                            folder.string(), data.root)));
}

std::vector<std::uint64_t> batches(const DataOptions& data, const fs::path& folder,
                                   int count = 14) {
  return digests(*start_train_flow(data, {}, records(data, folder), 1), count);
}

std::unique_ptr<ByteSource> open_local(const std::string& name) { return open_local_file(name); }

TEST(Shards, MatchFilesForAnyThreadCount) {
  Sharded packed;
  EXPECT_GT(packed.report.shards, 3U);
  EXPECT_EQ(packed.tars().size(), packed.report.shards);
  auto data = packed.data;
  const auto expected = digests(*train_flow(data), 14);
  for (const int threads : {1, 2, 8}) {
    data.threads = threads;
    EXPECT_EQ(batches(data, packed.folder), expected) << threads;
  }
}

TEST(Shards, ResumeExactly) {
  const Sharded packed;
  const auto train = records(packed.data, packed.folder);
  const auto whole = start_train_flow(packed.data, {}, train, 1);
  for (int done = 1; done <= 10; ++done) {
    const auto cursor = whole->next()->cursor;
    if (done % 3 != 0) continue;
    const auto expected = digests(*start_train_flow(packed.data, {}, train, 1), done + 3);
    const auto resumed = digests(*start_train_flow(packed.data, {}, train, 1, {}, cursor), 3);
    EXPECT_EQ(resumed, (std::vector(expected.end() - 3, expected.end()))) << done;
  }
}

TEST(Shards, AreReproducible) {
  const Sharded one, other;
  const auto tars = one.tars();
  for (const auto& name : tars)
    EXPECT_EQ(read_file(name), read_file(other.folder / fs::path(name).filename()));
  EXPECT_EQ(read_file(header_file(one.folder)), read_file(header_file(other.folder)));
}

TEST(Shards, ContainImagesAndAnnotations) {
  const Sharded packed;
  std::int64_t record = 0;
  for (const auto& name : packed.tars()) {
    const auto file = open_local_file(name);
    EXPECT_TRUE(is_tar(*file));
    std::vector<TarMember> members;
    read_tar(*file, [&](const TarMember& member) { members.push_back(member); });
    ASSERT_EQ(members.size() % 2, 0U);
    for (std::size_t i = 0; i < members.size(); i += 2, ++record) {
      const auto key = fmt::format("{:09}", record);
      EXPECT_EQ(members[i].name, key + ".jpg");
      EXPECT_EQ(members[i + 1].name, key + ".json");
      EXPECT_EQ(file->read({members[i].begin, members[i].size}).bytes,
                read_file(packed.source[record].path));
      ClassNames classes;
      for (const auto* class_name : {"cat", "dog"}) classes.number(class_name);
      auto sample = read_sample_json(file->read({members[i + 1].begin, members[i + 1].size}).bytes,
                                     "json", classes);
      auto expected = packed.source[record];
      expected.path = sample.path;
      EXPECT_EQ(encode(sample), encode(expected));
    }
  }
  EXPECT_EQ(record, kImages);
}

TEST(Shards, AreReadableByTar) {
  if (!shell("tar --version")) GTEST_SKIP() << "tar is not installed";
  const Sharded packed;
  const auto out = fs::path(packed.data.root) / "out";
  fs::create_directories(out);
  for (const auto& name : packed.tars())
    ASSERT_TRUE(shell("tar -xf '" + name + "' -C '" + out.string() + "'"));
  EXPECT_EQ(read_file(out / "000000002.jpg"), read_file(packed.source[2].path));
  EXPECT_EQ(nlohmann::json::parse(read_file(out / "000000002.json")).at("image_id"), 102);
}

TEST(Shards, MatchStoreIfIndexed) {
  const Sharded packed;
  const auto index = fs::path(packed.data.root) / "index";
  const auto report = index_shards(packed.tars(), open_local, index);
  EXPECT_EQ(report.images, kImages);
  EXPECT_EQ(report.without_annotations, 0);
  EXPECT_EQ(report.without_area, 0);
  EXPECT_THAT(report.classes, UnorderedElementsAre("cat", "dog"));
  EXPECT_EQ(batches(packed.data, index), batches(packed.data, packed.folder));
}

TEST(Shards, FromOtherToolsAreReadable) {
  if (!shell("tar --version")) GTEST_SKIP() << "tar is not installed";
  const TinyCoco files(6);
  const auto root = fs::path(files.root), folder = root / "train2017";
  const std::string deep(120, 'd');  // too long for a ustar header
  fs::create_directories(folder / deep);
  fs::rename(files.image(1), folder / deep / "one.v1.JPG");  // the key ends at the first dot
  std::ofstream(folder / deep / "one.json")
      << R"({"annotations": [{"bbox": [1, 2, 10, 9], "category_id": 7}]})";
  std::ofstream(folder / "notes.txt") << "no image";
  for (const std::string format : {"gnu", "pax"}) {
    const auto tar = (root / (format + ".tar")).string();
    ASSERT_TRUE(shell("tar --format=" + format + " -cf '" + tar + "' -C '" + folder.string() +
                      "' '" + deep + "' picture0.jpg picture2.jpg notes.txt"));
    const auto report = index_shards(std::vector{tar}, open_local, root / format);
    EXPECT_EQ(report.images, 2)
        << "one.v1.JPG is not counted, since its extension after the key is v1.JPG";
    EXPECT_EQ(report.without_annotations, 2);
    const RecordStore store(root / format, {}, std::array{files.root});
    EXPECT_EQ(store[0].encoded.bytes, read_file(files.image(0)));
    EXPECT_EQ(Decode{}(store[1]).image.size(), cv::Size(store[1].width, store[1].height));
  }
}

TEST(Shards, WithManyClassesAreIndexedQuickly) {
  constexpr int kMany = 200'000;
  const TinyCoco files(2);
  std::string json = R"({"annotations": [)";
  for (int i = 0; i < kMany; ++i)
    json += fmt::format(R"({}{{"bbox": [1, 2, 10, 9], "category": "c{}"}})", i > 0 ? "," : "", i);
  json += "]";
  for (int i = 0; i < kMany; ++i) json += fmt::format(R"(,"k{}":0)", i);
  json += "}";
  std::string tar;
  for (const auto& [name, bytes] :
       {std::pair(std::string("a.json"), json), {"a.jpg", read_file(files.image(0))}})
    tar += tar_header(name, bytes.size()) + bytes + tar_padding(bytes.size());
  const Scratch scratch;
  const auto file = scratch.file("many.tar", tar + tar_end()).string();
  const auto start = std::chrono::steady_clock::now();
  const auto report = index_shards(std::vector{file}, open_local, scratch / "index");
  EXPECT_EQ(report.classes.size(), static_cast<std::size_t>(kMany));
  TinyCoco data(2);
  data.classes = report.classes;
  const auto train = open_train_data(
      data, tables_of("sources = [{ type = 'records', shards = ['" + scratch.path().string() +
                      "'], folder = '" + (scratch / "index").string() + "' }]"));
  EXPECT_EQ((*train.source)[0].objects.classes.back(), kMany - 1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Shards, RejectPaxSizesThatAreNotNumbers) {
  const std::string record = "13 size=many\n";
  std::string tar(1024, '\0');
  tar.replace(124, 11, "00000000015");  // 13 bytes, in octal
  tar[156] = 'x';
  tar.replace(257, 5, "ustar");
  tar.replace(148, 8, 8, ' ');
  int sum = 0;
  for (std::size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(tar[i]);
  tar.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
  tar.replace(512, record.size(), record);
  const Scratch scratch;
  const auto file = scratch.file("pax.tar", tar).string();
  EXPECT_THAT(message_of([&] { read_tar(*open_local(file), [](const TarMember&) {}); }),
              AllOf(HasSubstr(file), HasSubstr("size")));
}

TEST(Shards, ReportDamage) {
  const Sharded packed;
  const auto tar = packed.tars().at(1);
  const auto whole = read_file(tar);
  const auto index = fs::path(packed.data.root) / "index";
  const auto problem = [&](std::string bytes) {
    std::ofstream(tar, std::ios::binary) << bytes;
    return message_of([&] { index_shards(packed.tars(), open_local, index); });
  };
  EXPECT_THAT(problem(whole.substr(0, 700)), AllOf(HasSubstr(tar), HasSubstr("truncated")));
  auto header = whole;
  header[3] ^= 1;
  EXPECT_THAT(problem(header), HasSubstr(tar));
  EXPECT_FALSE(fs::exists(index));
  EXPECT_THAT(message_of([&] { RecordStore{packed.folder}; }), Eq("")) << "the length is right";

  auto image = whole;
  image[512 + 200] ^= 1;
  std::ofstream(tar, std::ios::binary) << image;
  const RecordStore store(packed.folder);
  int damaged = 0;
  for (std::int64_t i = 0; i < store.size(); ++i)
    damaged += message_of([&] { Decode{}(store[i]); }).find("checksum") != std::string::npos;
  EXPECT_EQ(damaged, 1);
  fs::resize_file(tar, 1000);
  EXPECT_THAT(message_of([&] { RecordStore{packed.folder}; }),
              AllOf(HasSubstr(tar), HasSubstr("truncated")));
}

TEST(Shards, AreRejectedIfCutBetweenMembers) {
  const Sharded packed;
  const auto tar = packed.tars().front();
  std::vector<std::uint64_t> begins;
  read_tar(*open_local_file(tar), [&](const TarMember& member) { begins.push_back(member.begin); });
  ASSERT_GE(begins.size(), 4U);
  fs::resize_file(tar, begins[2] - 512);  // after the image and the annotations of a sample
  const auto index = fs::path(packed.data.root) / "index";
  EXPECT_THAT(message_of([&] { index_shards(std::vector{tar}, open_local, index); }),
              AllOf(HasSubstr(tar), HasSubstr(std::to_string(begins[2] - 512))));
  EXPECT_FALSE(fs::exists(index));
}

/// Returns a tf.train.Example for a sample, as in TensorFlow's Object Detection API.
std::string tf_example(const Sample& sample) {
  ProtoMessage features;
  const auto add = [&](const std::string& key, int kind, const ProtoMessage& list) {
    ProtoMessage feature, entry;
    feature.message(kind, list);
    entry.text(1, key).message(2, feature);
    features.message(1, entry);
  };
  const auto text = [&](const std::string& key, const std::string& value) {
    add(key, 1, ProtoMessage().text(1, value));
  };
  const auto number = [&](const std::string& key, std::int64_t value) {
    add(key, 3, ProtoMessage().number(1, value));
  };
  text("image/encoded", read_file(sample.path));
  text("image/filename", fs::path(sample.path).filename());
  text("image/source_id", std::to_string(sample.image_id));
  number("image/width", sample.width);
  number("image/height", sample.height);
  ProtoMessage names;
  std::array<std::string, 4> corners;  // packed floats
  std::string crowds;
  const auto put = [](std::string& out, float value) {
    put_little_endian(out, std::bit_cast<std::uint32_t>(value));
  };
  for (std::size_t i = 0; i < sample.objects.size(); ++i) {
    const auto& box = sample.objects.boxes[i];
    const auto width = static_cast<float>(sample.width), height = static_cast<float>(sample.height);
    put(corners[0], box.x1 / width);
    put(corners[1], box.y1 / height);
    put(corners[2], box.x2 / width);
    put(corners[3], box.y2 / height);
    names.text(1, sample.objects.classes[i] == 0 ? "cat" : "dog");
    crowds += static_cast<char>(sample.objects.crowd[i]);
  }
  constexpr std::array kCorners = {"xmin", "ymin", "xmax", "ymax"};
  for (std::size_t k = 0; k < 4; ++k)
    add(std::string("image/object/bbox/") + kCorners[k], 2, ProtoMessage().text(1, corners[k]));
  add("image/object/class/text", 1, names);
  add("image/object/is_crowd", 3, ProtoMessage().text(1, crowds));
  return ProtoMessage().message(1, features).bytes();
}

TEST(TfRecord, MatchesStandardChecksum) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);  // RFC 3720, B.4 has the value for 32 zeros:
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
}

TEST(TfRecord, MatchesSourceFolder) {
  const TinyCoco files(7);
  const DetectionSource source(open_split(files, files.train), false);
  const auto file = (fs::path(files.root) / "train.tfrecord").string();
  std::string bytes;
  for (std::int64_t i = 0; i < source.size(); ++i) bytes += tf_record(tf_example(source[i]));
  std::ofstream(file, std::ios::binary) << bytes;
  const auto index = fs::path(files.root) / "index";
  index_shards(std::vector{file}, open_local, index);
  const RecordStore store(index, {}, std::array{files.root});
  ASSERT_EQ(store.size(), source.size());
  for (std::int64_t i = 0; i < store.size(); ++i) {
    const auto read = store[i], expected = source[i];
    EXPECT_EQ(read.image_id, expected.image_id);
    EXPECT_EQ(read.encoded.bytes, read_file(expected.path));
    EXPECT_EQ(read.objects.classes, expected.objects.classes);
    EXPECT_EQ(read.objects.crowd, expected.objects.crowd);
    ASSERT_EQ(read.objects.size(), expected.objects.size());
    for (std::size_t k = 0; k < read.objects.size(); ++k) {
      EXPECT_NEAR(read.objects.boxes[k].x1, expected.objects.boxes[k].x1, 1e-4);
      EXPECT_NEAR(read.objects.boxes[k].y2, expected.objects.boxes[k].y2, 1e-4);
    }
  }
  EXPECT_EQ(batches(files, index).size(), 14U);
}

TEST(TfRecord, ReportsOffsetOfDamage) {
  const TinyCoco files(3);
  const DetectionSource source(open_split(files, files.train), false);
  const auto file = (fs::path(files.root) / "train.tfrecord").string();
  const auto record = tf_record(tf_example(source[0]));
  const auto problem = [&](std::string bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
    return message_of(
        [&] { index_shards(std::vector{file}, open_local, fs::path(files.root) / "index"); });
  };
  for (const std::size_t at :
       {std::size_t{3}, std::size_t{9}, std::size_t{400}, record.size() - 1}) {
    auto bytes = record + record;
    bytes[record.size() + at] ^= 4;
    EXPECT_THAT(problem(bytes),
                AllOf(HasSubstr(file), HasSubstr(fmt::format("at byte {}", record.size()))));
  }
  EXPECT_THAT(problem(record + record.substr(0, 300)), HasSubstr("truncated"));
  EXPECT_THAT(problem(tf_record("no message")), HasSubstr("tf.train.Example"));
}

}  // namespace
}  // namespace millrace
