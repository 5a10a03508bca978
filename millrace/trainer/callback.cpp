#include "millrace/trainer/callback.h"

namespace millrace {

Registry<CallbackFactory>& callbacks() {
  static Registry<CallbackFactory> registry("callback");
  return registry;
}

}  // namespace millrace
