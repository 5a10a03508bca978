#include "millrace/trainer/checkpoint/checkpoint_writer.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>

#include "tests/support/scratch.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;

Checkpoint of(std::int64_t step, const at::Tensor& weights) {
  return {.at = {.step = step},
          .callback_tensors = {{"average", {{"w", weights}}}},
          .model = {{"w", weights}},
          .optimizer = {{"w", weights}}};
}

TEST(CheckpointWriter, CopiesBeforeReturning) {
  const Scratch scratch;
  CheckpointWriter writer(scratch / "c");
  EXPECT_FALSE(writer.collect(/*wait=*/true));
  auto weights = at::zeros({500'000});
  for (const auto step : {1, 2}) {
    weights.fill_(step);
    writer.write(of(step, weights));
    weights.fill_(-1);
    EXPECT_EQ(*writer.collect(/*wait=*/true), checkpoint_of(scratch / "c", step));
    EXPECT_FALSE(writer.collect(/*wait=*/true)) << "once";
  }
  for (const auto step : {1, 2}) {
    const auto read = read_checkpoint(checkpoint_of(scratch / "c", step));
    const auto expected = at::full({500'000}, static_cast<double>(step));
    EXPECT_TRUE(tensors_equal(read.model.at(0).second, expected));
    EXPECT_TRUE(tensors_equal(read.optimizer.at(0).second, expected));
    EXPECT_TRUE(tensors_equal(read.callback_tensors.at("average").at(0).second, expected));
  }
}

TEST(CheckpointWriter, WritesTensorsOfAnyLayout) {
  const Scratch scratch;
  CheckpointWriter writer(scratch / "c");
  auto weights = at::zeros({3, 5, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast);
  weights.select(1, 2).fill_(4);
  writer.write(of(1, weights));
  writer.collect(/*wait=*/true);
  EXPECT_TRUE(tensors_equal(read_checkpoint(scratch / "c" / "latest").model.at(0).second,
                            weights.contiguous()));
}

TEST(CheckpointWriter, FinishesWritingWhenDestroyed) {
  const Scratch scratch;
  CheckpointWriter(scratch / "c").write(of(5, at::zeros({500'000})));
  EXPECT_EQ(newest_checkpoint(scratch / "c")->at.step, 5);
}

TEST(CheckpointWriter, KeepsPreviousCheckpointOnFullDisk) {
  const Scratch scratch;
  write_checkpoint(scratch / "c", of(1, at::zeros({10})));
  const auto child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit most{20'000, 20'000};
    ::setrlimit(RLIMIT_FSIZE, &most);
    CheckpointWriter writer(scratch / "c");
    writer.write(of(2, at::zeros({20'000})));
    std::string why;
    try {
      writer.collect(/*wait=*/true);
    } catch (const Error& problem) {
      why = problem.what();
    }
    ::_exit(why.find("checkpoint of step 2") != std::string::npos &&
                    why.find("File too large") != std::string::npos
                ? 0
                : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(newest_checkpoint(scratch / "c")->at.step, 1);
  EXPECT_FALSE(fs::exists(scratch / "c" / "step-000002.part"));
}

TEST(CheckpointWriter, ReportsRemovedFolder) {
  const Scratch scratch;
  CheckpointWriter writer(scratch / "run" / "checkpoints");
  writer.write(of(1, at::zeros({10})));
  writer.collect(/*wait=*/true);
  fs::remove_all(scratch / "run");
  writer.write(of(2, at::zeros({10})));
  MILLRACE_EXPECT_ERROR(writer.collect(/*wait=*/true), scratch / "run" / "checkpoints", "removed");
  EXPECT_FALSE(fs::exists(scratch / "run"));
}

}  // namespace
}  // namespace millrace::testing
