// Values that a thread reads and writes together.
#pragma once

#include <cstdint>

namespace millrace::cuda {

template <typename T, int V>
struct alignas(sizeof(T) * V) Pack {
  T values[V];
};

/// Whether packs may begin at that address.
template <typename T, int V>
bool is_aligned(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % alignof(Pack<T, V>) == 0;
}

}  // namespace millrace::cuda
