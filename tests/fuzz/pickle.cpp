// Pickles: any bytes are decoded to a tree or rejected with an Error; each tensor in the tree is a
// view within its storage.
#include "millrace/models/weights/pickle.h"

#include "millrace/base/errors.h"
#include "millrace/models/weights/pickled_state.h"
#include "tests/fuzz/laws.h"

namespace millrace::fuzz {
namespace {

/// Computes the offset of the last value as torch does, but with 128 bits.
void expect_view_within_storage(const PickledTensor& tensor) {
  MILLRACE_LAW(tensor.strides.size() == tensor.shape.size());
  MILLRACE_LAW(tensor.storage.count >= 0 && tensor.offset >= 0);
  __int128 last = tensor.offset, total = 1;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    MILLRACE_LAW(tensor.shape[i] >= 0 && tensor.strides[i] >= 0);
    if (tensor.shape[i] == 0) return;
    last += static_cast<__int128>(tensor.shape[i] - 1) * tensor.strides[i];
    total *= tensor.shape[i];
    MILLRACE_LAW(total <= tensor.storage.count);
  }
  MILLRACE_LAW(last < tensor.storage.count);
}

}  // namespace

void check(Input input) {
  const std::string_view bytes = input.rest();
  try {
    const Pickle pickle(bytes);
    MILLRACE_LAW(pickle.size() <= bytes.size());
    MILLRACE_LAW(pickle.values().size() <= bytes.size());
    for (const auto& tensor : state_of(pickle.root()))
      if (!tensor.storage.key.empty()) {
        expect_view_within_storage(tensor);
      } else {
        MILLRACE_LAW(tensor.array_bytes.size() <= bytes.size());
      }
  } catch (const Error& error) {
    MILLRACE_LAW(*error.what() != '\0');
  }
}

}  // namespace millrace::fuzz
