// A resource limit of this process and its child processes.
#pragma once

#include <sys/resource.h>

namespace millrace::testing {

/// Lowers the soft limit of `resource` (RLIMIT_AS, RLIMIT_DATA; in bytes) during its lifetime and
/// restores it afterwards.
class Limited {
 public:
  Limited(__rlimit_resource resource, rlim_t most) : resource_(resource) {
    getrlimit(resource, &before_);
    const rlimit limit{most, before_.rlim_max};
    setrlimit(resource, &limit);
  }
  Limited(const Limited&) = delete;
  ~Limited() { setrlimit(resource_, &before_); }

 private:
  __rlimit_resource resource_;
  rlimit before_{};
};

}  // namespace millrace::testing
