// Throws an exception while it is loaded.
#include <stdexcept>

namespace {

int complain() { throw std::runtime_error("the licence has expired"); }
const int value = complain();

}  // namespace
