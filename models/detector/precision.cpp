#include "millrace/models/detector/precision.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>

namespace millrace {

at::ScalarType precision_type(FloatType type) {
  if (type == FloatType::bf16) return at::kBFloat16;
  return type == FloatType::fp16 ? at::kHalf : at::kFloat;
}

void choose_products(bool tf32) {
  at::globalContext().setAllowTF32CuDNN(tf32);
  at::globalContext().setAllowTF32CuBLAS(tf32);
}

ComputeIn::ComputeIn(at::ScalarType type, at::DeviceType device, bool keeps_casts)
    : device_(device),
      was_enabled_(at::autocast::is_autocast_enabled(device)),
      kept_casts_(at::autocast::is_autocast_cache_enabled()),
      was_(at::autocast::get_autocast_dtype(device)) {
  at::autocast::increment_nesting();
  if (type != at::kFloat) at::autocast::set_autocast_dtype(device, type);
  at::autocast::set_autocast_enabled(device, type != at::kFloat);
  at::autocast::set_autocast_cache_enabled(keeps_casts);
}

ComputeIn::~ComputeIn() {
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, was_);
  at::autocast::set_autocast_cache_enabled(kept_casts_);
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
}

at::ScalarType compute_type(const at::Tensor& x) {
  const auto device = x.device().type();
  return at::autocast::is_autocast_enabled(device) ? at::autocast::get_autocast_dtype(device)
                                                   : x.scalar_type();
}

bool cpu_multiplies(at::ScalarType type) {
#if defined(__x86_64__)
  if (type == at::kBFloat16) return __builtin_cpu_supports("avx512bf16");
  if (type == at::kHalf) return __builtin_cpu_supports("avx512fp16");
#endif
  return type == at::kFloat;
}

}  // namespace millrace
