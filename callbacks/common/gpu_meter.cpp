#include "millrace/callbacks/common/gpu_meter.h"

#include <dlfcn.h>

namespace millrace {
namespace {

// Types of nvml.h.
using Status = int;  // 0 = success
using Device = void*;
struct Utilization {
  unsigned int gpu = 0, memory = 0;  // percent
};
struct Memory {
  unsigned long long total = 0, free = 0, used = 0;  // bytes
};

/// Functions of the library; all of them or none are loaded.
struct Library {
  void* handle = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  Status (*init)() = nullptr;
  Status (*count)(unsigned int*) = nullptr;
  Status (*device)(unsigned int, Device*) = nullptr;
  Status (*utilization)(Device, Utilization*) = nullptr;
  Status (*memory)(Device, Memory*) = nullptr;
  bool works = handle && find(init, "nvmlInit_v2") && find(count, "nvmlDeviceGetCount_v2") &&
               find(device, "nvmlDeviceGetHandleByIndex_v2") &&
               find(utilization, "nvmlDeviceGetUtilizationRates") &&
               find(memory, "nvmlDeviceGetMemoryInfo") && init() == 0;

  template <class F>
  bool find(F& function, const char* name) const {
    function = reinterpret_cast<F>(::dlsym(handle, name));
    return function != nullptr;
  }
};

}  // namespace

std::vector<GpuUse> gpu_use() {
  static const Library library;
  std::vector<GpuUse> all;
  unsigned int count = 0;
  if (!library.works || library.count(&count) != 0) return all;
  for (unsigned int i = 0; i < count; ++i) {
    Device device = nullptr;
    Utilization busy;
    Memory memory;
    if (library.device(i, &device) != 0 || library.utilization(device, &busy) != 0 ||
        library.memory(device, &memory) != 0)
      return {};
    all.push_back({busy.gpu / 100.0, static_cast<std::int64_t>(memory.used)});
  }
  return all;
}

}  // namespace millrace
