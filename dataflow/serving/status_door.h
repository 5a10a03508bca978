// Answers who asks a process for its status.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <zmq.hpp>

#include "millrace/dataflow/serving/context.h"
#include "millrace/dataflow/serving/door.h"
#include "millrace/dataflow/serving/polling.h"

namespace millrace::serving {

/// A thread of its own, which sleeps until it is asked. It answers whatever other threads do, as
/// long as the process runs and `status` returns.
class StatusDoor {
 public:
  /// `name`: of this process, see AskStatus::of. `status` and `events`: each the JSON of an object;
  /// called in the thread. Throws ConfigError, Error if nothing can be listened at.
  StatusDoor(const DoorOptions& door, std::string name, std::function<std::string()> status,
             std::function<std::string()> events);
  ~StatusDoor();
  StatusDoor(const StatusDoor&) = delete;

  const std::string& endpoint() const { return endpoint_; }

 private:
  void run();
  void hear(const std::string& from, const Message& message);

  const std::string name_;
  const std::function<std::string()> status_, events_;
  const WakeUpCall ended_;
  std::atomic<bool> stop_ = false;
  zmq::context_t context_ = new_context();
  Door door_;  // of the thread, once that runs
  const std::string endpoint_;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace millrace::serving
