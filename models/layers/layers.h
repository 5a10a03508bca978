// The layers that detectors are made of: small values that share their tensors with Parameters,
// which they declare in a Scope. Tensors are (N, C, H, W), channels last in memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/models/onnx/graph.h"
#include "millrace/models/weights/parameters.h"

namespace millrace {

/// A node in a model's tree of names. Initial values depend on the seed and the full name alone,
/// not on the device or on other layers.
class Scope {
 public:
  /// `random`: false leaves weights uninitialized.
  Scope(Parameters& parameters, std::uint64_t seed, at::Device device = at::kCPU,
        std::string prefix = {}, bool random = true)
      : parameters_(parameters),
        seed_(seed),
        device_(device),
        prefix_(std::move(prefix)),
        random_(random) {}

  /// Returns a child scope, e.g. scope / "fpn" / "inner_blocks".
  Scope operator/(std::string_view child) const {
    return {parameters_, seed_, device_,
            prefix_.empty() ? std::string(child) : prefix_ + "." + std::string(child), random_};
  }
  Scope operator/(std::int64_t child) const { return *this / std::to_string(child); }

  /// Declares a tensor filled with `value`, trained unless `kind` is buffer. constant("scale", {1},
  /// 1, weight) is a learned scalar, as FCOS has at each level. The kind decides the optimizer's
  /// learning rate and weight decay; `weight` has those of convolutions, as every parameter outside
  /// norms has in detectron2.
  at::Tensor constant(std::string_view name, at::IntArrayRef shape, double value,
                      ParameterKind kind) const;
  /// Declare weights: normal with mean 0, or uniform in [-bound, bound). Four-dimensional tensors
  /// are channels last in memory.
  at::Tensor normal(std::string_view name, at::IntArrayRef shape, double deviation) const;
  at::Tensor uniform(std::string_view name, at::IntArrayRef shape, double bound) const;

  at::Device device() const { return device_; }
  const Parameters& parameters() const { return parameters_; }

  /// Freezes every tensor declared before whose name below this scope starts with `prefix`.
  void freeze(std::string_view prefix) const { parameters_.freeze(full(prefix)); }

  /// Declares how the rows of a layer below this scope, declared before, map to classes.
  void set_classes(std::string_view layer, const ClassAxis& axis) const {
    parameters_.set_classes(full(layer) + ".", axis);
  }

 private:
  std::string full(std::string_view name) const {
    return prefix_.empty() ? std::string(name) : prefix_ + "." + std::string(name);
  }
  at::Generator generator(std::string_view name) const;
  at::Tensor declare(std::string_view name, const at::Tensor& value, ParameterKind kind) const;

  Parameters& parameters_;
  std::uint64_t seed_;
  at::Device device_;
  std::string prefix_;
  bool random_;
};

class RankSum;

/// The initial distribution of a layer's weights.
struct Init {
  enum class Kind {
    normal,  // with deviation `value`
    he,      // normal, sqrt(2 / fan_out): MSRA's, for convolutions before a ReLU
    xavier,  // uniform, sqrt(3 / fan_in): caffe2's XavierFill
    torch,   // uniform, sqrt(1 / fan_in): PyTorch's default
  };
  Kind kind = Kind::he;
  double value = 0;
};

enum class Activation { none, relu, silu };

/// The operations after a layer, in place on its output. X is at::Tensor, or onnx::Value in a
/// graph.
template <class X>
struct AfterOf {
  X add = {};                                // added to the output, of its shape; undefined = none
  Activation activation = Activation::none;  // after the sum
};
using After = AfterOf<at::Tensor>;
using AfterNode = AfterOf<onnx::Value>;

// Layers are called on tensors, or on values of a graph to add their nodes.

struct Conv2d {
  struct Shape {
    std::int64_t in, out, kernel;
    std::int64_t stride = 1;
    bool bias = true;
    std::int64_t groups = 1;  // equal to `in`: a depthwise convolution
  };

  at::Tensor weight;  // (out, in / groups, k, k)
  at::Tensor bias;    // (out); undefined = none
  std::int64_t stride = 1, padding = 0, groups = 1;

  Conv2d() = default;
  Conv2d(const Scope& scope, const Shape& shape, const Init& init);
  at::Tensor operator()(const at::Tensor& x, const After& after = {}) const;
  /// Convolves all levels of a pyramid, faster than one after the other.
  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& maps,
                                     Activation activation = Activation::none) const;
  onnx::Value operator()(const onnx::Value& x, const AfterNode& after = {}) const;
};

/// A 2x2 transposed convolution of stride 2: doubles height and width.
struct Deconv2x2 {
  at::Tensor weight;  // (in, out, 2, 2)
  at::Tensor bias;

  Deconv2x2() = default;
  Deconv2x2(const Scope& scope, std::int64_t in, std::int64_t out);
  at::Tensor operator()(const at::Tensor& x) const;
  onnx::Value operator()(const onnx::Value& x) const;
};

struct Linear {
  at::Tensor weight;  // (out, in)
  at::Tensor bias;

  Linear() = default;
  Linear(const Scope& scope, std::int64_t in, std::int64_t out, const Init& init);
  at::Tensor operator()(const at::Tensor& x) const;
  onnx::Value operator()(const onnx::Value& x) const;
};

/// The normalisation after a convolution.
enum class Norm {
  frozen_bn,     // constant statistics and affine
  frozen_stats,  // constant statistics, trained affine
  bn,            // batch statistics; running statistics if the affine is frozen
  sync_bn,       // as bn, with statistics over all ranks
  gn,            // group norm of 32 groups, fewer below 64 channels
  none,
};
inline std::vector<std::string> value_names(Norm) {
  return {"frozen_bn", "frozen_stats", "bn", "sync_bn", "gn", "none"};
}

struct NormOptions {
  Norm kind = Norm::frozen_bn;
  double epsilon = 1e-5;
  double momentum = 0.1;  // weight of a batch in the running statistics (bn, sync_bn)
};

/// The statistics that batch norm uses in a pass through the network.
struct NormMode {
  // Uses the batch's statistics and updates the running ones; false = uses running statistics.
  bool training = false;
  // sums for sync_bn over the batches of all ranks; nullptr = only one rank
  RankSum* ranks = nullptr;
};

/// A convolution, its normalisation and the operations after it. Frozen statistics are folded into
/// the convolution: once per change of the parameters if nothing in it is trained, else on the fly
/// (a product of the weight's size instead of two passes over the activations). Running statistics
/// (bn, sync_bn) are folded too if no gradient is needed.
class ConvNorm {
 public:
  ConvNorm() = default;
  /// Declares the norm's tensors under `norm_scope`, its scale with the value `scale`.
  ConvNorm(const Scope& conv_scope, const Scope& norm_scope, Conv2d::Shape shape,
           const NormOptions& norm, double scale = 1, const Init& init = {Init::Kind::he});

  at::Tensor operator()(const at::Tensor& x, const NormMode& mode, const After& after = {}) const;
  /// Applies it to all levels of a pyramid, each normalised by itself.
  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& maps, const NormMode& mode,
                                     Activation activation) const;
  /// Adds the nodes, which use running statistics.
  onnx::Value operator()(const onnx::Value& x, const AfterNode& after = {}) const;
  onnx::Value operator()(const onnx::Value& x, const NormMode&, const AfterNode& after = {}) const {
    return (*this)(x, after);
  }

 private:
  at::Tensor group_norm(const at::Tensor& y, const After& after) const;
  at::Tensor batch_norm(const at::Tensor& y, const NormMode& mode, const After& after) const;
  /// Frozen statistics as a scale and a shift of the convolution's output, (C) each.
  struct Folded {
    at::Tensor scale, shift;
    at::Tensor weight;         // the convolution's, scaled, if it is not trained
    std::int64_t changes = 0;  // Parameters::changes when it was computed
  };
  at::Tensor frozen(const at::Tensor& x, const After& after) const;
  Folded fold() const;

  const Parameters* parameters_ = nullptr;
  Conv2d conv_;
  at::Tensor weight_, bias_, mean_, var_;  // (C) each
  NormOptions norm_;
  std::int64_t groups_ = 1;
  mutable std::optional<Folded> folded_;
};

}  // namespace millrace
