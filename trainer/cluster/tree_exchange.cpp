#include "millrace/trainer/cluster/tree_exchange.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstddef>

#include "millrace/base/tree_sum.h"

namespace millrace {

static constexpr std::int64_t kBlock = 8192;  // values per block

void sum_as_tree(const at::Tensor& values, std::int64_t rank, std::int64_t ranks,
                 const ExchangeMessages& exchange) {
  const auto all = values.view(-1);
  const auto part_of = [&](std::int64_t r) {
    const auto begin = all.numel() * r / ranks;
    return all.narrow(0, begin, all.numel() * (r + 1) / ranks - begin);
  };
  const auto own = part_of(rank);
  // The row of this rank is not used.
  const auto received = at::empty({ranks, own.numel()}, own.options());

  std::vector<RankMessage> parts, of_own;  // messages to the other ranks, and from them
  for (std::int64_t other = 0; other < ranks; ++other) {
    if (other == rank) continue;
    if (auto part = part_of(other); part.numel() > 0) parts.push_back({other, std::move(part)});
    if (own.numel() > 0) of_own.push_back({other, received[other]});
  }
  exchange(parts, of_own);
  const auto wide =
      own.element_size() < std::int64_t{sizeof(float)} ? at::kFloat : own.scalar_type();
  // On a CPU, adds in blocks too small for libtorch to use its threads, which compute gradients
  // meanwhile.
  const auto most = own.is_cpu() ? kBlock : own.numel();
  for (std::int64_t first = 0; first < own.numel(); first += most) {
    const auto size = std::min(most, own.numel() - first);
    const auto sum = own.narrow(0, first, size);
    const auto of_rank = [&](std::size_t r) {
      const auto other = static_cast<std::int64_t>(r);
      return (other == rank ? sum : received[other].narrow(0, first, size)).to(wide);
    };
    const auto add = [](at::Tensor&& total, const at::Tensor& more) { return total.add_(more); };
    sum.copy_(tree_sum(static_cast<std::size_t>(ranks), of_rank, add));
  }
  for (auto& message : of_own) message.values = own;
  exchange(of_own, parts);
}

}  // namespace millrace
