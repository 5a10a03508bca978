#include "millrace/models/weights/pickled_state.h"

#include <algorithm>
#include <array>
#include <optional>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"

namespace millrace {
namespace {

using Kind = PickleValue::Kind;

std::int64_t count_of(const PickleValue& value) {
  if (value.kind != Kind::integer || value.integer < 0)
    throw Error("a size, stride or offset is not a non-negative integer");
  return value.integer;
}

std::vector<std::int64_t> counts_of(const PickleValue& described) {
  constexpr std::size_t kMostDimensions = 16;
  const bool is_size = described.function() == "torch.Size" && described.arguments().size() == 1;
  const auto& value = is_size ? *described.arguments()[0] : described;
  if ((value.kind != Kind::tuple && value.kind != Kind::list) ||
      value.items.size() > kMostDimensions)
    throw Error("its shape or strides are not a list of up to 16 numbers");
  std::vector<std::int64_t> counts;
  for (const auto* item : value.items) counts.push_back(count_of(*item));
  return counts;
}

/// Returns the product of a shape's sides. Throws Error if it is too large for any tensor.
std::int64_t product(const std::vector<std::int64_t>& shape) {
  std::int64_t total = 1;
  for (const auto side : shape)
    if (__builtin_mul_overflow(total, side > 0 ? side : 1, &total))
      throw Error("its shape is too large");
  return std::ranges::count(shape, 0) > 0 ? 0 : total;
}

/// Throws Error if a view is not within its storage, or repeats values of it.
void check_view(const PickledTensor& tensor) {
  if (tensor.strides.size() != tensor.shape.size())
    throw Error("it has " + counted(std::ssize(tensor.shape), "dimension") + " but " +
                counted(std::ssize(tensor.strides), "stride"));
  const auto total = product(tensor.shape);
  if (total == 0) return;
  std::int64_t last = tensor.offset;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    std::int64_t step = 0;
    if (__builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &step) ||
        __builtin_add_overflow(last, step, &last))
      throw Error("its strides are too large");
  }
  if (last >= tensor.storage.count || total > tensor.storage.count)
    throw Error("it exceeds its storage of " + counted(tensor.storage.count, "value"));
}

/// Reads _rebuild_tensor_v2(storage, offset, shape, strides, ...).
PickledTensor torch_tensor(const std::vector<const PickleValue*>& arguments) {
  if (arguments.size() < 4) throw Error("its description is not in torch's format");
  PickledTensor tensor;
  tensor.offset = count_of(*arguments[1]);
  tensor.shape = counts_of(*arguments[2]);
  tensor.strides = counts_of(*arguments[3]);
  tensor.storage = storage_of(*arguments[0]);
  // Until torch 0.4, a storage could be a view of another one: (key, offset, count).
  if (const auto& id = arguments[0]->items[0]->items; id.size() > 5 && !id[5]->items.empty()) {
    const auto& view = id[5]->items;
    if (view.size() != 3 ||
        __builtin_add_overflow(tensor.offset, count_of(*view[1]), &tensor.offset))
      throw Error("its view of a storage is not in torch's format");
  }
  check_view(tensor);
  return tensor;
}

/// Reads dtype('f4', ...) with the state (version, '<', ...).
std::string_view array_type(const PickleValue& value) {
  const auto& arguments = value.arguments();
  if (value.function() != "numpy.dtype" || arguments.empty() || arguments[0]->kind != Kind::text)
    throw Error("its type is not in NumPy's format");
  const auto* state = value.state;
  if (state && state->kind == Kind::tuple && state->items.size() > 1 &&
      state->items[1]->text == ">")
    throw Error("its bytes are in big-endian order; save it on a little-endian machine");
  return arguments[0]->text;
}

PickledTensor array(const PickleValue& shape, const PickleValue& type, bool fortran_order,
                    const PickleValue& bytes) {
  PickledTensor tensor;
  tensor.shape = counts_of(shape);
  product(tensor.shape);
  tensor.array_type = array_type(type);
  tensor.fortran_order = fortran_order;
  if (bytes.kind != Kind::text) throw Error("it contains Python objects instead of numbers");
  tensor.array_bytes = bytes.text;
  return tensor;
}

/// Returns nullopt if the value is not a tensor.
std::optional<PickledTensor> tensor_of(const PickleValue& value) {
  const auto* inner = &value;
  if (value.function() == "torch._utils._rebuild_parameter" && !value.arguments().empty())
    inner = value.arguments()[0];
  const auto function = inner->function();
  const auto& arguments = inner->arguments();
  if (function == "torch._utils._rebuild_tensor_v2" || function == "torch._utils._rebuild_tensor")
    return torch_tensor(arguments);
  if (function == "torch._utils._rebuild_tensor_v3")  // last argument: a type without storages
    throw Error("unknown type '" +
                std::string(arguments.size() > 6 ? arguments[6]->text : std::string_view()) +
                "'; save it as fp32, fp16 or bf16");
  if (function.ends_with("multiarray._reconstruct")) {
    // its state: (version, shape, type, is Fortran order, bytes)
    const auto* state = inner->state;
    if (!state || state->kind != Kind::tuple || state->items.size() != 5)
      throw Error("its description is not in NumPy's format");
    const auto& part = state->items;
    return array(*part[1], *part[2], part[3]->integer != 0, *part[4]);
  }
  if (function.ends_with("numeric._frombuffer")) {  // protocol 5: (bytes, type, shape, order)
    if (arguments.size() != 4) throw Error("its description is not in NumPy's format");
    return array(*arguments[2], *arguments[1], arguments[3]->text != "C", *arguments[0]);
  }
  return {};
}

/// Returns the dict of tensors: `root`, or a dict inside it.
const PickleValue& state_dict_in(const PickleValue& root) {
  constexpr std::array kKeys = {"model", "state_dict", "model_state", "model_state_dict", "blobs"};
  constexpr int kDeepest = 3;
  const auto* found = &root;
  for (int depth = 0; depth < kDeepest; ++depth) {
    const PickleValue* inner = nullptr;
    for (const auto* key : kKeys)
      if (const auto* value = found->find(key); !inner && value && value->kind == Kind::dict)
        inner = value;
    if (!inner) break;
    found = inner;
  }
  return *found;
}

std::string keys_of(const PickleValue& dict) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i + 1 < dict.items.size() && keys.size() < 5; i += 2)
    keys.emplace_back(dict.items[i]->text.substr(0, 40));
  return keys.empty() ? "none" : joined(keys);
}

}  // namespace

PickledStorage storage_of(const PickleValue& id) {
  if (id.kind == Kind::persistent && id.items[0]->kind == Kind::tuple)
    if (const auto& part = id.items[0]->items;
        part.size() >= 5 && part[0]->text == "storage" && part[1]->kind == Kind::global &&
        part[2]->kind == Kind::text && !part[2]->text.empty())
      return {part[1]->text, part[2]->text, count_of(*part[4])};
  throw Error("its storage is not in torch's format");
}

std::vector<PickledTensor> state_of(const PickleValue& root) {
  const auto& dict = state_dict_in(root);
  if (dict.kind != Kind::dict)
    throw Error(
        "it contains no dict of tensors; save one with torch.save(model.state_dict(), ...)");
  std::vector<PickledTensor> tensors;
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    if (dict.items[i]->kind != Kind::text) continue;
    const auto name = std::string(dict.items[i]->text);
    try {
      auto tensor = tensor_of(*dict.items[i + 1]);
      if (!tensor) continue;
      tensor->name = name;
      tensors.push_back(std::move(*tensor));
    } catch (const Error& problem) {
      throw Error("tensor '" + name.substr(0, 200) + "': " + problem.what());
    }
  }
  if (tensors.empty())
    throw Error("it contains no tensors (keys: " + keys_of(dict) +
                "); save a state dict with torch.save(model.state_dict(), ...)");
  return tensors;
}

}  // namespace millrace
