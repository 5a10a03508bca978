#include <ATen/core/Tensor.h>

#include <algorithm>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/models/weights/formats.h"

namespace millrace {
namespace {

constexpr std::string_view kOurs = "millrace.";  // prefix of our keys
constexpr auto kDigestKey = "millrace.seal";

std::uint64_t digest_of(std::string_view text, std::uint64_t seed) {
  return digest(text.data(), text.size(), digest(text.size(), seed));
}

std::string content_digest(const Metadata& metadata, const NamedTensors& tensors) {
  std::uint64_t sum = 0;
  for (const auto& [key, value] : metadata)
    if (key != kDigestKey) sum = digest_of(value, digest_of(key, sum));
  std::vector<const NamedTensors::value_type*> by_name;
  for (const auto& tensor : tensors) by_name.push_back(&tensor);
  std::ranges::sort(by_name, {}, [](const auto* tensor) { return tensor->first; });
  for (const auto* tensor : by_name) {
    const auto& [name, value] = *tensor;
    const auto plain = value.detach().cpu().contiguous();
    sum = digest_of(c10::toString(plain.scalar_type()), digest_of(name, sum));
    sum = digest(plain.sizes().vec(), sum);
    sum = digest(plain.const_data_ptr(), plain.nbytes(), sum);
  }
  return hex(sum);
}

}  // namespace

Metadata with_content_digest(Metadata metadata, const NamedTensors& tensors) {
  metadata[kDigestKey] = content_digest(metadata, tensors);
  return metadata;
}

bool check_content_digest(const Metadata& metadata, const NamedTensors& tensors) {
  const auto is_ours = [](const auto& entry) { return entry.first.starts_with(kOurs); };
  if (std::ranges::none_of(metadata, is_ours)) return false;
  const auto found = metadata.find(kDigestKey);
  if (found == metadata.end() || found->second != content_digest(metadata, tensors))
    throw Error(
        "its bytes do not match the digest in its metadata: it is damaged, or another program has "
        "changed it; use an intact copy");
  return true;
}

}  // namespace millrace
