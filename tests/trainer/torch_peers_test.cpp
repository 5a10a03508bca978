// Compares optimizers and schedules with torch.optim in Python.
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "millrace/base/files.h"
#include "millrace/trainer/optimizer/optimizer.h"
#include "millrace/trainer/optimizer/schedule.h"
#include "tests/support/optimizer_step.h"
#include "tests/support/python.h"
#include "tests/support/scratch.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

/// Returns the output of torch_reference.py.
nlohmann::json torch_reference() {
  const Scratch scratch;
  const auto file = scratch / "reference.json";
  if (run_python("tests/trainer/torch_reference.py " + file.string()) != 0) return {};
  return nlohmann::json::parse(read_file(file));
}

/// Returns the gradient that torch_reference.py uses.
at::Tensor gradient(std::int64_t step) {
  auto values = at::empty({2, 3}, at::kDouble);
  for (std::int64_t i = 0; i < 6; ++i)
    values.data_ptr<double>()[i] = static_cast<double>((step * 7 + i * 3) % 11 - 5) / 4;
  return values;
}

void expect_ten_steps(const nlohmann::json& expected, const OptimizerOptions& options) {
  Parameters parameters;
  const auto value = parameters.add("p", at::tensor({1.0, -2.0, 0.5, 3.0, -0.25, 0.0}).view({2, 3}),
                                    ParameterKind::weight);
  const auto optimizer = make_optimizer(parameters, options);
  ASSERT_EQ(expected.size(), 10U);
  for (std::int64_t step = 0; step < 10; ++step) {
    value.mutable_grad() = gradient(step);
    take_step(*optimizer, 0.1);
    const auto wanted = expected.at(static_cast<std::size_t>(step)).get<std::vector<double>>();
    EXPECT_TRUE(tensors_close(value.detach().flatten(), at::tensor(wanted), 1e-12)) << step;
  }
}

void expect_rates(const nlohmann::json& expected, const ScheduleOptions& options) {
  const Schedule schedule(options, 0.5, 12);
  for (std::int64_t epoch = 0; epoch < 12; ++epoch)
    EXPECT_NEAR(schedule.rate({static_cast<double>(epoch), epoch, epoch}),
                expected.at(static_cast<std::size_t>(epoch)).get<double>(), 1e-12)
        << value_name(options.type) << " " << epoch;
}

TEST(TorchPeers, AgreeOnOptimizersAndSchedules) {
  MILLRACE_NEEDS_PYTHON("torch");
  const auto torch = torch_reference();
  ASSERT_FALSE(torch.is_null());
  expect_ten_steps(torch["sgd"], {.momentum = 0.9, .weight_decay = 0.01});
  expect_ten_steps(torch["nesterov"], {.momentum = 0.8, .nesterov = true, .weight_decay = 0.01});
  expect_ten_steps(torch["adamw"], {.type = OptimizerType::adamw,
                                    .momentum = 0.8,
                                    .beta2 = 0.95,
                                    .epsilon = 1e-6,
                                    .weight_decay = 0.05});
  expect_rates(torch["step"], {.milestones = {8, 11}, .gamma = 0.1, .warmup = "0 steps"});
  expect_rates(torch["cosine"], {.type = ScheduleType::cosine, .warmup = "0 steps"});
  expect_rates(torch["poly"], {.type = ScheduleType::poly, .power = 0.9, .warmup = "0 steps"});
  expect_rates(torch["exponential"],
               {.type = ScheduleType::exponential, .gamma = 0.8, .warmup = "0 steps"});
  expect_rates(torch["warmup"],
               {.type = ScheduleType::constant, .warmup = "5 steps", .warmup_factor = 0.1});
}

}  // namespace
}  // namespace millrace::testing
