#include "millrace/dataflow/serving/status.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

#include "millrace/base/process/process_usage.h"

namespace millrace::serving {
namespace {

constexpr std::size_t kMostWork = 4;

std::atomic<std::int64_t> received_here = 0;

}  // namespace

nlohmann::ordered_json process_status() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const auto memory = rss_bytes();  // may exceed the reported peak by some pages
  return {{"host", host.data()},
          {"process", ::getpid()},
          {"cpu_s", cpu_seconds()},
          {"memory_bytes", memory},
          {"memory_peak_bytes", std::max(memory, peak_rss_bytes())}};
}

nlohmann::ordered_json work_status(const FlowReport& flow) {
  auto work = nlohmann::ordered_json::array();
  for (const auto& [stage, sample, seconds] : flow.in_work) {
    if (work.size() == kMostWork) break;
    work.push_back({{"stage", stage}, {"sample", sample}, {"for_s", seconds}});
  }
  return work;
}

std::int64_t received_bytes() { return received_here; }
void count_received(std::int64_t bytes) { received_here += bytes; }

std::string status_text(const nlohmann::ordered_json& status) {
  return status.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace millrace::serving
