// The callbacks of one run, called as one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/callback.h"

namespace millrace {

class CallbackList {
 public:
  void add(std::string name, std::unique_ptr<Callback> callback);

  /// Calls every callback that runs on this rank. Where some throw, the others are still called,
  /// each failure is logged with the callback's name and `hook`, and the first is thrown again.
  void each(const char* hook, bool is_chief, const std::function<void(Callback&)>& call);

  /// State by callback name; those without any are left out.
  std::map<std::string, std::string> save_states() const;
  /// Throws Error naming the callback that cannot use what it is given.
  void load_states(const std::map<std::string, std::string>& states);

 private:
  struct Named {
    std::string name;
    std::unique_ptr<Callback> callback;
  };
  std::vector<Named> all_;
};

}  // namespace millrace
