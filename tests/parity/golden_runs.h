// torchvision's Mask R-CNN, recorded stage by stage by goldens/scripts of the test data, whatever
// their arguments were. MILLRACE_GOLDENS names the folder.
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

/// One file of recorded tensors, with the arguments of the script that made it and the rounding to
/// expect.
class GoldenRun {
 public:
  /// Throws Error where the file is no such recording.
  explicit GoldenRun(const std::filesystem::path& file);

  /// Throws std::out_of_range where nothing was recorded under that name.
  const at::Tensor& operator[](const std::string& name) const { return tensors_.at(name); }
  bool has(const std::string& name) const { return tensors_.contains(name); }
  /// The tensors name0, name1, ... of the run's images.
  std::vector<at::Tensor> of_images(const std::string& prefix,
                                    const std::string& suffix = "") const;
  /// Names that start with `prefix`, in their order.
  std::vector<std::string> names(const std::string& prefix) const;

  const nlohmann::json& argument(const std::string& name) const { return arguments_.at(name); }
  bool has_argument(const std::string& name) const { return arguments_.contains(name); }
  std::int64_t count(const std::string& name) const { return argument(name).get<std::int64_t>(); }

  /// How far a result may lie from the recorded tensor: four times torchvision's own difference on
  /// two threads or in float64, at least four roundings of the largest value. For gradients the
  /// largest such share of all parameters counts, since one of them may be equal by luck. 1e-5 of
  /// the largest value where the differences were not measured.
  double tolerance(const std::string& name) const;

  /// Stem of the file's name.
  const std::string& title() const { return title_; }
  /// The recording beside it that differs in the last part of its name, such as "infer".
  GoldenRun beside(const std::string& part) const;
  bool has_beside(const std::string& part) const;

 private:
  std::filesystem::path path_beside(const std::string& part) const;

  std::filesystem::path file_;
  std::string title_;
  std::map<std::string, at::Tensor> tensors_;
  nlohmann::json arguments_;
  /// Torchvision's distance from itself; empty: not measured.
  std::map<std::string, double> differences_;
  std::map<std::string, double> shares_;  // the largest of a kind of tensor, of the largest value
};

/// Equal shapes, and values within the recorded tensor's tolerance.
::testing::AssertionResult agrees(const at::Tensor& actual, const GoldenRun& golden,
                                  const std::string& name);

/// Calls `work` with every recording of the folder that holds a tensor of that name: "in.batch"
/// those of inference, "loss.sum" those of training, "losses" the traces. Skips the test, saying
/// why, where there are none.
void each_golden(const std::string& tensor, const std::function<void(const GoldenRun&)>& work);

}  // namespace millrace::testing
