// Record stores return the same bytes as the files they were packed from, or report damage.
#include "millrace/dataflow/store/record_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <opencv2/core.hpp>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/decode.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/dataflow/store/pack_records.h"
#include "millrace/dataflow/store/sample_codec.h"
#include "tests/dataflow/flows.h"
#include "tests/dataflow/tiny_coco.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

namespace fs = std::filesystem;

DetectionSource images_of(const DataOptions& data) {
  return DetectionSource(open_split(data, data.train), /*filter_empty=*/false);
}

/// A small data set and the store that was packed from it.
struct Packed {
  TinyCoco files{9};
  DataOptions data = files;
  fs::path folder = fs::path(data.root) / "packed";
  Packed() { pack_records(images_of(data), open_split(data, data.train).classes, folder); }
};

TrainData open_records(const DataOptions& data, const fs::path& folder) {
  return open_train_data(
      data, tables_of("sources = [{ type = 'records', folder = '" + folder.string() + "' }]"));
}

/// Reads and decodes every record; returns the message of the first error, empty = none.
std::string read_all(const fs::path& folder) {
  return message_of([&] {
    const RecordStore store(folder);
    for (std::int64_t i = 0; i < store.size(); ++i) {
      store.about(i);
      Decode{}(store[i]);
    }
  });
}

void flip_bit(const fs::path& file, std::uint64_t offset, int bit) {
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekg(static_cast<std::streamoff>(offset));
  const auto byte = static_cast<char>(stream.get() ^ (1 << bit));
  stream.seekp(static_cast<std::streamoff>(offset));
  stream.put(byte);
}

/// Runs `work` in a child process and returns the process id.
template <class F>
pid_t in_a_process(F work) {
  const auto child = fork();
  if (child == 0) _exit(work());
  return child;
}
int end_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(RecordStore, MatchesFiles) {
  const Packed packed;
  auto data = packed.data;
  const std::vector<std::vector<std::string>> lists = {{}, {"dog"}, {"dog", "cat"}};
  for (const auto& classes : lists)
    for (const bool filter_empty : {true, false}) {
      data.classes = classes;
      data.filter_empty = filter_empty;
      const auto files = open_train_data(data, {});
      const auto records = open_records(data, packed.folder);
      ASSERT_EQ(records.source->size(), files.source->size());
      EXPECT_EQ(digests(*start_train_flow(data, {}, records, 1), 12),
                digests(*start_train_flow(data, {}, files, 1), 12));
    }
}

TEST(RecordStore, MatchesPackedSources) {
  const Packed packed;
  const TinyCoco others(5);
  const auto root = fs::path(packed.data.root);
  const auto both = "{ name = 'a', type = 'coco', root = '" + others.root +
                    "' }, { name = 'b', type = 'records', folder = '" + packed.folder.string() +
                    "' }, { name = 'c', type = 'folder', root = '" + (root / "train2017").string() +
                    "' }, { name = 'all', type = 'concat', of = ['a', 'b', 'c'] }";
  const auto opened = [&](const std::string& more) {
    return open_train_data(packed.data, tables_of("sources = [ " + both + more + " ]"));
  };
  const auto sources = opened("");
  auto data = packed.data;
  data.aspect_grouping = false;
  data.filter_empty = false;
  const auto expected = digests(*start_train_flow(data, {}, sources, 1), 20);
  for (const std::uint64_t shard_bytes : {0, 8192}) {
    const auto folder = root / ("all" + std::to_string(shard_bytes));
    pack_records(*sources.source, sources.classes, folder, {.shard_bytes = shard_bytes});
    EXPECT_EQ(digests(*start_train_flow(data, {}, open_records(data, folder), 1), 20), expected);
  }
  const auto twice = opened(", { type = 'repeat', of = 'all', times = 2 }");
  EXPECT_THROW(pack_records(*twice.source, twice.classes, root / "none"), ConfigError);
  const auto fake = open_train_data(data, tables_of("sources = [{ type = 'fake', count = 2 }]"));
  EXPECT_THAT([&] { pack_records(*fake.source, fake.classes, root / "none"); },
              ThrowsMessage<DataError>(HasSubstr("fake image 1: ")));
}

TEST(RecordStore, MatchesPhotoBatchesForAnyThreadCount) {
  MILLRACE_NEEDS_DATA("coco_mini");
  const Scratch scratch;
  auto data = coco_mini();
  const auto folder = scratch / "packed";
  pack_records(images_of(data), open_split(data, data.train).classes, folder);
  const auto expected = digests(*train_flow(data), 30);
  const auto records = open_records(data, folder);
  for (const int threads : {1, 2, 8}) {
    data.threads = threads;
    EXPECT_EQ(digests(*start_train_flow(data, {}, records, 1), 30), expected) << threads;
  }
}

TEST(RecordStore, NeedsNoImageFiles) {
  const Packed packed;
  auto data = packed.data;
  const auto expected = digests(*train_flow(data), 6);
  const auto moved = fs::path(data.root) / "moved";
  fs::rename(packed.folder, moved);
  fs::remove_all(fs::path(data.root) / "train2017");
  fs::remove_all(fs::path(data.root) / "annotations");
  data.classes = {"cat", "dog"};
  EXPECT_EQ(digests(*start_train_flow(data, {}, open_records(data, moved), 1), 6), expected);
}

TEST(RecordStore, PacksReproducibly) {
  const Packed packed;
  const auto again = fs::path(packed.data.root) / "again";
  pack_records(images_of(packed.data), {"cat", "dog"}, again);
  EXPECT_EQ(read_file(header_file(again)), read_file(header_file(packed.folder)));
  EXPECT_EQ(read_file(records_file(again)), read_file(records_file(packed.folder)));
}

TEST(RecordStore, CanBeReadBySeveralProcesses) {
  const Packed packed;
  std::vector<pid_t> readers;
  for (int i = 0; i < 4; ++i)
    readers.push_back(in_a_process([&] { return read_all(packed.folder).empty() ? 0 : 1; }));
  for (const auto reader : readers) EXPECT_EQ(end_of(reader), 0);
}

TEST(RecordStore, ReportsTruncatedFile) {
  const Packed packed;
  const auto file = records_file(packed.folder);
  const auto length = fs::file_size(file);
  for (const auto left : {length - 1, length / 2, std::uintmax_t{1}, std::uintmax_t{0}}) {
    fs::resize_file(file, left);
    EXPECT_THAT(read_all(packed.folder), AllOf(HasSubstr(file.string()), HasSubstr("truncated")))
        << left;
  }
  fs::remove(file);
  EXPECT_THAT(read_all(packed.folder), HasSubstr(file.string()));
}

TEST(RecordStore, DetectsFlippedBits) {
  const Packed packed;
  Rng rng{7};
  for (int round = 0; round < 400; ++round) {
    const auto file = round % 4 == 0 ? header_file(packed.folder) : records_file(packed.folder);
    const auto offset = rng.below(fs::file_size(file));
    const int bit = static_cast<int>(rng.below(8));
    flip_bit(file, offset, bit);
    EXPECT_THAT(read_all(packed.folder), HasSubstr(file.string())) << "byte " << offset;
    flip_bit(file, offset, bit);
  }
  EXPECT_EQ(read_all(packed.folder), "");
}

/// Changes the header and writes it with a valid checksum.
template <class Change>
void change_header(const fs::path& folder, Change change) {
  const auto file = header_file(folder);
  auto header = read_header(read_file(file), file.string());
  change(header);
  write_header(file, header);
}

TEST(RecordStore, RejectsHeaderRangesOutsideFiles) {
  const TinyCoco files(9);
  const auto folder = fs::path(files.root) / "shards";
  pack_records(images_of(files), {"cat", "dog"}, folder, {.shard_bytes = 8192});
  const auto whole = read_file(header_file(folder));
  const auto rejects = [&](auto change) {
    change_header(folder, change);
    EXPECT_THAT(read_all(folder), HasSubstr(header_file(folder).string()));
    std::ofstream(header_file(folder)) << whole;
  };
  constexpr std::uint64_t kFar = std::uint64_t{1} << 40;
  rejects([](RecordHeader& header) { header.image_begins[4] = kFar; });
  rejects([](RecordHeader& header) { header.image_begins[4] = ~std::uint64_t{0}; });
  rejects([](RecordHeader& header) { header.image_begins.back() = header.shards.back().bytes; });
  rejects([](RecordHeader& header) { header.ends.back() += kFar; });
  rejects([](RecordHeader& header) { header.image_begins.pop_back(); });
  rejects([](RecordHeader& header) { ++header.shards[0].records; });
  rejects([](RecordHeader& header) {
    header.shards[0].records -= kFar;  // the sum is still right modulo 2^64
    header.shards[1].records += kFar;
  });
  EXPECT_EQ(read_all(folder), "");
}

TEST(RecordStore, RejectsShardsOutsideItsFolder) {
  const TinyCoco files(9);
  const auto folder = fs::path(files.root) / "shards";
  pack_records(images_of(files), {"cat", "dog"}, folder, {.shard_bytes = 1 << 20});
  const auto outside = fs::path(files.root) / "outside.tar";
  fs::copy_file(folder / "000000.tar", outside);
  const auto with_shard = [&](const std::string& name, const std::vector<std::string>& shards) {
    change_header(folder, [&](RecordHeader& header) { header.shards[0].name = name; });
    return message_of<ConfigError>([&] { RecordStore(folder, {}, shards); });
  };
  for (const std::string& name :
       {outside.string(), std::string("../outside.tar"), std::string("a/../../outside.tar"),
        std::string("http://127.0.0.1:9/outside.tar")})
    EXPECT_THAT(with_shard(name, {}), HasSubstr("'" + name + "'")) << name;
  EXPECT_THAT(with_shard(outside, {folder.string()}), HasSubstr(outside.string()));
  EXPECT_THAT(with_shard(folder / "../outside.tar", {folder.string()}), Not(IsEmpty()));
  EXPECT_THAT(with_shard("http://a/b/%2E%2e/c.tar", {"http://a/b"}), Not(IsEmpty()));
  EXPECT_THAT(with_shard("http://a.b/c.tar", {"http://a"}), Not(IsEmpty()));
  EXPECT_EQ(with_shard(outside, {files.root}), "");
  EXPECT_EQ(with_shard("000000.tar", {}), "");
}

TEST(RecordStore, ReportsFilesTruncatedDuringReading) {
  const TinyCoco files(9);
  for (const std::uint64_t shard_bytes : {0, 1 << 20}) {
    const auto folder = fs::path(files.root) / std::to_string(shard_bytes);
    pack_records(images_of(files), {"cat", "dog"}, folder, {.shard_bytes = shard_bytes});
    const auto file = shard_bytes == 0 ? records_file(folder) : folder / "000000.tar";
    const RecordStore store(folder);
    EXPECT_EQ(message_of([&] { Decode{}(store[8]); }), "");
    fs::resize_file(file, 100);
    EXPECT_THAT(message_of([&] { Decode{}(store[8]); }), HasSubstr(file.string()));
  }
}

TEST(RecordStore, DescribesSamplesWithoutShapesAndImages) {
  const Packed packed;
  const RecordStore store(packed.folder);
  const auto files = images_of(packed.data);
  ASSERT_EQ(store.size(), files.size());
  for (std::int64_t i = 0; i < store.size(); ++i) {
    const auto about = store.about(i);
    EXPECT_FALSE(about.encoded.owner);
    auto whole = files[i];
    EXPECT_EQ(encode(files.about(i)), encode(without_outlines(whole)));
    whole.path = about.path;
    EXPECT_EQ(encode(about), encode(without_outlines(whole)));
  }
}

TEST(RecordStore, ReportsRecordOfDamagedImage) {
  const TinyCoco options(9);
  const auto picture = options.image(4).string();
  cv::Mat noise = picture_in(picture);
  cv::randu(noise, 0, 256);
  save_picture(picture, noise, 100);
  const auto folder = fs::path(options.root) / "packed";
  pack_records(images_of(options), {"cat", "dog"}, folder);
  const auto file = records_file(folder);
  flip_bit(file, read_file(file).find(read_file(picture)) + 1000, 3);
  EXPECT_THAT(read_all(folder),
              AllOf(HasSubstr(file.string() + " record 4 (picture4.jpg)"), HasSubstr("checksum")));
  const auto flow = start_train_flow(options, {}, open_records(options, folder), 1);
  for (int i = 0; i < 4; ++i) flow->next();
  EXPECT_GT(flow->report().skipped, 0) << "the other images are still usable";
}

TEST(RecordStore, RejectsOtherVersionsAndFiles) {
  const Packed packed;
  const auto header = header_file(packed.folder);
  flip_bit(header, 8, 2);
  EXPECT_THAT(read_all(packed.folder), AllOf(HasSubstr(header.string()), HasSubstr("version 6 "),
                                             HasSubstr("versions 2 and 3")));
  // Version 1 has its records in an LMDB file.
  for (const int bit : {0, 1, 2}) flip_bit(header, 8, bit);
  fs::rename(records_file(packed.folder), packed.folder / "records.mdb");
  EXPECT_THAT(read_all(packed.folder), AllOf(HasSubstr("version 1 "), HasSubstr("pack it again")));
  std::ofstream(header) << "something else altogether, and long enough";
  EXPECT_THAT(read_all(packed.folder), HasSubstr("not the header"));
  fs::remove(header);
  EXPECT_THAT(read_all(packed.folder), HasSubstr("trainer pack"));
  EXPECT_THAT([&] { open_records(packed.data, "no/store"); },
              ThrowsMessage<ConfigError>(HasSubstr("no/store")));
}

TEST(RecordStore, RejectsUnknownClasses) {
  const Packed packed;
  const auto folder = fs::path(packed.data.root) / "cats";
  pack_records(images_of(packed.data), {"cat"}, folder);
  EXPECT_THAT(read_all(folder), AllOf(HasSubstr("record 1: "), HasSubstr("class 1,")));
  auto data = packed.data;
  data.classes = {"horse"};
  EXPECT_THAT([&] { open_records(data, packed.folder); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("test.toml:1:12"), HasSubstr("horse"), HasSubstr("cat, dog"))));
}

/// Kills the process at read number `reads`.
class Deadly final : public Source<Sample> {
 public:
  Deadly(const Source<Sample>& of, int reads) : of_(of), left_(reads) {}
  std::int64_t size() const override { return of_.size(); }
  Sample operator[](std::int64_t index) const override {
    if (--left_ == 0) raise(SIGKILL);
    return of_[index];
  }

 private:
  const Source<Sample>& of_;
  mutable int left_;
};

TEST(Pack, LeavesNoStoreWhenKilled) {
  const TinyCoco files(9);
  const auto source = images_of(files);
  const auto folder = fs::path(files.root) / "packed";
  for (const int reads : {1, 9, 15, 27}) {
    const auto status = end_of(in_a_process([&] {
      pack_records(Deadly(source, reads), {"cat", "dog"}, folder);
      return 0;
    }));
    ASSERT_TRUE(WIFSIGNALED(status)) << reads;
    EXPECT_FALSE(fs::exists(folder));
    EXPECT_THAT(read_all(folder.string() + ".part"), HasSubstr("unfinished"));
  }
  pack_records(source, {"cat", "dog"}, folder);
  EXPECT_EQ(read_all(folder), "");
  EXPECT_FALSE(fs::exists(folder.string() + ".part"));
}

TEST(Pack, ReportsExistingFolder) {
  const Packed packed;
  const auto source = images_of(packed.data);
  EXPECT_THAT(
      [&] {
        pack_records(source, {"cat", "dog"}, packed.folder);
      },
      ThrowsMessage<ConfigError>(HasSubstr("exists")));
  fs::remove(packed.files.image(3));
  const auto folder = fs::path(packed.data.root) / "again";
  EXPECT_THAT(
      [&] {
        pack_records(source, {"cat", "dog"}, folder);
      },
      ThrowsMessage<Error>(HasSubstr(packed.files.image(3).string())));
  EXPECT_FALSE(fs::exists(folder));
}

}  // namespace
}  // namespace millrace
