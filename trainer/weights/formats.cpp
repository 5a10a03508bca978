#include "trainer/weights/formats.h"

#include <array>

#include "base/errors.h"
#include "trainer/weights/npz.h"
#include "trainer/weights/pth.h"

namespace millrace {
namespace {

struct Format {
  std::string_view extension;
  NamedTensors (*read)(const std::filesystem::path&);
  void (*write)(const std::filesystem::path&, const NamedTensors&);  // nullptr: only read
};

constexpr std::array<Format, 6> kFormats = {
    {{".safetensors", [](const std::filesystem::path& file) { return read_safetensors(file); },
      [](const std::filesystem::path& file, const NamedTensors& tensors) {
        write_safetensors(file, tensors);
      }},
     {".pth", read_pth, write_pth},
     {".pt", read_pth, write_pth},
     {".bin", read_pth, nullptr},
     {".pkl", read_pth, nullptr},
     {".npz", read_npz, write_npz}}};

const Format* format_of(const std::filesystem::path& file) {
  for (const auto& format : kFormats)
    if (file.extension() == format.extension) return &format;
  return nullptr;
}

}  // namespace

NamedTensors read_weights(const std::filesystem::path& file) {
  if (std::filesystem::is_directory(file)) return read_safetensors(file / "model.safetensors");
  if (!std::filesystem::exists(file)) throw Error(file.string() + ": there is no such file");
  if (const auto* format = format_of(file)) return format->read(file);
  throw Error(file.string() +
              ": weights come as .safetensors, .pth, .pkl, .npz or as a checkpoint folder");
}

void check_writable_format(const std::filesystem::path& file) {
  const auto* format = format_of(file);
  if (!format || !format->write)
    throw ConfigError(file.string() + ": weights are written as .safetensors, .pth or .npz");
}

void write_weights(const std::filesystem::path& file, const NamedTensors& tensors) {
  check_writable_format(file);
  format_of(file)->write(file, tensors);
}

}  // namespace millrace
