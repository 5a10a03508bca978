// Functions of Python as stages of a flow: [[data.stages]] type = "python".
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace millrace::python {

/// The functions of one flow, and what they have raised. Used and destroyed with the GIL.
struct Functions {
  std::vector<nanobind::object> all;  // the k-th is that of the k-th "python" table
  /// By the text that the flow's error contains.
  std::vector<std::pair<std::string, nanobind::object>> raised;
};
using FunctionsPtr = std::shared_ptr<Functions>;

/// While it lives, "python" tables of flows that this thread starts mean these functions.
class TheirFunctions {
 public:
  explicit TheirFunctions(FunctionsPtr functions);
  ~TheirFunctions();
  TheirFunctions(const TheirFunctions&) = delete;

 private:
  FunctionsPtr before_;
};

/// The class Sample.
void add_sample(nanobind::module_& module);

}  // namespace millrace::python
