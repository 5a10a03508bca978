// What a detector says of a training step besides its losses: accuracies, recall, counts.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace {

/// Both halves of a quotient.
struct FigureSums {
  std::string name;
  double part = 0, whole = 0;
};

/// Adds to the sums of that name, behind all others where there are none.
void add(std::vector<FigureSums>& sums, const FigureSums& more);

/// By name; what is a share of nothing is left out.
std::vector<std::pair<std::string, double>> quotients(const std::vector<FigureSums>& sums);

/// Quotients by name. Both halves are summed over a step's micro-batches and ranks before they are
/// divided, so that a share is one of all regions and not a mean of shares. Tensors stay on their
/// device until the losses are read.
class Figures {
 public:
  /// `part` of `whole`, each one number, of any type, without gradient.
  void add(std::string name, const at::Tensor& part, const at::Tensor& whole);
  void add(std::string name, double part, double whole);

  /// Parts and wholes, one after the other: what `sums` needs the values of. fp32, on the device
  /// that they were given on.
  const std::vector<at::Tensor>& numbers() const { return numbers_; }

  /// In the order in which they were first added, from the values of `numbers`.
  std::vector<FigureSums> sums(const double* values) const;

 private:
  std::vector<std::string> names_;
  std::vector<at::Tensor> numbers_;
};

}  // namespace millrace
