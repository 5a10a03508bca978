// A proxy between a data server and its consumers that drops, corrupts, duplicates and delays
// messages.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <zmq.hpp>

namespace millrace::testing {

/// Probability of each fault per message, in both directions.
struct WireFaults {
  double drop = 0, corrupt = 0, duplicate = 0, delay = 0;
  std::chrono::milliseconds delay_by{50};
  unsigned seed = 1;
};

/// Forwards messages between the server at `server` and the consumers that connect to `listen`, and
/// injects the given faults. Runs a thread until it is destroyed.
class FaultyProxy {
 public:
  FaultyProxy(const std::string& listen, std::string server, const WireFaults& faults)
      : server_(std::move(server)), faults_(faults), random_(faults.seed) {
    front_.set(zmq::sockopt::linger, 0);
    front_.bind(listen);
    thread_ = std::thread([this] {
      while (!stop_) forward();
    });
  }
  ~FaultyProxy() {
    stop_ = true;
    thread_.join();
  }
  FaultyProxy(const FaultyProxy&) = delete;

  /// Returns the number of faults injected so far.
  int faults() const { return count_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Frames = std::vector<std::string>;
  struct Travelling {
    Clock::time_point until;
    std::string consumer;
    bool to_server;
    Frames frames;
  };

  static constexpr std::size_t kEnvelope = 26;  // Bytes before the checksummed body of a message.

  static Frames receive(zmq::socket_t& socket) {
    Frames frames;
    zmq::message_t part;
    do {
      if (!socket.recv(part, zmq::recv_flags::dontwait)) break;
      frames.push_back(part.to_string());
    } while (part.more());
    return frames;
  }

  static void send(zmq::socket_t& socket, const Frames& frames) {
    for (std::size_t i = 0; i < frames.size(); ++i)
      static_cast<void>(socket.send(zmq::buffer(frames[i]), i + 1 < frames.size()
                                                                ? zmq::send_flags::sndmore
                                                                : zmq::send_flags::none));
  }

  bool chance(double probability) {
    const bool is_so = std::uniform_real_distribution<>()(random_) < probability;
    count_ += is_so;
    return is_so;
  }

  void damage(Frames& frames) {
    auto& frame = frames[random_() % frames.size()];
    const auto before = &frame == &frames.front() ? kEnvelope : 0;
    if (frame.size() > before) frame[before + random_() % (frame.size() - before)] ^= 0x10;
  }

  void enter(const std::string& consumer, bool to_server, Frames frames) {
    if (chance(faults_.drop)) return;
    if (chance(faults_.corrupt)) damage(frames);
    const bool is_doubled = chance(faults_.duplicate);
    auto until = Clock::now();
    if (chance(faults_.delay)) until += faults_.delay_by;
    if (is_doubled) travelling_.push_back({Clock::now(), consumer, to_server, frames});
    travelling_.push_back({until, consumer, to_server, std::move(frames)});
  }

  zmq::socket_t& server_of(const std::string& consumer) {
    const auto found = servers_.find(consumer);
    if (found != servers_.end()) return found->second;
    auto& socket =
        servers_.emplace(consumer, zmq::socket_t(context_, zmq::socket_type::dealer)).first->second;
    socket.set(zmq::sockopt::linger, 0);
    socket.connect(server_);
    return socket;
  }

  void forward() {
    std::vector<zmq::pollitem_t> items = {{front_.handle(), 0, ZMQ_POLLIN, 0}};
    for (auto& [consumer, socket] : servers_) items.push_back({socket.handle(), 0, ZMQ_POLLIN, 0});
    zmq::poll(items, std::chrono::milliseconds(travelling_.empty() ? 50 : 2));
    for (auto frames = receive(front_); frames.size() > 1; frames = receive(front_)) {
      const auto consumer = frames.front();
      enter(consumer, true, {frames.begin() + 1, frames.end()});
    }
    for (auto& [consumer, socket] : servers_)
      for (auto frames = receive(socket); !frames.empty(); frames = receive(socket))
        enter(consumer, false, std::move(frames));
    const auto now = Clock::now();
    for (auto& [until, consumer, to_server, frames] : travelling_) {
      if (until > now) continue;
      if (!to_server) frames.insert(frames.begin(), consumer);
      send(to_server ? server_of(consumer) : front_, frames);
    }
    std::erase_if(travelling_, [now](const auto& message) { return message.until <= now; });
  }

  const std::string server_;
  const WireFaults faults_;
  std::mt19937_64 random_;
  zmq::context_t context_;
  zmq::socket_t front_{context_, zmq::socket_type::router};
  std::map<std::string, zmq::socket_t>
      servers_;                         // One connection per consumer, by its ZeroMQ identity.
  std::vector<Travelling> travelling_;  // Messages in order of arrival.
  std::atomic<int> count_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace millrace::testing
