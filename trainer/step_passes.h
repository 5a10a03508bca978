// Time of the parts of a training step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/trainer/device_numbers.h"
#include "millrace/trainer/training_step.h"

namespace millrace {

/// Measures the passes of one step, whose micro-batches may be computed concurrently.
class StepPasses {
 public:
  enum Kind : std::size_t { forward, backward, sync };

  StepPasses(std::size_t micro_batches, at::DeviceType device)
      : all_(micro_batches), device_(device) {}

  /// Measures one pass of a micro-batch from construction to end(). Without end() it is not
  /// counted.
  class Pass {
   public:
    Pass(StepPasses& of, std::size_t number, Kind kind)
        : passes_(of.all_[number]), kind_(kind), cpu_s_(cpu_seconds()), span_(of.device_) {}
    Pass(const Pass&) = delete;
    void end() {
      span_.end();
      passes_.push_back({kind_, cpu_seconds() - cpu_s_, std::move(span_)});
    }

   private:
    friend class StepPasses;
    struct Done {
      Kind kind;
      double cpu_s;
      DeviceSpan span;
    };

    std::vector<Done>& passes_;
    Kind kind_;
    double cpu_s_;
    DeviceSpan span_;
  };

  /// Ends the measurement of the whole step; call after the last forward or backward pass.
  void end() {
    wall_s_ = seconds_since(began_);
    cpu_s_ = cpu_seconds() - cpu_s_;
  }

  /// Waits for the device and fills in the times of `of`. On the CPU, times of concurrent passes
  /// are scaled so that they do not exceed the wall time; CPU times likewise.
  void fill_times(StepEnd& of) {
    double wall[3] = {}, cpu[3] = {};
    for (auto& passes : all_)
      for (auto& pass : passes) {
        wall[pass.kind] += pass.span.seconds();
        cpu[pass.kind] += pass.cpu_s;
      }
    const auto share = [](double whole, const double(&parts)[3]) {
      const double sum = parts[forward] + parts[backward];
      return sum > whole ? whole / sum : 1;
    };
    const double of_wall = device_ == at::kCPU ? share(wall_s_, wall) : 1;
    const double of_cpu = share(cpu_s_, cpu);
    of.forward_s = wall[forward] * of_wall;
    of.backward_s = wall[backward] * of_wall;
    of.sync_s = wall[sync];
    of.forward_cpu_s = cpu[forward] * of_cpu;
    of.backward_cpu_s = cpu[backward] * of_cpu;
  }

 private:
  std::vector<std::vector<Pass::Done>> all_;  // finished passes by micro-batch
  at::DeviceType device_;
  Clock::time_point began_ = Clock::now();
  double wall_s_ = 0, cpu_s_ = cpu_seconds();  // times of all passes together
};

}  // namespace millrace
