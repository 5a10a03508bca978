#include "millrace/trainer/checkpoint/checkpoint.h"

#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include <nlohmann/json.hpp>

#include "millrace/base/digest.h"
#include "millrace/base/files.h"
#include "millrace/models/weights/formats.h"
#include "millrace/models/weights/sealed_folder.h"
#include "millrace/trainer/checkpoint/checkpoint_holds.h"
#include "millrace/trainer/run/run_folder.h"
#include "tests/support/reflink_disk.h"
#include "tests/support/scratch.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;

Checkpoint sample(std::int64_t step) {
  Checkpoint checkpoint;
  checkpoint.at = {.step = step,
                   .progress = 1.0 / 3 * static_cast<double>(step),
                   .images = 4 * step,
                   .bad_steps = 2,
                   .bad_in_a_row = 1,
                   .cursor = {.next = 40, .pending = {31, 38}}};
  checkpoint.seed = ~std::uint64_t{0};
  checkpoint.epoch_size = 40;
  checkpoint.classes = {"star", "Füße"};
  checkpoint.callbacks = {{"log", R"({"loss":[0.1,3]})"}};
  checkpoint.model = {{"w", at::tensor({1.5F, -2.0F})}};
  checkpoint.optimizer = {{"w", at::tensor({0.25F, 8.0F})}};
  checkpoint.config = "[train]\nseed = 1\n";
  return checkpoint;
}

void flip_a_byte(const fs::path& file) {
  auto bytes = read_file(file);
  bytes[bytes.size() / 2] ^= 1;
  write_file_atomically(file, bytes);
}

TEST(Checkpoint, RoundTrips) {
  const Scratch scratch;
  const auto folder = write_checkpoint(scratch / "c", sample(500));
  EXPECT_EQ(folder, scratch / "c" / "step-000500");
  const auto read = read_checkpoint(scratch / "c" / "latest");
  const auto wanted = sample(500);
  EXPECT_EQ(read.at.step, 500);
  EXPECT_EQ(read.at.progress, wanted.at.progress);
  EXPECT_EQ(read.at.images, 2000);
  EXPECT_EQ(read.at.bad_steps, 2);
  EXPECT_EQ(read.at.bad_in_a_row, 1);
  EXPECT_EQ(read.at.cursor, wanted.at.cursor);
  EXPECT_EQ(read.seed, wanted.seed);
  EXPECT_EQ(read.epoch_size, 40);
  EXPECT_EQ(read.classes, wanted.classes);
  EXPECT_EQ(read.callbacks, wanted.callbacks);
  EXPECT_TRUE(tensors_equal(read.model.at(0).second, wanted.model.at(0).second));
  EXPECT_TRUE(tensors_equal(read.optimizer.at(0).second, wanted.optimizer.at(0).second));
  EXPECT_EQ(read.config, wanted.config);
}

TEST(Checkpoint, SharesUnchangedBlocks) {
  const ReflinkDisk disk;
  if (!disk.ready()) GTEST_SKIP() << "needs root, mkfs.xfs and a loop device";
  auto checkpoint = sample(9);
  checkpoint.metadata = {{"detector", "maskrcnn"}};
  checkpoint.model = {{"frozen", at::randn({4 << 20})}, {"trained", at::randn({1 << 18})}};
  write_checkpoint(disk.path() / "c", checkpoint);
  const auto used = disk.used();
  checkpoint.at.step = 100000;  // makes the header longer
  checkpoint.model.at(1).second.add_(1);
  const auto folder = write_checkpoint(disk.path() / "c", checkpoint);
  EXPECT_LT(disk.used() - used, std::uint64_t{2} << 20) << "of 17 MiB, of which 1 MiB is trained";
  EXPECT_TRUE(
      tensors_equal(read_checkpoint(folder).model.at(0).second, checkpoint.model.at(0).second));
}

TEST(Checkpoint, FallsBackToOlderIfDamaged) {
  for (const auto* name :
       {"model.safetensors", "optimizer.safetensors", "state.json", "config.toml"}) {
    const Scratch scratch;
    write_checkpoint(scratch / "c", sample(99));
    const auto newest = write_checkpoint(scratch / "c", sample(100));
    const auto file = newest / name;
    const std::function<void()> damages[] = {
        [&] { flip_a_byte(file); }, [&] { fs::resize_file(file, fs::file_size(file) / 2); },
        [&] { fs::remove(file); }};
    for (const auto& damage : damages) {
      damage();
      EXPECT_THROW(read_checkpoint(newest), Error) << name;
      EXPECT_EQ(newest_checkpoint(scratch / "c")->at.step, 99) << name;
    }
    flip_a_byte(write_checkpoint(scratch / "c", sample(99)) / name);
    write_checkpoint(scratch / "c", sample(98));
    EXPECT_EQ(newest_checkpoint(scratch / "c")->at.step, 98) << name << " of both";
  }
}

TEST(Checkpoint, ReportsIfAllAreDamaged) {
  const Scratch scratch;
  flip_a_byte(write_checkpoint(scratch / "c", sample(1)) / "model.safetensors");
  MILLRACE_EXPECT_ERROR(newest_checkpoint(scratch / "c"), scratch / "c", "damaged");
  MILLRACE_EXPECT_ERROR(newest_checkpoint(scratch / "c"), scratch / "c", "--resume");
  EXPECT_FALSE(newest_checkpoint(scratch / "none"));
}

TEST(Checkpoint, RemovesIncompleteCheckpoint) {
  const Scratch scratch;
  write_checkpoint(scratch / "c", sample(1));
  fs::create_directories(scratch / "c" / "step-000002.part");
  write_file_atomically(scratch / "c" / "step-000002.part" / "model.safetensors", "half");
  EXPECT_EQ(newest_checkpoint(scratch / "c")->at.step, 1);
  write_checkpoint(scratch / "c", sample(2));
  EXPECT_EQ(newest_checkpoint(scratch / "c")->at.step, 2);
  EXPECT_FALSE(fs::exists(scratch / "c" / "step-000002.part"));
}

TEST(Checkpoint, ReplacesCheckpointOfSameStep) {
  const Scratch scratch;
  flip_a_byte(write_checkpoint(scratch / "c", sample(7)) / "model.safetensors");
  write_checkpoint(scratch / "c", sample(7));
  EXPECT_EQ(newest_checkpoint(scratch / "c")->at.step, 7);
  EXPECT_EQ(list_checkpoints(scratch / "c").size(), 1U);
}

TEST(Checkpoint, IsFoundWithoutLatestLink) {
  const Scratch scratch;
  write_checkpoint(scratch / "c", sample(1));
  fs::remove(scratch / "c" / "latest");
  fs::create_symlink("step-000009", scratch / "c" / "latest");
  EXPECT_EQ(newest_checkpoint(scratch / "c")->at.step, 1);
  write_checkpoint(scratch / "c", sample(2));
  EXPECT_EQ(fs::read_symlink(scratch / "c" / "latest"), "step-000002");
  fs::remove(scratch / "c" / "latest");
  // The process was killed before it moved the link.
  fs::create_symlink("step-000001", scratch / "c" / "latest");
  fs::create_symlink("step-000002", scratch / "c" / "latest.part");
  newest_checkpoint(scratch / "c");
  EXPECT_EQ(fs::read_symlink(scratch / "c" / "latest"), "step-000002");
}

TEST(Checkpoint, ReportsDamagedState) {
  const Scratch scratch;
  const auto folder = write_checkpoint(scratch / "c", sample(1));
  const auto whole = read_file(folder / "state.json");
  const auto sealed = [](const nlohmann::json& state) {
    const auto text = state.dump();
    return nlohmann::json{{"digest", hex(digest(text.data(), text.size()))}, {"state", state}}
        .dump();
  };
  auto lacking = nlohmann::json::parse(whole).at("state");
  lacking.erase("cursor");
  auto wrong = nlohmann::json::parse(whole).at("state");
  wrong["step"] = "ten";
  for (const auto& [text, why] :
       std::map<std::string, std::string>{{"", "state.json"},
                                          {whole.substr(0, whole.size() / 2), "state.json"},
                                          {"[1, 2]", "state.json"},
                                          {std::string("\xff\xfe\0", 3), "state.json"},
                                          {"{\"digest\": 3, \"state\": {}}", "state.json"},
                                          {sealed(lacking), "state.json: key 'cursor'"},
                                          {sealed(wrong), "state.json: type"}}) {
    write_file_atomically(folder / "state.json", text);
    MILLRACE_EXPECT_ERROR(read_checkpoint(folder), folder, "damaged");
    MILLRACE_EXPECT_ERROR(read_checkpoint(folder), folder, why);
    try {
      read_checkpoint(folder);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("json.exception")));
    }
  }
}

TEST(Checkpoint, IsWrittenIfLatestLinkIsBlocked) {
  const Scratch scratch;
  fs::create_directories(scratch / "c" / "latest" / "mine");
  write_checkpoint(scratch / "c", sample(1));
  EXPECT_EQ(newest_checkpoint(scratch / "c")->at.step, 1);
  EXPECT_TRUE(fs::is_directory(scratch / "c" / "latest" / "mine"))
      << "the user's folder is not removed";
  EXPECT_FALSE(fs::is_symlink(scratch / "c" / "latest.part"));
  fs::remove_all(scratch / "c" / "latest");
  fs::create_symlink("latest", scratch / "c" / "latest");
  write_checkpoint(scratch / "c", sample(2));
  EXPECT_EQ(fs::read_symlink(scratch / "c" / "latest"), "step-000002")
      << "a link cycle is replaced";
}

TEST(Checkpoint, ContainsMetadataInAllWeightFiles) {
  const Scratch scratch;
  auto checkpoint = sample(1);
  checkpoint.metadata = {{"kind", "of weights"}};
  checkpoint.callback_tensors = {{"average_weights", checkpoint.model}};
  const auto folder = write_checkpoint(scratch / "c", checkpoint);
  for (const auto* name : {"model.safetensors", "callback.average_weights.safetensors"}) {
    Metadata metadata;
    const auto tensors = read_safetensors(folder / name, &metadata);
    EXPECT_EQ(metadata.at("kind"), "of weights") << name;
    EXPECT_TRUE(check_content_digest(metadata, tensors)) << name;
  }
  EXPECT_TRUE(read_metadata(folder / "optimizer.safetensors").empty());
}

TEST(Checkpoint, ChecksSingleFiles) {
  const Scratch scratch;
  const auto folder = write_checkpoint(scratch / "c", sample(1));
  const auto file = folder / "model.safetensors";
  check_file_of_checkpoint(file);
  flip_a_byte(file);
  MILLRACE_EXPECT_ERROR(check_file_of_checkpoint(file), folder, "model.safetensors");
  fs::copy_file(file, scratch / "model.safetensors");
  // Outside a checkpoint there is no checksum to compare with.
  check_file_of_checkpoint(scratch / "model.safetensors");
}

TEST(Checkpoint, RejectsNewerVersion) {
  const Scratch scratch;
  write_checkpoint(scratch / "c", sample(1));
  const auto file = write_checkpoint(scratch / "c", sample(2)) / "state.json";
  auto sealed = nlohmann::json::parse(read_file(file));
  sealed["state"]["format"] = 2;
  const auto text = sealed["state"].dump();
  sealed["digest"] = hex(digest(text.data(), text.size()));
  write_file_atomically(file, sealed.dump());
  MILLRACE_EXPECT_ERROR(newest_checkpoint(scratch / "c"), scratch / "c" / "step-000002",
                        "newer version (format 2;");
}

TEST(Checkpoint, SortsByStepBeyondSixDigits) {
  const Scratch scratch;
  write_checkpoint(scratch / "c", sample(1000000));
  write_checkpoint(scratch / "c", sample(999999));
  EXPECT_EQ(newest_checkpoint(scratch / "c")->at.step, 1000000);
}

TEST(CheckpointHolds, LastUntilAllHandlesAreReleased) {
  CheckpointHolds holds;
  auto one = holds.hold(3), other = holds.hold(3);
  EXPECT_TRUE(holds.is_held(3));
  EXPECT_FALSE(holds.is_held(2));
  one.reset();
  EXPECT_TRUE(holds.is_held(3));
  other.reset();
  EXPECT_FALSE(holds.is_held(3));
}

TEST(CheckpointHolds, LastUntilNewerCheckpointIsComplete) {
  CheckpointHolds holds;
  auto hold = holds.hold(3);
  holds.on_taken();
  hold.reset();
  holds.on_written();
  EXPECT_TRUE(holds.is_held(3))
      << "a process that resumes from the newest checkpoint requests it again";
  holds.on_taken();
  EXPECT_TRUE(holds.is_held(3)) << "the next checkpoint may never be completed";
  holds.on_written();
  EXPECT_FALSE(holds.is_held(3));
}

TEST(RunFolder, NeverReusesExistingFolder) {
  const Scratch scratch;
  EXPECT_EQ(make_run_folder(scratch / "runs", "a"), scratch / "runs" / "a-1");
  std::filesystem::create_directory(scratch / "runs" / "a-7");
  std::filesystem::create_directory(scratch / "runs" / "a-20240101-old");
  EXPECT_EQ(make_run_folder(scratch / "runs", "a"), scratch / "runs" / "a-8");
  EXPECT_EQ(make_run_folder(scratch / "runs", "b"), scratch / "runs" / "b-1")
      << "each name has its own numbers";
  const auto file = scratch.file("file", "");
  EXPECT_THROW(make_run_folder(file, "a"), Error);
}

}  // namespace
}  // namespace millrace::testing
