#include "millrace/trainer/cluster/gpu_address.h"

#include <dlfcn.h>

#include <array>
#include <memory>

namespace millrace {
namespace {

constexpr auto kDriver = "libcuda.so.1";

int close_driver(void* driver) { return ::dlclose(driver); }

/// Calls a function of the driver. Returns false if the function does not exist or fails.
template <class... Parameters, class... Arguments>
bool call_driver(void* driver, const char* name, int (*)(Parameters...), Arguments... arguments) {
  auto* const function = reinterpret_cast<int (*)(Parameters...)>(::dlsym(driver, name));
  return function && function(arguments...) == 0;
}

}  // namespace

std::optional<std::int64_t> gpu_of_rank(std::int64_t local_rank, std::int64_t visible) {
  if (local_rank < visible) return local_rank;
  if (visible == 1) return 0;
  return std::nullopt;
}

std::string gpu_address(std::int64_t local_rank) {
  const std::unique_ptr<void, int (*)(void*)> library(::dlopen(kDriver, RTLD_NOW | RTLD_LOCAL),
                                                      close_driver);
  if (!library) return {};
  // Signatures from <cuda.h>, which is missing without a CUDA toolkit; CUdevice and CUresult are
  // ints.
  constexpr int (*kInit)(unsigned) = nullptr;
  constexpr int (*kCount)(int*) = nullptr;
  constexpr int (*kDevice)(int*, int) = nullptr;
  constexpr int (*kAddress)(char*, int, int) = nullptr;
  int count = 0, device = 0;
  if (!call_driver(library.get(), "cuInit", kInit, 0U)) return {};
  if (!call_driver(library.get(), "cuDeviceGetCount", kCount, &count)) return {};
  const auto index = gpu_of_rank(local_rank, count);
  if (!index) return {};
  std::array<char, 64> address{};
  if (!call_driver(library.get(), "cuDeviceGet", kDevice, &device, static_cast<int>(*index)) ||
      !call_driver(library.get(), "cuDeviceGetPCIBusId", kAddress, address.data(),
                   static_cast<int>(address.size() - 1), device))
    return {};
  return address.data();
}

}  // namespace millrace
