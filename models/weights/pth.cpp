#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <unordered_map>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/models/weights/archive.h"
#include "millrace/models/weights/formats.h"
#include "millrace/models/weights/pickled_state.h"
#include "millrace/models/weights/tensor_types.h"

namespace millrace {
namespace {

/// Returns the bytes of a storage. Throws Error if the key is not found.
using FindStorage = std::function<std::string(std::string_view key)>;

at::Tensor read_storage(std::string_view stored, at::IntArrayRef shape, at::ScalarType type) {
  if (byte_count(shape, bytes_type(type)) != stored.size())
    throw Error("its shape and type do not match the " + std::to_string(stored.size()) +
                " bytes in the file");
  auto bytes = at::empty(shape, bytes_type(type));
  if (bytes.numel() > 0) std::memcpy(bytes.mutable_data_ptr(), stored.data(), stored.size());
  return of_type(bytes, type);
}

/// Reads all described tensors; each storage is read once.
NamedTensors read_tensors(const std::vector<PickledTensor>& described, const FindStorage& find) {
  std::unordered_map<std::string_view, at::Tensor> storages;
  const auto view = [&](const PickledTensor& one) {
    const auto type = type_named(&TensorType::torch, one.storage.type);
    auto& storage = storages[one.storage.key];
    if (!storage.defined())
      storage = read_storage(find(one.storage.key), {one.storage.count}, type);
    if (storage.numel() != one.storage.count || storage.scalar_type() != type)
      throw Error("another tensor declares its storage with another type or size");
    return at::as_strided(storage, one.shape, one.strides, one.offset).contiguous();
  };
  NamedTensors tensors;
  const auto array = [](const PickledTensor& one) {
    return in_c_order(read_storage(one.array_bytes, stored_shape(one.shape, one.fortran_order),
                                   type_named(&TensorType::numpy, one.array_type)),
                      one.fortran_order);
  };
  for (const auto& one : described) try {
      tensors.emplace_back(one.name, one.storage.key.empty() ? array(one) : view(one));
    } catch (const Error& problem) {
      throw Error("tensor '" + one.name.substr(0, 200) + "': " + problem.what());
    }
  return tensors;
}

/// Reads an archive of FOLDER/data.pkl, FOLDER/data/KEY and FOLDER/byteorder.
NamedTensors read_zip(const std::filesystem::path& file) {
  constexpr std::string_view kPickle = "data.pkl";
  const Archive archive(file);
  std::map<std::string, std::size_t> entries;  // by name
  for (std::size_t i = 0; i < archive.entries().size(); ++i) entries[archive.entries()[i].name] = i;
  std::string folder;  // "" or "archive/"
  for (const auto& [name, entry] : entries)
    if (name == kPickle || name.ends_with("/data.pkl"))
      folder = name.substr(0, name.size() - kPickle.size());
  const auto found_pickle = entries.find(folder + std::string(kPickle)),
             order = entries.find(folder + "byteorder");
  if (found_pickle == entries.end())
    throw Error("it is an archive without data.pkl, not written by torch.save");
  if (order != entries.end() && archive.read(order->second) != "little")
    throw Error(std::string(kBigEndian));
  const auto bytes = archive.read(found_pickle->second);
  const Pickle pickle(bytes);
  return read_tensors(state_of(pickle.root()), [&](std::string_view key) {
    const auto found = entries.find(folder + "data/" + std::string(key));
    if (found == entries.end())
      throw Error("'data/" + std::string(key.substr(0, 40)) + "' not found in the archive");
    return archive.read(found->second);
  });
}

constexpr std::string_view kStreamMagic = "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.";

/// Reads the format of torch before 1.6: pickles of a magic number, a version, the machine, the
/// object and the keys of the storages; then for each key the number of its values, and the values.
NamedTensors read_stream(std::string_view bytes) {
  auto at = kStreamMagic.size();
  const auto next = [&] {
    Pickle pickle(bytes.substr(at), at);
    at += pickle.size();
    return pickle;
  };
  next();  // the version of the format, which never changed
  const auto machine = next();
  const auto* little = machine.root().find("little_endian");
  if (little && little->integer == 0) throw Error(std::string(kBigEndian));
  const auto object = next();
  const auto keys = next();

  std::unordered_map<std::string_view, std::uint64_t> widths;
  for (const auto& value : object.values())
    if (value.kind == PickleValue::Kind::persistent) {
      const auto storage = storage_of(value);
      widths[storage.key] = c10::elementSize(type_named(&TensorType::torch, storage.type));
    }
  std::unordered_map<std::string_view, std::string_view> storages;
  for (const auto* key : keys.root().items) {
    const auto width = widths.find(key->text);
    if (width == widths.end()) throw Error("it contains an unused storage of unknown type");
    std::uint64_t count = 0;
    const auto left = bytes.size() - at;
    if (left < sizeof count) throw Error("it is truncated: storages are missing");
    std::memcpy(&count, bytes.data() + at, sizeof count);
    at += sizeof count;
    if (count > (left - sizeof count) / width->second)
      throw Error("it is truncated within a storage of " + std::to_string(count) + " values");
    storages[key->text] = bytes.substr(at, count * width->second);
    at += count * width->second;
  }
  return read_tensors(state_of(object.root()), [&](std::string_view key) {
    const auto found = storages.find(key);
    if (found == storages.end()) throw Error("its storage was not found in the file");
    return std::string(found->second);
  });
}

/// Reads arrays whose bytes are in the pickle itself.
NamedTensors read_arrays(std::string_view bytes) {
  const Pickle pickle(bytes);
  return read_tensors(state_of(pickle.root()), [](std::string_view) -> std::string {
    throw Error("it is a torch tensor, but torch.save did not write the file");
  });
}

template <typename T>
std::string little_endian(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string pickled(std::string_view text) {
  return "X" + little_endian(static_cast<std::uint32_t>(text.size())) + std::string(text);
}

std::string pickled(std::int64_t value) {
  if (value <= std::numeric_limits<std::int32_t>::max())
    return "J" + little_endian(static_cast<std::int32_t>(value));
  return "\x8a\x08" + little_endian(value);  // LONG1
}

std::string pickled(at::IntArrayRef values) {
  std::string text = "(";
  for (const auto value : values) text += pickled(value);
  return text + "t";
}

std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}

std::string pickled(const NamedTensors& tensors) {
  const auto empty_dict = global("collections", "OrderedDict") + ")R";
  auto text = "\x80\x02" + empty_dict + "(";
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor] = tensors[i];
    const auto type = name_of(&TensorType::torch, tensor.scalar_type());
    const auto dot = type.find('.');
    text += pickled(name) + global("torch._utils", "_rebuild_tensor_v2") + "(";
    text += "(" + pickled("storage") + global(type.substr(0, dot), type.substr(dot + 1)) +
            pickled(std::to_string(i)) + pickled("cpu") + pickled(tensor.numel()) + "tQ";
    text += pickled(std::int64_t{0}) + pickled(tensor.sizes()) + pickled(tensor.strides());
    text += "\x89" + empty_dict + "tR";
  }
  return text + "u.";
}

}  // namespace

NamedTensors read_pth(const std::filesystem::path& file) {
  const auto mapped = map_file(file);
  const std::string_view bytes(reinterpret_cast<const char*>(mapped.data.get()), mapped.size);
  try {
    if (bytes.starts_with("PK")) return read_zip(file);
    if (bytes.starts_with(kStreamMagic)) return read_stream(bytes);
    if (bytes.starts_with("\x80")) return read_arrays(bytes);
    if (bytes.size() > 8 && bytes[8] == '{')
      throw Error("is a safetensors file; rename it to .safetensors");
    if (bytes.ends_with('.') && std::string_view("(c]}").find(bytes[0]) != std::string_view::npos)
      throw Error("is a pickle of protocol 0 or 1; save it with protocol 2 or later");
    throw Error("is neither a torch file nor a pickle");
  } catch (const Error& problem) {
    throw Error(file.string() + ": " + problem.what());
  }
}

void write_pth(const std::filesystem::path& file, const NamedTensors& tensors) {
  NamedTensors plain;
  for (const auto& [name, tensor] : tensors)
    plain.emplace_back(name, tensor.detach().cpu().contiguous());
  const auto pickle = pickled(plain);
  ArchiveParts parts = {{"archive/data.pkl", pickle}, {"archive/byteorder", "little"}};
  for (std::size_t i = 0; i < plain.size(); ++i)
    parts.emplace_back("archive/data/" + std::to_string(i),
                       std::string_view(static_cast<const char*>(plain[i].second.const_data_ptr()),
                                        plain[i].second.nbytes()));
  parts.emplace_back("archive/version", "3\n");
  write_archive(file, parts);
}

}  // namespace millrace
