// A training run of a LineDetector whose callbacks are std::functions.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "tests/support/fake_training.h"
#include "tests/support/scratch.h"
#include "tests/support/thrown.h"

namespace millrace::testing {

/// A training run to which LambdaCallbacks can be added.
struct Fixture {
  Scratch scratch;
  LineDetector model;
  TrainPlan plan = fake_plan(model, scratch / "run");
  CallbackList callbacks;

  LambdaCallback& add(std::string name = "test") {
    auto callback = std::make_unique<LambdaCallback>();
    auto& reference = *callback;
    callbacks.add(std::move(name), std::move(callback));
    return reference;
  }
  TrainEnd run() { return Trainer(plan, std::move(callbacks)).run(); }
  std::string failure() {
    return message_of<std::exception>([&] { run(); });
  }
};

}  // namespace millrace::testing
