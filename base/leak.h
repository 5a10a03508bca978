// Objects that are deliberately never destroyed.
#pragma once

#include <memory>

namespace millrace {

/// Keeps an object until the process ends. For objects whose destructor would wait for a thread
/// that cannot end, as in a forked child or after a failed data flow.
template <class T>
void leak(std::unique_ptr<T> object) {
  static_cast<void>(object.release());
}

}  // namespace millrace
