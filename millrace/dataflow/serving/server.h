// A data server: gives numbered batches to consumers who ask for them (docs/serving.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "millrace/dataflow/serving/door.h"
#include "millrace/dataflow/serving/messages.h"
#include "millrace/dataflow/serving/shared_memory.h"

namespace millrace::serving {

struct ServerOptions {
  DoorOptions door;
  std::size_t most_consumers = 64;  // each has a flow of its own
  std::shared_ptr<const SharedMemory> memory =
      {};  // of batches; none: they always go through sockets
};

/// What it has done so far.
struct ServerReport {
  std::size_t consumers = 0;  // now
  std::int64_t batches = 0;
  std::int64_t bytes = 0;  // of their pixels
  std::int64_t asked = 0;  // now: not answered yet
};

/// Keeps nothing of a consumer that matters: a stream's batches are functions of their numbers, so that any server of the
/// same data can go on where another one ended. Made and used by one thread.
class BatchServer {
 public:
  /// Listens from now on. Throws ConfigError, Error.
  BatchServer(StartStream start, Facts facts, std::int64_t epoch_size,
              const ServerOptions& options);
  ~BatchServer();

  std::string endpoint() const;
  ServerReport report() const;

  /// Serves as long as `go_on`, which is asked several times a second, says so. Logs how it goes now and then.
  void run(const std::function<bool()>& go_on);

 private:
  class Desk;
  std::unique_ptr<Desk> desk_;
};

}  // namespace millrace::serving
