// A data server: gives numbered batches to consumers who ask for them (docs/serving.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/dataflow/serving/door.h"
#include "millrace/dataflow/serving/messages.h"
#include "millrace/dataflow/serving/shared_memory.h"
#include "millrace/dataflow/serving/stream.h"
#include "millrace/dataflow/serving/wake_up_call.h"

namespace millrace::serving {

struct ServerOptions {
  DoorOptions door;
  std::size_t most_consumers = 64;  // each has a flow of its own
  /// Where batches lie; none: they always go through sockets.
  std::shared_ptr<const SharedMemory> memory = {};
};

/// What it has done so far.
struct ServerReport {
  std::size_t consumers = 0;  // now
  std::int64_t batches = 0;
  std::int64_t bytes = 0;  // of their pixels
  std::int64_t asked = 0;  // now: not answered yet
};

/// Keeps nothing of a consumer that matters: a stream's batches are functions of their numbers, so
/// that any server of the same data can go on where another one ended. Made and used by one thread.
class BatchServer {
 public:
  /// Listens from now on. Throws ConfigError, Error.
  BatchServer(StartStream start, Facts facts, std::int64_t epoch_size,
              const ServerOptions& options);

  std::string endpoint() const { return door_.endpoint(); }
  ServerReport report() const;

  /// Serves as long as `go_on`, which is asked several times a second, says so. Logs how it goes
  /// now and then.
  void run(const std::function<bool()>& go_on);

 private:
  struct Consumer {
    std::string name;
    std::int32_t connection = -1;
    Stream stream;
    std::unique_ptr<NumberedFlow<Batch>> flow;
    std::size_t asked = 0;
    Clock::time_point heard;
    std::int64_t process = 0;  // with which memory is shared; 0: with none
    std::shared_ptr<std::atomic<int>> sending = std::make_shared<std::atomic<int>>(0);  // now
  };
  /// Pieces of shared memory that a consumer may look at.
  struct Loan {
    std::int64_t process = 0;
    std::map<std::int64_t, std::shared_ptr<std::uint8_t[]>> pieces;
  };

  template <class Which>
  void forget_if(const char* why, Which which);
  bool receive();
  void hear(const std::string& from, std::int32_t connection, const Hello& hello);
  void hear(const std::string& from, std::int32_t connection, const Ask& ask);
  void hear(const std::string& from, std::int32_t connection, const Ping& ping);
  void hear(const std::string& from, std::int32_t connection, const Release& release);
  void hear(const std::string& from, std::int32_t connection, const Bye& bye);
  void hear(const std::string& from, std::int32_t connection, const auto& other);
  void turn_away(const std::string& id, const char* reason, const std::string& name,
                 Refusal refusal);
  Consumer* known(const std::string& id);
  void send_ready();
  std::optional<SharedPiece> lend(const Consumer& consumer, const Batch& batch);
  void keep_loans(const std::string& consumer, const std::vector<std::int64_t>& held);
  void take_back_loans();
  bool send(const std::string& to, const Consumer& consumer, const Made<Batch>& made);
  bool send(const std::string& to, Message message, zmq::send_flags flags = zmq::send_flags::none);
  void tell(Clock::time_point now);

  const StartStream start_;
  const Facts facts_;
  const std::int64_t epoch_size_;
  const std::size_t most_consumers_;
  const std::shared_ptr<const SharedMemory> memory_;
  const WakeUpCall ready_;
  zmq::context_t context_;
  Door door_;
  std::map<std::string, Consumer> consumers_;  // by routing id
  std::map<std::string, Loan> loans_;          // by the consumer's name: they outlast a connection
  std::int64_t pieces_ = 0;
  ServerReport done_, told_;
  Clock::time_point told_at_;
};

}  // namespace millrace::serving
