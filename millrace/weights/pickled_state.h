// The tensors of a pickled checkpoint: what they are called, and where their values lie. No torch
// here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/weights/pickle.h"

namespace millrace {

/// A storage that a pickle speaks of.
struct PickledStorage {
  std::string_view type;  // "torch.FloatStorage"
  std::string_view key;
  std::int64_t count = 0;  // values
};

/// A tensor as a pickle describes it: a view of a storage that lies elsewhere (torch), or an array
/// whose bytes are in the pickle (NumPy). The view has been checked to lie within its storage.
/// Texts point into the pickle.
struct PickledTensor {
  std::string name;
  std::vector<std::int64_t> shape;

  PickledStorage storage;  // no key: an array
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;  // values

  std::string_view array_type;   // "f4"
  std::string_view array_bytes;  // in C order
};

/// Reads a persistent id, as torch writes them: ('storage', type, key, place, count, ...). Throws
/// Error where it is none.
PickledStorage storage_of(const PickleValue& id);

/// The tensors of the state dict in a pickle, in its order: the dict itself, or the one that a
/// checkpoint keeps under "model", "state_dict", "model_state", "model_state_dict" or "blobs".
/// Entries that are no tensors are left out. Throws Error naming the tensor and what is wrong with
/// it, or saying what the pickle has instead of tensors.
std::vector<PickledTensor> state_of(const PickleValue& root);

}  // namespace millrace
