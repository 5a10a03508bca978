// Data servers of generated batches: in a thread of the test, and as processes that tests kill.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "millrace/dataflow/serving/remote_flow.h"
#include "millrace/dataflow/serving/server.h"
#include "tests/dataflow/serving/made_batches.h"
#include "tests/support/scratch.h"
#include "tests/support/wait.h"

namespace millrace::testing {

using namespace serving;

/// Runs a data server in a thread during its lifetime, by default on a port chosen by the system.
class ThreadServer {
 public:
  explicit ThreadServer(Making making = {},
                        const ServerOptions& options = {.listen = {.bind = "tcp://127.0.0.1:*"}})
      : ThreadServer(make_batches(making), made_facts(), 100, options) {}
  ThreadServer(StartStream start, Facts facts, std::int64_t epoch_size,
               const ServerOptions& options)
      : server_(std::move(start), std::move(facts), epoch_size, options),
        endpoint_(server_.endpoint()),
        thread_([this] {
          server_.run([this] {
            consumers_ = static_cast<int>(server_.report().consumers);
            return !stop_;
          });
        }) {}
  ~ThreadServer() {
    stop_ = true;
    thread_.join();
  }
  const std::string& endpoint() const { return endpoint_; }
  /// Waits until the server has this number of consumers; returns false after the deadline.
  bool wait_for_consumers(int consumers) const {
    return wait_until([&] { return consumers_ == consumers; });
  }

 private:
  BatchServer server_;
  const std::string endpoint_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> consumers_ = 0;
  std::thread thread_;
};

/// A server process, killed by end() or the destructor.
class ServerProcess {
 public:
  ServerProcess(const std::string& endpoint, Making making) {
    std::vector<std::string> arguments = {MILLRACE_SERVING_SERVER, endpoint,
                                          std::to_string(making.side),
                                          std::to_string(making.time.count())};
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&child_, argv[0], nullptr, nullptr, argv.data(), environ), 0) << argv[0];
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess(ServerProcess&& other) noexcept : child_(std::exchange(other.child_, 0)) {}
  ServerProcess& operator=(ServerProcess&& other) noexcept {
    std::swap(child_, other.child_);
    return *this;
  }
  ~ServerProcess() { end(); }
  /// Kills the process. Afterwards another process can listen on its endpoint.
  void end() {
    if (child_ == 0) return;
    signal(SIGKILL);
    waitpid(std::exchange(child_, 0), nullptr, 0);
  }
  void signal(int number) const { ::kill(child_, number); }
  pid_t pid() const { return child_; }

 private:
  pid_t child_ = 0;
};

/// Endpoints for the servers of one test: Unix sockets in a temporary folder.
class Sockets {
 public:
  std::string endpoint(int k) const { return "ipc://" + file(std::to_string(k)).string(); }
  std::filesystem::path file(const std::string& name) const { return folder_ / name; }

 private:
  Scratch folder_;
};

inline std::unique_ptr<ServedFlow> connect(
    std::vector<std::string> servers, Stream stream = {}, Facts facts = made_facts(),
    std::chrono::seconds timeout = std::chrono::seconds(60)) {
  return connect_flow({.servers = std::move(servers),
                       .stream = std::move(stream),
                       .facts = std::move(facts),
                       .timeout = timeout});
}

/// Returns the digests of the next `count` batches.
inline std::vector<std::uint64_t> next_digests(DataFlow<Batch>& flow, int count) {
  std::vector<std::uint64_t> result;
  while (count-- > 0) result.push_back(digest_of(*flow.next()));
  return result;
}

}  // namespace millrace::testing
