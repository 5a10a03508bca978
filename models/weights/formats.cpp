#include "millrace/models/weights/formats.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/models/weights/sealed_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

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

struct Format {
  std::string_view extension;
  NamedTensors (*read)(const fs::path&);
  void (*write)(const fs::path&, const NamedTensors&);  // nullptr: only read
};

NamedTensors read_whole_safetensors(const fs::path& file) {
  Metadata metadata;
  auto tensors = read_safetensors(file, &metadata);
  bool has_digest = false;
  try {
    has_digest = check_content_digest(metadata, tensors);
  } catch (const Error& problem) {
    throw Error(file.string() + ": " + problem.what());
  }
  if (!has_digest) check_file_of_checkpoint(file);
  return tensors;
}

constexpr std::string_view kSafetensors = ".safetensors";

constexpr std::array<Format, 6> kFormats = {
    {{kSafetensors, read_whole_safetensors,
      [](const fs::path& file, const NamedTensors& tensors) { write_safetensors(file, tensors); }},
     {".pth", read_pth, write_pth},
     {".pt", read_pth, write_pth},
     {".bin", read_pth, nullptr},
     {".pkl", read_pth, nullptr},
     {".npz", read_npz, write_npz}}};

const Format* format_of(const fs::path& file) {
  for (const auto& format : kFormats)
    if (file.extension() == format.extension) return &format;
  return nullptr;
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

fs::path weight_file(const fs::path& weights) {
  std::error_code problem;
  const auto kind = fs::status(weights, problem).type();
  if (kind == fs::file_type::directory) {
    const auto file = weights / "model.safetensors", latest = weights / "checkpoints" / "latest";
    return weight_file(!fs::exists(file, problem) && fs::exists(latest, problem) ? latest : file);
  }
  if (kind == fs::file_type::not_found) check_file_of_checkpoint(weights);
  if (kind == fs::file_type::not_found)
    throw Error(weights.string() + ": file not found" +
                (fs::is_symlink(weights, problem) ? " (broken symbolic link)" : ""));
  if (problem) throw Error(weights.string() + ": cannot be opened: " + problem.message());
  return weights;
}

bool is_weight_file(const fs::path& file) { return format_of(file) != nullptr; }

NamedTensors read_weights(const fs::path& weights) {
  const auto file = weight_file(weights);
  if (const auto* format = format_of(file)) return format->read(file);
  throw Error(file.string() +
              ": unknown format; expected .safetensors, .pth, .pkl, .npz or a checkpoint folder");
}

void check_writable_format(const fs::path& file) {
  const auto* format = format_of(file);
  if (!format || !format->write)
    throw ConfigError(file.string() +
                      ": cannot write this format; expected .safetensors, .pth or .npz");
}

bool takes_metadata(const fs::path& file) { return file.extension() == kSafetensors; }

void write_weights(const fs::path& file, const NamedTensors& tensors, const Metadata& metadata) {
  check_writable_format(file);
  if (takes_metadata(file) && !metadata.empty())
    write_safetensors(file, tensors, with_content_digest(metadata, tensors));
  else
    format_of(file)->write(file, tensors);
}

}  // namespace millrace
