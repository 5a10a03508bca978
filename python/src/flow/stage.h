// Python functions as stages of a flow: [[data.stages]] type = "python".
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace millrace::python {

/// The functions of one flow and the exceptions that they raised. Use and destroy it with the GIL
/// held.
struct Functions {
  std::vector<nanobind::object> all;  // function k belongs to the k-th "python" table
  /// Exceptions, each with the text that the flow's error message contains.
  std::vector<std::pair<std::string, nanobind::object>> raised;
};
using FunctionsPtr = std::shared_ptr<Functions>;

/// During its lifetime, flows that this thread starts use these functions for "python" tables.
class ScopedFunctions {
 public:
  explicit ScopedFunctions(FunctionsPtr functions);
  ~ScopedFunctions();
  ScopedFunctions(const ScopedFunctions&) = delete;

 private:
  FunctionsPtr before_;
};

}  // namespace millrace::python
