#include "millrace/dataflow/serving/context.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <filesystem>
#include <iterator>

#include "millrace/base/errors.h"

namespace millrace::serving {

zmq::context_t new_context() {
  constexpr rlim_t kNeeded = 32;  // files of its threads and of a few connections
  namespace fs = std::filesystem;
  std::error_code unknown;
  const auto open = static_cast<rlim_t>(
      std::distance(fs::directory_iterator("/proc/self/fd", unknown), fs::directory_iterator()));
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      open + kNeeded > limit.rlim_cur)
    throw ConfigError(fmt::format(
        "{} of at most {} files are open, and sockets need up to {} more: raise the limit (ulimit "
        "-n 1024)",
        open, limit.rlim_cur, kNeeded));
  return {};
}

}  // namespace millrace::serving
