#include "millrace/weights/pth.h"

#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>

#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <unordered_map>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/weights/archive.h"
#include "millrace/weights/pickled_state.h"
#include "millrace/weights/tensor_bytes.h"
#include "millrace/weights/tensor_types.h"

namespace millrace {
namespace {

/// Where the values of torch's storages lie.
class Storages {
 public:
  virtual ~Storages() = default;

  /// The size of a storage in bytes. Throws Error where there is none of that key.
  virtual std::uint64_t size(std::string_view key) const = 0;
  /// Reads a storage of that size.
  virtual void read(std::string_view key, void* to) const = 0;
};

/// Throws where the bytes that a file has for a tensor are not those that its shape and type take.
void check_size(std::uint64_t has, std::optional<std::uint64_t> takes) {
  if (!takes || *takes != has)
    throw Error("its shape and type do not match the " + std::to_string(has) +
                " bytes that the file has for it");
}

/// Every described tensor; each storage is read once.
class TensorMaker {
 public:
  explicit TensorMaker(const Storages& storages) : storages_(storages) {}

  NamedTensors all(const std::vector<PickledTensor>& described) {
    NamedTensors tensors;
    for (const auto& one : described) try {
        tensors.emplace_back(one.name, one.storage.key.empty() ? array(one) : view(one));
      } catch (const Error& problem) {
        throw Error("tensor '" + one.name.substr(0, 200) + "': " + problem.what());
      }
    return tensors;
  }

 private:
  at::Tensor view(const PickledTensor& one) {
    const auto type = type_named(&TensorType::torch, one.storage.type);
    auto& storage = read_[one.storage.key];
    if (!storage.defined()) {
      const std::array shape{one.storage.count};
      check_size(storages_.size(one.storage.key), byte_count(shape, bytes_type(type)));
      auto bytes = at::empty(shape, bytes_type(type));
      if (bytes.numel() > 0) storages_.read(one.storage.key, bytes.mutable_data_ptr());
      storage = of_type(bytes, type);
    }
    if (storage.numel() != one.storage.count || storage.scalar_type() != type)
      throw Error("it shares a storage with a tensor that gives it another type or size");
    return at::as_strided(storage, one.shape, one.strides, one.offset).contiguous();
  }

  static at::Tensor array(const PickledTensor& one) {
    const auto type = type_named(&TensorType::numpy, one.array_type);
    check_size(one.array_bytes.size(), byte_count(one.shape, bytes_type(type)));
    auto bytes = at::empty(one.shape, bytes_type(type));
    if (bytes.numel() > 0)
      std::memcpy(bytes.mutable_data_ptr(), one.array_bytes.data(), one.array_bytes.size());
    return of_type(bytes, type);
  }

  const Storages& storages_;
  std::unordered_map<std::string_view, at::Tensor> read_;
};

/// ARCHIVE/data.pkl beside ARCHIVE/data/KEY, and ARCHIVE/byteorder.
class ZipStorages final : public Storages {
 public:
  explicit ZipStorages(const Archive& archive) : archive_(archive) {
    constexpr std::string_view kPickle = "data.pkl";
    for (std::size_t i = 0; i < archive.entries().size(); ++i)
      by_name_[archive.entries()[i].name] = i;
    for (const auto& [name, place] : by_name_)
      if (name == kPickle || name.ends_with("/data.pkl"))
        folder_ = name.substr(0, name.size() - kPickle.size());
    if (!by_name_.contains(folder_ + std::string(kPickle)))
      throw Error("it is an archive without a data.pkl: torch.save did not write it");
    if (by_name_.contains(folder_ + "byteorder") && text("byteorder") != "little")
      throw Error("its numbers are in big-endian order; store it on a little-endian machine");
  }

  /// A member's bytes.
  std::string text(std::string_view name) const {
    const auto full = folder_ + std::string(name);
    std::string bytes(archive_.entries()[by_name_.at(full)].bytes, '\0');
    archive_.open(by_name_.at(full)).read(bytes.data(), bytes.size());
    return bytes;
  }

  std::uint64_t size(std::string_view key) const override {
    return archive_.entries()[place(key)].bytes;
  }

  void read(std::string_view key, void* to) const override {
    archive_.open(place(key)).read(to, size(key));
  }

 private:
  std::size_t place(std::string_view key) const {
    const auto found = by_name_.find(folder_ + "data/" + std::string(key));
    if (found == by_name_.end())
      throw Error("the archive has no 'data/" + std::string(key.substr(0, 40)) + "' for it");
    return found->second;
  }

  const Archive& archive_;
  std::map<std::string, std::size_t> by_name_;
  std::string folder_;  // "" or "archive/"
};

/// The stream that torch wrote until 1.6: pickles of a magic number, a version, the machine, the
/// object, the keys of the storages; then for each key the number of its values, and they
/// themselves.
class StreamStorages final : public Storages {
 public:
  StreamStorages(std::string_view bytes, const Pickle& keys, std::size_t first,
                 const Pickle& object)
      : bytes_(bytes) {
    std::unordered_map<std::string_view, std::uint64_t> widths;
    for (const auto& value : object.values())
      if (value.kind == PickleValue::Kind::persistent) {
        const auto storage = storage_of(value);
        widths[storage.key] = c10::elementSize(type_named(&TensorType::torch, storage.type));
      }
    auto at = first;
    for (const auto* key : keys.root().items) {
      const auto width = widths.find(key->text);
      if (width == widths.end())
        throw Error("it has a storage that nothing in it uses, of unknown type");
      std::uint64_t count = 0;
      const auto left = bytes.size() - at;
      if (left < sizeof count) throw Error("it ends too early: storages are missing");
      std::memcpy(&count, bytes.data() + at, sizeof count);
      at += sizeof count;
      if (count > (left - sizeof count) / width->second)
        throw Error("it ends too early, within a storage of " + std::to_string(count) + " values");
      places_[key->text] = {at, count * width->second};
      at += count * width->second;
    }
  }

  std::uint64_t size(std::string_view key) const override { return place(key).second; }

  void read(std::string_view key, void* to) const override {
    const auto [first, size] = place(key);
    std::memcpy(to, bytes_.data() + first, size);
  }

 private:
  std::pair<std::size_t, std::size_t> place(std::string_view key) const {
    const auto found = places_.find(key);
    if (found == places_.end()) throw Error("the file has no storage for it");
    return found->second;
  }

  std::string_view bytes_;
  std::unordered_map<std::string_view, std::pair<std::size_t, std::size_t>> places_;
};

NamedTensors read_zip(const std::filesystem::path& file) {
  const Archive archive(file);
  const ZipStorages storages(archive);
  const auto bytes = storages.text("data.pkl");
  const Pickle pickle(bytes);
  return TensorMaker(storages).all(state_of(pickle.root()));
}

constexpr std::string_view kStreamMagic = "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.";

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
  if (little && little->integer == 0)
    throw Error("its numbers are in big-endian order; store it on a little-endian machine");
  const auto object = next();
  const auto keys = next();
  const StreamStorages storages(bytes, keys, at, object);
  return TensorMaker(storages).all(state_of(object.root()));
}

/// Arrays that lie in the pickle itself.
NamedTensors read_arrays(std::string_view bytes) {
  struct None final : Storages {
    std::uint64_t size(std::string_view) const override {
      throw Error("it is a tensor of torch outside of a file of torch");
    }
    void read(std::string_view, void*) const override {}
  };
  const Pickle pickle(bytes);
  return TensorMaker(None{}).all(state_of(pickle.root()));
}

// Pickling: just what a dict of tensors takes.

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
    throw Error("is no file of torch, and no pickle");
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
