#include "millrace/models/ops/sampling.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <torch/library.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "millrace/models/ops/cpu/simd.h"
#include "millrace/models/ops/dispatched.h"
#include "millrace/models/ops/upload.h"

namespace millrace {
namespace {

constexpr std::int64_t kChunk = 1024;  // labels counted together

MILLRACE_SIMD void count_chunk(const std::int8_t* label, std::int64_t count, std::int32_t* counts) {
  std::int32_t foreground = 0, background = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    foreground += label[i] == 1;
    background += label[i] == 0;
  }
  counts[0] = foreground, counts[1] = background;
}

at::Tensor label_counts_on_cpu(const at::Tensor& label) {
  const auto labels = label.contiguous();
  const auto images = labels.size(0), count = labels.size(1),
             chunks = (count + kChunk - 1) / kChunk;
  auto counts = at::empty({images, chunks, 2}, at::kInt);
  const auto* from = labels.const_data_ptr<std::int8_t>();
  auto* out = counts.mutable_data_ptr<std::int32_t>();
  at::parallel_for(0, images * chunks, 16, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) {
      const auto image = i / chunks, first = i % chunks * kChunk;
      count_chunk(from + image * count + first, std::min(kChunk, count - first), out + 2 * i);
    }
  });
  return counts;
}

/// Returns the index of the label `value` with rank `rank` among `count` labels. `counts` are that
/// label's counts by chunk, at every second place.
std::int64_t place_of(const std::int8_t* label, std::int64_t count, const std::int32_t* counts,
                      std::int8_t value, std::int64_t rank) {
  std::int64_t place = 0;
  for (; rank >= *counts; counts += 2, place += kChunk) rank -= *counts;
  for (; place < count; ++place)
    if (label[place] == value && rank-- == 0) break;
  return place;
}

at::Tensor ranked_labels_on_cpu(const at::Tensor& label, const at::Tensor& counts,
                                const at::Tensor& wanted) {
  const auto labels = label.contiguous();
  const auto count = labels.size(1), chunks = counts.size(1), columns = wanted.size(1);
  auto places = at::empty({wanted.size(0)}, at::kLong);
  const auto asked = wanted.contiguous();
  const auto* from = labels.const_data_ptr<std::int8_t>();
  const auto* of_chunk = counts.const_data_ptr<std::int32_t>();
  const auto* ask = asked.const_data_ptr<std::int64_t>();
  auto* out = places.mutable_data_ptr<std::int64_t>();
  at::parallel_for(0, wanted.size(0), 64, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) {
      const auto image = ask[i * columns], value = ask[i * columns + 1],
                 rank = ask[i * columns + 2];
      out[i] = image * count + place_of(from + image * count, count,
                                        of_chunk + image * chunks * 2 + (value == 1 ? 0 : 1),
                                        static_cast<std::int8_t>(value), rank);
    }
  });
  return places;
}

TORCH_LIBRARY_IMPL(millrace, CPU, library) {
  library.impl("label_counts", label_counts_on_cpu);
  library.impl("ranked_labels", ranked_labels_on_cpu);
}

/// Draws `count` of 0 .. total - 1 without replacement, ascending: the start of a Fisher-Yates
/// shuffle that stores only moved elements.
std::vector<std::int64_t> drawn_ranks(std::int64_t total, std::int64_t count, Rng& rng) {
  std::vector<std::int64_t> ranks;
  ranks.reserve(static_cast<std::size_t>(count));
  if (count == total) {
    for (std::int64_t rank = 0; rank < total; ++rank) ranks.push_back(rank);
    return ranks;
  }
  std::unordered_map<std::int64_t, std::int64_t> moved;
  const auto at = [&](std::int64_t place) {
    const auto found = moved.find(place);
    return found == moved.end() ? place : found->second;
  };
  for (std::int64_t place = 0; place < count; ++place) {
    const auto other =
        place + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(total - place)));
    ranks.push_back(at(other));
    moved[other] = at(place);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::int64_t longest_of(const std::vector<SampleCount>& counts) {
  std::int64_t longest = 0;
  for (const auto& count : counts) longest = std::max(longest, count.all());
  return longest;
}

/// The samples of a task, as numbers for the device.
struct Ranks {
  static constexpr std::int64_t kColumns = 4;  // image, label, rank, slot

  std::vector<SampleCount> counts;
  std::vector<std::int64_t> wanted;      // (R, kColumns)
  std::vector<std::int64_t> foreground;  // (F)

  /// `totals` (N, 2): counts of labels 1 and 0.
  Ranks(const SamplingTask& task, const std::int64_t* totals) {
    for (std::int64_t image = 0; image < task.label.size(0); ++image, totals += 2) {
      auto rng = task.rng(static_cast<std::size_t>(image));
      const auto positive = std::min(totals[0], task.foreground);
      const auto negative = std::min(totals[1], std::max<std::int64_t>(0, task.all - positive));
      counts.push_back({positive, negative});
      add(image, 1, drawn_ranks(totals[0], positive, rng));
      add(image, 0, drawn_ranks(totals[1], negative, rng));
    }
    const auto longest = longest_of(counts);
    auto* row = wanted.data();
    for (std::size_t image = 0; image < counts.size(); ++image)
      for (std::int64_t i = 0; i < counts[image].all(); ++i, row += kColumns)
        row[3] = static_cast<std::int64_t>(image) * longest + i;
  }

 private:
  void add(std::int64_t image, std::int64_t label, const std::vector<std::int64_t>& ranks) {
    for (const auto rank : ranks) {
      if (label == 1) foreground.push_back(std::ssize(wanted) / kColumns);
      wanted.insert(wanted.end(), {image, label, rank, 0});
    }
  }
};

}  // namespace

SamplingTask make_sampling_task(at::Tensor label, std::int64_t all, double fraction,
                                std::function<Rng(std::size_t image)> rng) {
  const auto foreground = static_cast<std::int64_t>(static_cast<double>(all) * fraction);
  return {std::move(label), foreground, all, std::move(rng)};
}

std::int64_t SampledCandidates::longest() const { return longest_of(counts); }

std::vector<SampledCandidates> sample_candidates(const std::vector<SamplingTask>& tasks) {
  static const auto count = dispatched<decltype(label_counts_on_cpu)>("millrace::label_counts");
  static const auto find = dispatched<decltype(ranked_labels_on_cpu)>("millrace::ranked_labels");
  std::vector<at::Tensor> counts, sums;
  for (const auto& task : tasks) {
    if (task.label.dim() != 2 || task.label.scalar_type() != at::kChar)
      throw std::invalid_argument("sample_candidates: labels must be (N, P) int8");
    counts.push_back(count.call(task.label));
    sums.push_back(counts.back().sum(1));
  }
  const auto totals = at::cat(sums).cpu().contiguous();  // synchronizes with the device
  const auto* total = totals.const_data_ptr<std::int64_t>();

  std::vector<SampledCandidates> samples(tasks.size());
  std::vector<at::Tensor> numbers;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    Ranks ranks(tasks[i], total);
    total += 2 * tasks[i].label.size(0);
    samples[i].counts = std::move(ranks.counts);
    numbers.push_back(at::tensor(ranks.wanted, at::kLong).view({-1, Ranks::kColumns}));
    numbers.push_back(at::tensor(ranks.foreground, at::kLong));
  }
  numbers = uploaded(std::move(numbers), tasks[0].label.device());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto& wanted = numbers[2 * i];
    samples[i].rows = find.call(tasks[i].label, counts[i], wanted);
    samples[i].image = wanted.select(1, 0);
    samples[i].slots = wanted.select(1, 3);
    samples[i].foreground = numbers[2 * i + 1];
  }
  return samples;
}

}  // namespace millrace
