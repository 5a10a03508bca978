#include "millrace/trainer/phase.h"

#include <fmt/format.h>

#include "millrace/base/process/process_usage.h"
#include "millrace/trainer/activity.h"

namespace millrace {

Phase::Phase(TrainState& state, double Spent::*part, const std::string& place,
             const std::string& what)
    : state_(state), part_(part), cpu_s_(cpu_seconds()) {
  if (!place.empty()) state.activity->begin(place, what);
}

Phase::Phase(TrainState& state, const std::string& callback, const char* hook)
    : state_(state), part_(&Spent::callbacks_s), callback_(callback), cpu_s_(cpu_seconds()) {
  state.activity->begin("callback " + callback, fmt::format("callback '{}' in {}", callback, hook));
}

Phase::~Phase() {
  const auto add = [&](Spent& spent, double seconds) {
    spent.*part_ += seconds;
    if (!callback_.empty()) spent.by_callback[callback_] += seconds;
  };
  add(state_.spent, seconds_since(began_));
  add(state_.spent_cpu, cpu_seconds() - cpu_s_);
}

}  // namespace millrace
