// The transports between processes that bench_serving measures.
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
  std::string transport;
  double made = 0;   // batches/s that a server makes; 0 = all are ready
  double taken = 0;  // batches/s that a consumer takes; 0 = full speed
  int consumers = 1, servers = 1;
};

/// A received batch.
struct Taken {
  std::int64_t bytes = 0;
  Clock::time_point ready;  // when it became ready in its server
};

/// Waits for the next batch of one consumer. The batch is released by the next call.
using Take = std::function<Taken()>;

/// An open transport: servers in separate processes, which end with this object.
struct Transport {
  virtual ~Transport() = default;
  /// Connects a consumer to all servers. May be called on any thread.
  virtual Take connect() = 0;
  virtual std::vector<pid_t> servers() const = 0;
};

/// Starts data servers on "tcp", "curve" (tcp with keys), "ipc" or "shared" memory.
std::unique_ptr<Transport> open_data_servers(const Load& load);

/// Opens the lower bound, "socket": sends the same pixels with blocking calls over a TCP
/// connection, with as many buffers as a data server's consumer has. With "checked", both ends also
/// compute the digest of the pixels. Supports one consumer and one server.
std::unique_ptr<Transport> open_bare_socket(const Load& load);

}  // namespace millrace::bench
