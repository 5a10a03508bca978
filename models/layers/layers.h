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

/// A place in a model's tree of names. Initial values depend on the seed and the full name alone,
/// not on the device or on other layers.
class Scope {
 public:
  /// `random`: false leaves weights with any values.
  Scope(Parameters& parameters, std::uint64_t seed, at::Device device = at::kCPU,
        std::string prefix = {}, bool random = true)
      : parameters_(parameters),
        seed_(seed),
        device_(device),
        prefix_(std::move(prefix)),
        random_(random) {}

  /// scope / "fpn" / "inner_blocks"
  Scope operator/(std::string_view child) const {
    return {parameters_, seed_, device_,
            prefix_.empty() ? std::string(child) : prefix_ + "." + std::string(child), random_};
  }
  Scope operator/(std::int64_t child) const { return *this / std::to_string(child); }

  /// All `value`, and trained unless `kind` is buffer: constant("scale", {1}, 1, weight) is a
  /// learnt scalar, as FCOS has one a level. By the kind the optimizer chooses rate and weight
  /// decay; `weight` has those of convolutions, as every parameter of no norm has in detectron2.
  at::Tensor constant(std::string_view name, at::IntArrayRef shape, double value,
                      ParameterKind kind) const;
  /// Weights: normal with mean 0, or uniform in [-bound, bound); four-dimensional tensors are
  /// channels last in memory.
  at::Tensor normal(std::string_view name, at::IntArrayRef shape, double deviation) const;
  at::Tensor uniform(std::string_view name, at::IntArrayRef shape, double bound) const;

  at::Device device() const { return device_; }
  const Parameters& parameters() const { return parameters_; }

  /// Stops training every tensor declared so far whose name below this scope starts with `prefix`.
  void freeze(std::string_view prefix) const { parameters_.freeze(full(prefix)); }

  /// Says how the rows of a declared layer below this scope belong to classes.
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

/// How a layer's weights start.
struct Init {
  enum class Kind {
    normal,  // deviation `value`
    he,      // normal, sqrt(2 / fan_out): MSRA's, for convolutions before a ReLU
    xavier,  // uniform, sqrt(3 / fan_in): caffe2's XavierFill
    torch,   // uniform, sqrt(1 / fan_in): PyTorch's default
  };
  Kind kind = Kind::he;
  double value = 0;
};

enum class Activation { none, relu, silu };

/// What follows a layer, in place on its output. X: at::Tensor, or onnx::Value in a graph.
template <class X>
struct AfterOf {
  X add = {};  // of the output's shape, added to it; undefined: nothing
  Activation activation = Activation::none;  // after the sum
};
using After = AfterOf<at::Tensor>;
using AfterNode = AfterOf<onnx::Value>;

// Layers are called on tensors or, to add their nodes to a graph, on its values.

struct Conv2d {
  struct Shape {
    std::int64_t in, out, kernel;
    std::int64_t stride = 1;
    bool bias = true;
    std::int64_t groups = 1;  // in: a depthwise convolution
  };

  at::Tensor weight;  // (out, in / groups, k, k)
  at::Tensor bias;    // (out), undefined where there is none
  std::int64_t stride = 1, padding = 0, groups = 1;

  Conv2d() = default;
  Conv2d(const Scope& scope, const Shape& shape, const Init& init);
  at::Tensor operator()(const at::Tensor& x, const After& after = {}) const;
  /// Of all levels of a pyramid, in less time than of one after the other.
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

/// Which normalisation follows a convolution.
enum class Norm {
  frozen_bn,     // statistics and affine fixed
  frozen_stats,  // affine trained
  bn,            // batch statistics; fixed running statistics if the affine is not trained
  sync_bn,       // the same, of the batches of all ranks
  gn,            // 32 groups, fewer below 64 channels
  none,
};
inline std::vector<std::string> value_names(Norm) {
  return {"frozen_bn", "frozen_stats", "bn", "sync_bn", "gn", "none"};
}

struct NormOptions {
  Norm kind = Norm::frozen_bn;
  double epsilon = 1e-5;
  double momentum = 0.1;  // share of a batch in the running statistics (bn, sync_bn)
};

/// What batch norm normalises by in a pass through the network.
struct NormPass {
  // By the batch's statistics, which running statistics follow; false: by running statistics
  bool training = false;
  // sync_bn: by those of the batches of all ranks together; nullptr: there is one rank
  RankSum* ranks = nullptr;
};

/// A convolution, its normalisation and what follows. Frozen statistics are folded into the
/// convolution: once per change of the parameters where nothing in it is trained, on the fly
/// otherwise (a product of the weight's size instead of two passes over the activations). So are
/// running statistics (bn, sync_bn) where no gradient is kept.
class ConvNorm {
 public:
  ConvNorm() = default;
  /// The norm's tensors are declared under `norm_scope`, with the scale starting at `scale`.
  ConvNorm(const Scope& conv_scope, const Scope& norm_scope, Conv2d::Shape shape,
           const NormOptions& norm, double scale = 1, const Init& init = {Init::Kind::he});

  at::Tensor operator()(const at::Tensor& x, const NormPass& pass, const After& after = {}) const;
  /// Of all levels of a pyramid, each normalised by itself.
  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& maps, const NormPass& pass,
                                     Activation activation) const;
  /// By running statistics, whatever the pass.
  onnx::Value operator()(const onnx::Value& x, const AfterNode& after = {}) const;
  onnx::Value operator()(const onnx::Value& x, const NormPass&, const AfterNode& after = {}) const {
    return (*this)(x, after);
  }

 private:
  at::Tensor group_norm(const at::Tensor& y, const After& after) const;
  at::Tensor batch_norm(const at::Tensor& y, const NormPass& pass, const After& after) const;
  /// Frozen statistics as a scale and a shift of the convolution's output, (C) each.
  struct Folded {
    at::Tensor scale, shift;
    at::Tensor weight;         // the convolution's, scaled, where it is not trained
    std::int64_t changes = 0;  // Parameters::changes at that time
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
