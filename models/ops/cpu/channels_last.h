#pragma once

#include <c10/core/MemoryFormat.h>

namespace millrace {

/// NHWC, the memory format of all maps.
inline constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

}  // namespace millrace
