// Focal loss (Lin et al. 2017) on a GPU, with the formulas of millrace/models/ops/focal_loss.cpp.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "millrace/plugins/cuda/host_device.h"

namespace millrace::cuda {

struct FocalRules {
  double alpha, gamma;
};

/// Loss and derivative at logit `x` of a class that is present or absent.
template <typename T>
struct Focal {
  T value, slope;

  MILLRACE_HOST_DEVICE Focal(T x, bool there, const FocalRules& rules) {
    const T z = there ? x : -x;
    const T tail = std::exp(-std::abs(z));
    const T right = z >= 0 ? 1 / (1 + tail) : tail / (1 + tail);  // p_t
    const T wrong = z >= 0 ? tail / (1 + tail) : 1 / (1 + tail);
    const T entropy = std::log1p(tail) + (-z > 0 ? -z : 0);
    const T gamma = static_cast<T>(rules.gamma);
    const T weight = static_cast<T>(there ? rules.alpha : 1 - rules.alpha) *
                     (rules.gamma == 2 ? wrong * wrong : std::pow(wrong, gamma));
    value = weight * entropy;
    slope = weight * (gamma * right * entropy + wrong) * (there ? T{-1} : T{1});
  }
};

/// logits (rows, columns) and the class of each row (rows); -1 = no class, -2 = the row is ignored.
template <typename T>
struct FocalTable {
  const T* logits;
  const std::int64_t* classes;
  std::int64_t rows, columns;

  /// Return the loss and the derivative at logit `i`.
  MILLRACE_HOST_DEVICE double value(std::int64_t i, const FocalRules& rules) const {
    const auto own = classes[i / columns];
    return own == -2 ? 0.0
                     : static_cast<double>(Focal<T>(logits[i], own == i % columns, rules).value);
  }
  MILLRACE_HOST_DEVICE T slope(std::int64_t i, const FocalRules& rules) const {
    const auto own = classes[i / columns];
    return own == -2 ? T{0} : Focal<T>(logits[i], own == i % columns, rules).slope;
  }
};

/// Returns the scratch memory in bytes that the sum of `count` losses needs.
std::size_t focal_scratch_bytes(std::int64_t count);

/// Computes the sum of all losses. Each run gives the same bits.
template <typename T>
void focal_loss(const FocalTable<T>& table, const FocalRules& rules, void* scratch, T* loss,
                Stream stream);

/// Writes gradient (rows, columns): the derivatives times *factor, a scalar in device memory.
template <typename T>
void focal_loss_backward(const FocalTable<T>& table, const FocalRules& rules, const T* factor,
                         T* gradient, Stream stream);

}  // namespace millrace::cuda
