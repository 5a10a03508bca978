// The tensors of a pickled checkpoint: their names and the locations of their values. Independent
// of torch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/models/weights/pickle.h"

namespace millrace {

/// A storage that a pickle refers to.
struct PickledStorage {
  std::string_view type;  // "torch.FloatStorage"
  std::string_view key;
  std::int64_t count = 0;  // number of values
};

/// A tensor as described by a pickle: a view of a storage outside the pickle (torch), checked to be
/// within it, or an array with its bytes in the pickle (NumPy). Texts point into the pickle.
struct PickledTensor {
  std::string name;
  std::vector<std::int64_t> shape;

  PickledStorage storage;  // empty key = an array
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;  // in values

  std::string_view array_type;  // "f4"
  std::string_view array_bytes;
  bool fortran_order = false;  // the first dimension varies fastest
};

/// Reads a persistent id of torch: ('storage', type, key, device, count, ...). Throws Error for
/// anything else.
PickledStorage storage_of(const PickleValue& id);

/// Returns the tensors of the state dict in a pickle, in its order: the dict itself, or the one
/// under "model", "state_dict", "model_state", "model_state_dict" or "blobs". Other entries are
/// skipped. Throws Error naming the tensor and the problem, or the content of a pickle without
/// tensors.
std::vector<PickledTensor> state_of(const PickleValue& root);

}  // namespace millrace
