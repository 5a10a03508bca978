// Records of steps whose loss or gradient was not finite.
#include "millrace/trainer/failed_steps.h"

#include <ATen/ops/tensor.h>

#include <cmath>
#include <limits>

#include "millrace/base/files.h"
#include "millrace/models/detector/restore.h"
#include "tests/support/fake_training.h"
#include "tests/support/scratch.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;

StepRecord record() {
  StepRecord record{.info = {.seed = ~std::uint64_t{0}, .step = 122},
                    .lr = 0.1,
                    .loss_scale = {.factor = 512, .good_steps = 7},
                    .hyper = {{"lr_factor", 0.5}},
                    .scalars = {{"fit", std::numeric_limits<double>::infinity()},
                                {"odd", std::nan("")},
                                {"size", 1.0 / 3}},
                    .rejected = "the loss 'fit' is inf",
                    .classes = {"star"},
                    .config = "[train]\n",
                    .model = {{"w", at::tensor({1.5F, -2.0F})}}};
  for (const int id : {5, 6}) {
    auto& batch = record.batches.emplace_back();
    batch.width = 2, batch.height = 1;
    batch.images = {{.image_id = id, .width = 2, .height = 1}};
    batch.objects.resize(1);
    batch.pixels = std::make_shared<std::uint8_t[]>(6);
    for (int i = 0; i < 6; ++i) batch.pixels[i] = static_cast<std::uint8_t>(id * i);
  }
  return record;
}

TEST(StepRecord, RoundTrips) {
  const Scratch scratch;
  const auto folder = write_step_record(scratch / "diverged", record());
  EXPECT_EQ(folder, scratch / "diverged" / "step-000123");
  write_step_record(scratch / "diverged", record());  // overwrites it
  const auto read = read_step_record(folder);
  EXPECT_EQ(read.info.seed, ~std::uint64_t{0});
  EXPECT_EQ(read.info.step, 122);
  EXPECT_EQ(read.lr, 0.1);
  EXPECT_EQ(read.loss_scale.factor, 512);
  EXPECT_EQ(read.loss_scale.good_steps, 7);
  EXPECT_EQ(read.hyper, record().hyper);
  EXPECT_EQ(read.scalars[0].value, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(read.scalars[1].value));
  EXPECT_EQ(read.scalars[2], record().scalars[2]);
  EXPECT_EQ(read.rejected, record().rejected);
  EXPECT_EQ(read.classes, record().classes);
  EXPECT_EQ(read.config, record().config);
  EXPECT_TRUE(tensors_equal(read.model.at(0).second, record().model.at(0).second));
  ASSERT_EQ(read.batches.size(), 2U);
  for (const auto i : {0, 1}) EXPECT_EQ(digest(read.batches[i]), digest(record().batches[i]));
}

TEST(StepRecord, SupportsManyBatches) {
  const Scratch scratch;
  auto many = record();
  while (many.batches.size() < 300) many.batches.push_back(many.batches[many.batches.size() % 2]);
  const auto folder = write_step_record(scratch / "diverged", many);
  EXPECT_EQ(read_step_record(folder).batches.size(), 300U);

  auto text = read_file(folder / "record.json");
  text.replace(text.find("300"), 3, "-30");
  write_file_atomically(folder / "record.json", text);
  MILLRACE_EXPECT_ERROR(read_step_record(folder), folder, "-30");
}

TEST(StepRecord, ReportsMissingOrDamagedFile) {
  const Scratch scratch;
  for (const auto* name : {"record.json", "model.safetensors", "batch-1.msgpack", "batch-0.rgb"}) {
    const auto folder = write_step_record(scratch / "diverged", record());
    auto bytes = read_file(folder / name);
    write_file_atomically(folder / name, bytes.substr(0, bytes.size() / 2));
    EXPECT_THROW(read_step_record(folder), Error) << name;
    fs::remove(folder / name);
    MILLRACE_EXPECT_ERROR(read_step_record(folder), folder / name, "No such file");
  }
  MILLRACE_EXPECT_ERROR(read_step_record(scratch / "no"), scratch / "no", "record of a step");
}

TEST(StepRecord, RecordsFirstThreeBadSteps) {
  const Scratch scratch;
  LineDetector model;
  model.bad_from = 4;
  model.bad_until = 9;
  auto plan = fake_plan(model, scratch / "run");
  plan.train.max_steps = 10;
  std::vector<at::Tensor> before;
  const auto end_of_run = train(plan, [&](LambdaCallback& c) {
    c.on_before_step = [&](const TrainState& s) {
      before.push_back(named_values(s.model).at(0).second.clone());
    };
  });
  EXPECT_EQ(end_of_run.at.bad_steps, 5);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(scratch / "run" / "diverged"))
    names.push_back(entry.path().filename());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("step-000005", "step-000006", "step-000007"));

  const auto read = read_step_record(scratch / "run" / "diverged" / "step-000005");
  EXPECT_EQ(read.info.step, 4);
  EXPECT_EQ(read.rejected, "the loss 'fit' is inf");
  EXPECT_TRUE(tensors_equal(read.model.at(0).second, before.at(4)));
  LineDetector again;
  again.bad_from = 4;
  again.bad_until = 9;
  restore(again, read.model);
  auto scale = read.loss_scale;
  const auto end =
      TrainingStep(again, plan.train, plan.optimizer)(read.batches, read.info, read.lr, scale);
  EXPECT_EQ(end.rejected, read.rejected);
  EXPECT_EQ(end.scalars, read.scalars);
}

TEST(StepRecord, DoesNotEndTrainingIfUnwritable) {
  const Scratch scratch;
  LineDetector model;
  model.bad_from = 2;
  model.bad_until = 3;
  const auto plan = fake_plan(model, scratch.file("run", "a file where a folder should be"));
  EXPECT_EQ(Trainer(plan, {}).run().at.step, 15);
}

}  // namespace
}  // namespace millrace::testing
