#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/dataflow/serving/assignment.h"
#include "tests/bench/serving/batches.h"
#include "tests/bench/serving/process.h"
#include "tests/bench/serving/transports.h"

namespace millrace::bench {
namespace {

struct Head {
  std::int64_t ready = 0, bytes = 0;
  std::uint64_t digest = 0;
};

void require(bool holds, const char* what) {
  if (!holds) throw Error(std::string("the bare socket cannot ") + what);
}

/// Sends both parts completely.
void send_all(int connection, Head head, const Batch& batch) {
  std::array<iovec, 2> parts = {{{&head, sizeof(head)}, {batch.pixels.get(), batch.bytes()}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const auto sent = ::sendmsg(connection, &message, MSG_NOSIGNAL);
  require(sent == static_cast<ssize_t>(sizeof(head) + batch.bytes()), "send");
}

void receive_all(int connection, void* to, std::size_t bytes) {
  require(::recv(connection, to, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes), "receive");
}

class BareSocket final : public Transport {
 public:
  explicit BareSocket(const Load& load)
      : load_(load), listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    auto* address = reinterpret_cast<sockaddr*>(&address_);
    require(listening_ && ::bind(listening_.get(), address, size) == 0 &&
                ::listen(listening_.get(), 1) == 0 &&
                ::getsockname(listening_.get(), address, &size) == 0,
            "listen");
    server_.emplace([this] { serve(); });
  }

  Take connect() override {
    const auto connection = std::make_shared<UniqueFd>(::socket(AF_INET, SOCK_STREAM, 0));
    require(::connect(connection->get(), reinterpret_cast<const sockaddr*>(&address_),
                      sizeof(address_)) == 0,
            "connect");
    // A consumer with a rate may have this many batches queued; at full speed it holds one.
    const std::size_t most = load_.taken > 0 ? serving::Assignment::kCredit : 1;
    return [=, pool = BufferPool(), is_checked = is_checked(),
            held = std::deque<std::shared_ptr<std::uint8_t[]>>()]() mutable {
      Head head;
      receive_all(connection->get(), &head, sizeof(head));
      if (held.size() == most) held.pop_front();
      const auto bytes = static_cast<std::size_t>(head.bytes);
      held.push_back(pool.acquire(bytes));
      receive_all(connection->get(), held.back().get(), bytes);
      if (is_checked) require(digest(held.back().get(), bytes) == head.digest, "keep the bytes");
      return Taken{head.bytes, Clock::time_point(Clock::duration(head.ready))};
    };
  }
  std::vector<pid_t> servers() const override { return {server_->id()}; }

 private:
  bool is_checked() const { return load_.transport == "checked"; }

  void serve() const {
    const auto batches = make_batches(BufferPool());
    const UniqueFd connection(::accept(listening_.get(), nullptr, nullptr));
    require(static_cast<bool>(connection), "accept");
    constexpr std::string_view kUnpaced = "reno";  // as in our data servers
    static_cast<void>(::setsockopt(connection.get(), IPPROTO_TCP, TCP_CONGESTION, kUnpaced.data(),
                                   static_cast<socklen_t>(kUnpaced.size())));
    const Pace pace(load_.made);
    for (std::int64_t k = 0;; ++k) {
      const auto& batch = batches[static_cast<std::size_t>(k) % batches.size()];
      if (load_.made > 0) std::this_thread::sleep_until(pace.at(k + 1));
      const auto ready = load_.made > 0 ? pace.at(k + 1) : Clock::now();
      send_all(connection.get(),
               {ready.time_since_epoch().count(), static_cast<std::int64_t>(batch.bytes()),
                is_checked() ? digest(batch.pixels.get(), batch.bytes()) : 0},
               batch);
    }
  }

  const Load load_;
  const UniqueFd listening_;
  sockaddr_in address_{};
  std::optional<ServingProcess> server_;
};

}  // namespace

std::unique_ptr<Transport> open_bare_socket(const Load& load) {
  if (load.consumers != 1 || load.servers != 1)
    throw ConfigError("a bare socket supports one consumer and one server");
  return std::make_unique<BareSocket>(load);
}

}  // namespace millrace::bench
