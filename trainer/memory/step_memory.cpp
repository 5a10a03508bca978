#include "millrace/trainer/memory/step_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <string_view>

#include "millrace/base/log.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/base/text.h"
#include "millrace/models/detector/device_memory.h"

namespace millrace {
namespace {

/// Advice for a step that does not fit into memory.
constexpr auto kLessMemory =
    "raise train.passes (parts of a batch, computed one after the other), or lower data.batch_size "
    "(optimizer.accumulate = N makes a step of N batches), data.short_side or data.max_side";

/// Memory in bytes.
struct MemoryUse {
  double now = 0;
  double peak = 0;  // maximum since the start of the process
};

/// Returns nullopt if the device's allocator does not count memory.
std::optional<MemoryUse> memory_use(at::Device device) {
  const auto use = [](std::int64_t now, std::int64_t peak) {
    return MemoryUse{static_cast<double>(now), static_cast<double>(peak)};
  };
  if (device.is_cpu()) return use(rss_bytes(), peak_rss_bytes());
  const auto memory = peak_memory(device);
  return memory ? std::optional(use(memory->tensors_now, memory->tensors_bytes)) : std::nullopt;
}

std::string text_of(const LargestBatch& batch) {
  return fmt::format("{} of {} x {} pixels", counted(batch.images, "image"), batch.slot.width,
                     batch.slot.height);
}

}  // namespace

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

StepMemory::StepMemory(const std::optional<LargestBatch>& largest, at::Device device,
                       std::int64_t ranks)
    : largest_(largest),
      device_(device),
      ranks_(device.is_cpu() ? static_cast<double>(ranks) : 1) {}

void StepMemory::before_step() {
  if (!largest_) return;
  const auto use = memory_use(device_);
  if (!use) return largest_.reset();
  if (!used_before_) used_before_ = use->now;
  peak_before_ = use->peak;
}

void StepMemory::after_step(std::int64_t step, std::span<const Batch> batches,
                            std::span<const StepPlace> places) {
  if (!largest_) return;
  for (std::size_t i = 0; i < batches.size(); ++i)
    if (const LargestBatch batch{std::ssize(batches[i].images),
                                 {places[i].width, places[i].height}};
        batch.pixels() > seen_.pixels())
      seen_ = batch;
  const auto use = memory_use(device_);
  if (!use || use->peak <= peak_before_) return;
  const auto free = device_.is_cpu() ? free_memory() : free_device_memory(device_);
  if (!free) return largest_.reset();
  const auto taken = use->peak - *used_before_, available = use->now + *free / ranks_;
  const auto needed = *used_before_ + taken * std::max(1.0, largest_->pixels() / seen_.pixels());
  if (needed <= available) return;
  log_warning("step {} used {} of memory for {}; {} may have {} and need {}, with {} available: {}",
              step, byte_text(taken), text_of(seen_),
              largest_->planned > 0 ? fmt::format("batch {}, the largest of {} planned,",
                                                  largest_->number, largest_->planned)
                                    : "a later batch",
              text_of(*largest_), byte_text(needed), byte_text(available), kLessMemory);
  largest_.reset();
}

}  // namespace millrace
