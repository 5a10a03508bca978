#include "millrace/trainer/memory/out_of_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <string_view>

#include "millrace/base/text.h"

namespace millrace {

bool is_out_of_memory(const std::exception& problem) {
  if (dynamic_cast<const std::bad_alloc*>(&problem)) return true;
  const std::string_view what = problem.what();
  return what.find("DefaultCPUAllocator: ") != what.npos ||
         what.find("out of memory") != what.npos || what.find("std::bad_alloc") != what.npos;
}

std::string out_of_memory_text(const std::vector<Batch>& batches) {
  std::string text;
  for (const auto& batch : batches) {
    text += text.empty() ? "not enough memory for " : " and ";
    text += fmt::format("a batch of {} padded to {} x {} pixels (",
                        counted(std::ssize(batch.images), "image"), batch.width, batch.height);
    constexpr std::size_t kNamed = 8;
    for (std::size_t i = 0; i < std::min(kNamed, batch.size()); ++i)
      text += fmt::format("{}{}", i == 0 ? "image " : ", ", batch.images[i].image_id);
    text += batch.size() > kNamed ? ", ...)" : ")";
  }
  return fmt::format("{}: {}", text, kLessMemory);
}

}  // namespace millrace
