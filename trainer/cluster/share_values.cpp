#include "millrace/trainer/cluster/share_values.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/trainer/cluster/gather_values.h"

namespace millrace {
namespace {

/// Compares `digest_of` each tensor with that of rank 0.
template <class DigestOf>
void check_equal_digests(const Cluster& cluster, const NamedTensors& values,
                         const std::string& what, const char* difference, DigestOf digest_of) {
  std::vector<std::uint64_t> mine;
  for (const auto& [name, value] : values) mine.push_back(digest_of(name, value));
  const auto all = gather_values(cluster, "compare tensors", mine);
  for (std::int64_t rank = 1; rank < cluster.size(); ++rank) {
    const auto& theirs = all[static_cast<std::size_t>(rank)];
    if (theirs.size() != all[0].size())
      throw Error(fmt::format("{} has {} tensors in {}, rank 0 has {}", cluster.name(rank),
                              theirs.size(), what, all[0].size()));
    for (std::size_t i = 0; i < values.size(); ++i)
      if (theirs[i] != all[0][i])
        throw Error(fmt::format("{} {} '{}' of {} than {}", cluster.name(rank), difference,
                                values[i].first, what, cluster.name(0)));
  }
}

}  // namespace

std::string bytes_of(at::TensorList tensors) {
  std::string bytes;
  for (const auto& tensor : tensors) {
    const auto here = tensor.detach().cpu().contiguous();
    bytes.append(static_cast<const char*>(here.const_data_ptr()), here.nbytes());
  }
  return bytes;
}

void set_bytes(at::TensorList tensors, std::string_view bytes) {
  for (const auto& tensor : tensors) {
    auto here = at::empty(tensor.sizes(), tensor.scalar_type());
    std::memcpy(here.mutable_data_ptr(), bytes.data(), here.nbytes());
    bytes.remove_prefix(here.nbytes());
    tensor.detach().copy_(here);
  }
}

void broadcast_values(const Cluster& cluster, const NamedTensors& values, const std::string& what) {
  if (cluster.size() == 1) return;
  check_equal_digests(cluster, values, what, "has another name, type or shape for",
                      [](const std::string& name, const at::Tensor& value) {
                        const auto type = static_cast<std::int64_t>(value.scalar_type());
                        return digest(value.sizes().vec(),
                                      digest(type, digest(name.data(), name.size())));
                      });
  for (const auto& [name, value] : values) {
    const auto chiefs =
        cluster.broadcast("values of rank 0", cluster.is_chief() ? bytes_of({value}) : "");
    if (!cluster.is_chief()) set_bytes({value}, chiefs);
  }
}

void check_same_values(const Cluster& cluster, const NamedTensors& values,
                       const std::string& what) {
  if (cluster.size() == 1) return;
  check_equal_digests(cluster, values, what, "has other values in",
                      [](const std::string&, const at::Tensor& value) {
                        const auto bytes = bytes_of({value});
                        return digest(bytes.data(), bytes.size());
                      });
}

}  // namespace millrace
