// Recordings of torchvision's Mask R-CNN, stage by stage. The test data's goldens/scripts make
// them, with any arguments. MILLRACE_GOLDENS is the path of their folder.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace millrace::testing {

/// A file of recorded tensors, with the arguments of the script that made it and the expected
/// rounding differences.
class GoldenRun {
 public:
  /// Throws Error if the file is not a recording.
  explicit GoldenRun(const std::filesystem::path& file);

  /// Throws std::out_of_range if there is no tensor with this name.
  const at::Tensor& operator[](const std::string& name) const { return tensors_.at(name); }
  bool has(const std::string& name) const { return tensors_.contains(name); }
  /// Returns the tensors prefix0suffix, prefix1suffix, ... of the run's images.
  std::vector<at::Tensor> of_images(const std::string& prefix,
                                    const std::string& suffix = "") const;
  /// Returns the names that start with `prefix`, in order.
  std::vector<std::string> names(const std::string& prefix) const;

  const nlohmann::json& argument(const std::string& name) const { return arguments_.at(name); }
  bool has_argument(const std::string& name) const { return arguments_.contains(name); }
  std::int64_t count(const std::string& name) const { return argument(name).get<std::int64_t>(); }

  /// Returns the tolerance for a recorded tensor: four times the difference of torchvision's own
  /// results on two threads or in float64, but at least four float32 roundings of the largest
  /// value. For gradients, uses the largest relative difference of all parameters, since a single
  /// parameter may be equal by chance. Returns 1e-5 times the largest value if the differences were
  /// not measured.
  double tolerance(const std::string& name) const;

  /// Returns the stem of the file name.
  const std::string& title() const { return title_; }
  /// Returns the recording in the same folder whose name ends in `part`, such as "infer", and is
  /// otherwise equal.
  GoldenRun beside(const std::string& part) const;
  bool has_beside(const std::string& part) const;

 private:
  std::filesystem::path path_beside(const std::string& part) const;

  std::filesystem::path file_;
  std::string title_;
  std::map<std::string, at::Tensor> tensors_;
  nlohmann::json arguments_;
  /// Differences between torchvision's own runs; empty = not measured.
  std::map<std::string, double> differences_;
  std::map<std::string, double> shares_;  // largest relative difference of each type of tensor
};

/// Passes if the shapes are equal and the values are within the recorded tensor's tolerance.
::testing::AssertionResult agrees(const at::Tensor& actual, const GoldenRun& golden,
                                  const std::string& name);

/// Calls `work` with every recording in the folder that has a tensor with this name: "in.batch" for
/// inference, "loss.sum" for training, "losses" for traces. Skips the test if no recording is
/// found.
void each_golden(const std::string& tensor, const std::function<void(const GoldenRun&)>& work);

}  // namespace millrace::testing
