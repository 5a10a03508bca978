// A data server: sends numbered batches to the consumers that request them (docs/serving.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/recent_rate.h"
#include "millrace/dataflow/engine/dataflow.h"
#include "millrace/dataflow/serving/messages.h"
#include "millrace/dataflow/serving/polling.h"
#include "millrace/dataflow/serving/server_socket.h"
#include "millrace/dataflow/serving/shared_memory.h"

namespace millrace::serving {

/// Starts to make the batches of a stream. Throws ConfigError if that is impossible.
using StartStream =
    std::function<std::unique_ptr<NumberedFlow<Batch>>(const Stream& stream, WakeUp ready)>;

struct ServerOptions {
  ListenOptions listen;
  std::size_t most_consumers = 64;  // each has its own flow
  // Memory of the batches; nullptr = all batches go through sockets.
  std::shared_ptr<const SharedMemory> memory = {};
};

struct ServerReport {
  std::size_t consumers = 0;  // connected now
  std::int64_t batches = 0;
  std::int64_t bytes = 0;  // bytes of their pixels
  std::int64_t asked = 0;  // requested and not yet answered
};

/// Holds no state that must survive: a stream's batches are functions of their numbers, so any
/// server with the same data can take over. For one thread.
class BatchServer {
 public:
  /// Starts to listen. Throws ConfigError, Error.
  BatchServer(StartStream start, Facts facts, std::int64_t epoch_size,
              const ServerOptions& options);

  std::string endpoint() const { return socket_.endpoint(); }
  ServerReport report() const;

  /// Serves while `go_on`, called several times a second, returns true. Logs its progress.
  void run(const std::function<bool()>& go_on);

 private:
  struct Consumer {
    std::string name;
    std::int32_t connection = -1;
    Stream stream;
    std::unique_ptr<NumberedFlow<Batch>> flow;
    std::set<std::int64_t> owed = {};  // requested and not yet answered
    Clock::time_point heard;
    std::int64_t process = 0;  // process with which memory is shared; 0 = none
    // Batches in the socket now.
    std::shared_ptr<std::atomic<int>> sending = std::make_shared<std::atomic<int>>(0);
  };
  /// Shared memory that a consumer may read.
  struct Loan {
    std::int64_t process = 0;
    std::map<std::int64_t, std::shared_ptr<std::uint8_t[]>> pieces;
  };

  template <class Which>
  void forget_if(const char* why, Which which);
  void greet(const std::string& from, std::int32_t connection, const Hello& hello);
  void handle_message(const std::string& from, std::int32_t connection, const Message& message);
  Consumer* known(const std::string& id);
  std::string status() const;
  void send_ready();
  std::optional<SharedPiece> lend(const Consumer& consumer, const Batch& batch);
  void reclaim_loans_except(const std::string& consumer, const std::vector<std::int64_t>& held);
  void take_back_loans();
  bool send(const std::string& to, const Consumer& consumer, const Made<Batch>& made);
  void log_progress(Clock::time_point now);

  const StartStream start_;
  const Facts facts_;
  const std::int64_t epoch_size_;
  const std::size_t most_consumers_;
  const std::shared_ptr<const SharedMemory> memory_;
  const WakeUpCall ready_;
  zmq::context_t context_ = new_context();
  ServerSocket socket_;
  std::map<std::string, Consumer> consumers_;  // by routing id
  std::map<std::string, Loan> loans_;          // by consumer name, since loans outlast a connection
  std::int64_t pieces_ = 0;
  RecentRate images_;
  ServerReport done_, logged_;
  Clock::time_point logged_at_;
};

}  // namespace millrace::serving
