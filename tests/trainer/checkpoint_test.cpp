#include "trainer/checkpoint.h"

#include <ATen/ops/tensor.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/files.h"
#include "tests/tensors.h"
#include "tests/trainer/scratch.h"
#include "trainer/run_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using testing::same;
using testing::Scratch;

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

TEST(Checkpoint, ComesBackAsItWas) {
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
  EXPECT_TRUE(same(read.model.at(0).second, wanted.model.at(0).second));
  EXPECT_TRUE(same(read.optimizer.at(0).second, wanted.optimizer.at(0).second));
  EXPECT_EQ(read.config, wanted.config);
}

TEST(Checkpoint, NoticesAFlippedByteInAnyFile) {
  for (const auto* name :
       {"model.safetensors", "optimizer.safetensors", "state.json", "config.toml"}) {
    const Scratch scratch;
    const auto folder = write_checkpoint(scratch / "c", sample(1));
    flip_a_byte(folder / name);
    EXPECT_THROW(read_checkpoint(folder), Error) << name;
  }
}

TEST(Checkpoint, FallsBackToTheOneBefore) {
  const Scratch scratch;
  write_checkpoint(scratch / "c", sample(99));
  flip_a_byte(write_checkpoint(scratch / "c", sample(100)) / "model.safetensors");
  fs::remove(write_checkpoint(scratch / "c", sample(101)) / "state.json");
  EXPECT_EQ(newest_checkpoint(scratch / "c")->at.step, 99);
}

TEST(Checkpoint, SaysWhereAllAreDamaged) {
  const Scratch scratch;
  flip_a_byte(write_checkpoint(scratch / "c", sample(1)) / "model.safetensors");
  MILLRACE_EXPECT_ERROR(newest_checkpoint(scratch / "c"), scratch / "c", "every checkpoint");
  EXPECT_FALSE(newest_checkpoint(scratch / "none"));
}

TEST(Checkpoint, IgnoresATornWriteAndClearsItAway) {
  const Scratch scratch;
  write_checkpoint(scratch / "c", sample(1));
  fs::create_directories(scratch / "c" / "step-000002.part");
  write_file_atomically(scratch / "c" / "step-000002.part" / "model.safetensors", "half");
  EXPECT_EQ(newest_checkpoint(scratch / "c")->at.step, 1);
  write_checkpoint(scratch / "c", sample(2));
  EXPECT_EQ(newest_checkpoint(scratch / "c")->at.step, 2);
  EXPECT_FALSE(fs::exists(scratch / "c" / "step-000002.part"));
}

TEST(Checkpoint, ReplacesOneOfTheSameStep) {
  const Scratch scratch;
  flip_a_byte(write_checkpoint(scratch / "c", sample(7)) / "model.safetensors");
  write_checkpoint(scratch / "c", sample(7));
  EXPECT_EQ(newest_checkpoint(scratch / "c")->at.step, 7);
  EXPECT_EQ(list_checkpoints(scratch / "c").size(), 1U);
}

TEST(Checkpoint, FallsBackWhereAFileIsCutShortOrMissing) {
  for (const auto* name :
       {"model.safetensors", "optimizer.safetensors", "state.json", "config.toml"}) {
    const Scratch scratch;
    write_checkpoint(scratch / "c", sample(1));
    const auto file = write_checkpoint(scratch / "c", sample(2)) / name;
    fs::resize_file(file, fs::file_size(file) / 2);
    EXPECT_EQ(newest_checkpoint(scratch / "c")->at.step, 1) << name;
    fs::remove(file);
    EXPECT_EQ(newest_checkpoint(scratch / "c")->at.step, 1) << name;
  }
}

TEST(Checkpoint, NeedsNoLinkToTheLatest) {
  const Scratch scratch;
  write_checkpoint(scratch / "c", sample(1));
  fs::remove(scratch / "c" / "latest");
  fs::create_symlink("step-000009", scratch / "c" / "latest");
  EXPECT_EQ(newest_checkpoint(scratch / "c")->at.step, 1);
  write_checkpoint(scratch / "c", sample(2));
  EXPECT_EQ(fs::read_symlink(scratch / "c" / "latest"), "step-000002");
}

TEST(Checkpoint, OfANewerVersionIsNotPassedOver) {
  const Scratch scratch;
  write_checkpoint(scratch / "c", sample(1));
  const auto file = write_checkpoint(scratch / "c", sample(2)) / "state.json";
  auto sealed = nlohmann::json::parse(read_file(file));
  sealed["state"]["format"] = 2;
  const auto text = sealed["state"].dump();
  sealed["digest"] = hex(digest(text.data(), text.size()));
  write_file_atomically(file, sealed.dump());
  MILLRACE_EXPECT_ERROR(newest_checkpoint(scratch / "c"), scratch / "c" / "step-000002",
                        "was written by a newer version (format 2; this one reads 1)");
}

TEST(Checkpoint, SortsByStepBeyondSixDigits) {
  const Scratch scratch;
  write_checkpoint(scratch / "c", sample(1000000));
  write_checkpoint(scratch / "c", sample(999999));
  EXPECT_EQ(newest_checkpoint(scratch / "c")->at.step, 1000000);
}

TEST(RunFolder, NeverTakesAnExistingOne) {
  const Scratch scratch;
  EXPECT_FALSE(newest_run_folder(scratch / "runs"));
  EXPECT_EQ(make_run_folder(scratch / "runs", "a"), scratch / "runs" / "a-1");
  EXPECT_EQ(make_run_folder(scratch / "runs", "b"), scratch / "runs" / "b-2");
  EXPECT_EQ(*newest_run_folder(scratch / "runs"), scratch / "runs" / "b-2");
  const auto file = scratch.file("file", "");
  EXPECT_THROW(make_run_folder(file, "a"), Error);
}

}  // namespace
}  // namespace millrace
