// A limit of this process and of those that it starts.
#pragma once

#include <sys/resource.h>

namespace millrace::testing {

/// While it lives, `resource` (RLIMIT_AS, RLIMIT_DATA: bytes) is bounded; it may be raised again.
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
