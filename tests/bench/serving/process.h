// Runs a server in a separate process.
#pragma once

#include <sys/types.h>

#include <functional>

namespace millrace::bench {

/// A process that ends with this object or with the process that created it.
class ServingProcess {
 public:
  /// Runs `serve` in the new process. Throws Error if no process can be started.
  explicit ServingProcess(const std::function<void()>& serve);
  ServingProcess(ServingProcess&& other) noexcept;
  ServingProcess& operator=(ServingProcess&&) = delete;
  ~ServingProcess();
  pid_t id() const { return id_; }

 private:
  pid_t id_ = 0;
};

}  // namespace millrace::bench
