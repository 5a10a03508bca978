#include "millrace/dataflow/serving/gathering.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <climits>

namespace millrace::serving {

void Gathering::open(int descriptor) {
  close();
  connection_ = UniqueFd(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
}

void Gathering::close() {
  end();
  connection_ = UniqueFd();
}

void Gathering::begin(std::size_t bytes, Clock::time_point now) {
  if (!connection_ || until_) return;
  until_ = now + kFor;
  tell_from(bytes);
}

void Gathering::end() {
  if (!until_) return;
  until_.reset();
  tell_from(1);
}

void Gathering::tell_from(std::size_t bytes) {
  // The kernel takes less where its buffer is smaller.
  const auto least = static_cast<int>(std::min<std::size_t>(bytes, INT_MAX));
  // No matter if the connection has just gone.
  static_cast<void>(
      ::setsockopt(connection_.get(), SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)));
}

}  // namespace millrace::serving
