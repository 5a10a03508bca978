// The ways of a batch from one process to another that bench_serving measures.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "millrace/base/clock.h"

namespace millrace::bench {

struct Load {
  std::string way;
  double made = 0;   // batches/s that a server makes; 0: all are ready
  double taken = 0;  // batches/s that a consumer takes; 0: as fast as they come
  int consumers = 1, servers = 1;
};

/// A batch that has come.
struct Taken {
  std::int64_t bytes = 0;
  Clock::time_point ready;  // when its server had it
};

/// Waits for the next batch of one consumer; the last is gone with the next call.
using Take = std::function<Taken()>;

/// A way that is open: servers in processes of their own, which end with this.
struct Way {
  virtual ~Way() = default;
  /// A consumer's connection to all servers; any thread.
  virtual Take connect() = 0;
  virtual std::vector<pid_t> servers() const = 0;
};

/// Data servers by "tcp", "curve" (the same with keys), "ipc" or "shared" memory.
std::unique_ptr<Way> open_data_servers(const Load& load);

/// The floor, "socket": the same pixels by blocking calls of a TCP connection, into as many buffers
/// as a consumer of data servers has. "checked": both ends compute the digest of the pixels as
/// well. One consumer and one server.
std::unique_ptr<Way> open_bare_socket(const Load& load);

}  // namespace millrace::bench
