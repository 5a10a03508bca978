#include "millrace/trainer/validation_pass.h"

#include <chrono>
#include <utility>

namespace millrace {
namespace {

constexpr auto kCancelPeriod = std::chrono::milliseconds(50);

}  // namespace

bool go_through(std::unique_ptr<DataFlow<Batch>> flow, const PassWatch& watch,
                const std::function<bool(const Batch&)>& take) {
  for (;;) {
    if (watch.cancelled()) {
      if (watch.leftovers) watch.leftovers->add(std::move(flow));
      return false;
    }
    if (!flow->is_ready(kCancelPeriod)) continue;
    const auto batch = flow->next();
    if (!batch) return true;
    const bool wants_more = take(batch->value);
    watch.moves();
    if (!wants_more) return true;
  }
}

}  // namespace millrace
