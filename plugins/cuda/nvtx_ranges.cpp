// Exports this process's events (stages, steps, callbacks, exchanges, ...) as NVTX ranges for
// Nsight Systems. Without a profiler, each event costs a call that returns at once.
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include "millrace/base/events/event_ring.h"
#include "millrace/base/registry.h"

namespace millrace {
namespace {

/// Process ranges instead of thread ranges, since events may end in any order and on another
/// thread.
std::uint64_t begin(const EventRecord& event) {
  const auto text = fmt::format("{}: {}", event.name.data(), event.detail.data());
  nvtxEventAttributes_t range{};
  range.version = NVTX_VERSION;
  range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  range.category = static_cast<std::uint32_t>(event.kind) + 1;
  range.messageType = NVTX_MESSAGE_TYPE_ASCII;
  range.message.ascii = text.c_str();
  return nvtxRangeStartEx(&range);
}

void end(std::uint64_t range) { nvtxRangeEnd(range); }

constexpr EventWatcher kRanges{begin, end};

MILLRACE_REGISTER((watch_events(&kRanges), true));

}  // namespace
}  // namespace millrace
