#include <fmt/format.h>
#include <unistd.h>
#include <zmq.h>

#include <array>
#include <deque>
#include <filesystem>
#include <stop_token>
#include <thread>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/dataflow/serving/remote_flow.h"
#include "millrace/dataflow/serving/server.h"
#include "tests/bench/serving/batches.h"
#include "tests/bench/serving/process.h"
#include "tests/bench/serving/transports.h"

namespace millrace::bench {
namespace {

/// Yields ready batches in turn. The `epoch` of each delivery is the time when the batch became
/// ready.
class Ready final : public NumberedFlow<Batch> {
 public:
  Ready(const std::vector<Batch>& batches, double rate, WakeUp wake)
      : batches_(batches), rate_(rate), wake_(std::move(wake)) {}

  void ask(std::int64_t number) override {
    asked_.push_back(number);
    if (rate_ == 0) return wake_();
    if (pace_) return;
    pace_.emplace(rate_);
    ticker_ = std::jthread([this](std::stop_token stop) {
      for (std::int64_t k = 1; !stop.stop_requested(); ++k) {
        std::this_thread::sleep_until(pace_->at(k));
        wake_();
      }
    });
  }

  std::optional<Made<Batch>> take() override {
    if (asked_.empty()) return std::nullopt;
    auto ready = Clock::now();
    if (pace_) {
      if (pace_->at(given_ + 1) > ready) return std::nullopt;
      ready = pace_->at(++given_);
    }
    const auto k = asked_.front();
    asked_.pop_front();
    const auto& batch = batches_[static_cast<std::size_t>(k) % batches_.size()];
    return Made<Batch>{
        k, Delivery<Batch>{batch, {k, {}}, ready.time_since_epoch().count(), 0, k}, nullptr, {}};
  }

  std::int64_t epoch_size() const override { return 1000; }
  FlowReport report() const override { return {}; }

 private:
  const std::vector<Batch>& batches_;
  const double rate_;
  const WakeUp wake_;
  std::deque<std::int64_t> asked_;
  std::int64_t given_ = 0;
  std::optional<Pace> pace_;
  std::jthread ticker_;
};

serving::KeyPair new_key_pair() {
  std::array<char, 41> public_key{}, secret_key{};
  if (::zmq_curve_keypair(public_key.data(), secret_key.data()) != 0)
    throw Error("libzmq is built without CURVE");
  return {public_key.data(), secret_key.data()};
}

class DataServers final : public Transport {
 public:
  explicit DataServers(const Load& load) : load_(load) {
    if (load.transport == "curve") keys_ = {new_key_pair(), new_key_pair()};
    for (int k = 0; k < load.servers; ++k) {
      const auto endpoint = this->endpoint(k);
      servers_.emplace_back([&] { serve(endpoint); });
      endpoints_.push_back(endpoint);
    }
  }
  ~DataServers() override {
    servers_.clear();
    for (const auto& endpoint : endpoints_)
      if (endpoint.starts_with("ipc://")) std::filesystem::remove(endpoint.substr(6));
  }

  Take connect() override {
    serving::ConnectOptions options{.servers = endpoints_};
    if (keys_) options.keys = {keys_->first.public_key, keys_->second};
    const std::shared_ptr flow = serving::connect_flow(options);
    return [flow, batch = std::optional<Delivery<Batch>>()]() mutable {
      batch.reset();
      batch = flow->next();
      return Taken{static_cast<std::int64_t>(batch->value.bytes()),
                   Clock::time_point(Clock::duration(batch->epoch))};
    };
  }
  std::vector<pid_t> servers() const override {
    std::vector<pid_t> ids;
    for (const auto& server : servers_) ids.push_back(server.id());
    return ids;
  }

 private:
  std::string endpoint(int k) const {
    return load_.transport == "tcp" || load_.transport == "curve"
               ? fmt::format("tcp://127.0.0.1:{}", 20'000 + (::getpid() + 64 * k) % 20'000)
               : fmt::format("ipc:///tmp/bench-serving-{}-{}", ::getpid(), k);
  }

  void serve(const std::string& endpoint) const {
    const auto memory =
        load_.transport == "shared" ? std::make_shared<serving::SharedMemory>() : nullptr;
    const auto batches = make_batches(memory ? BufferPool(memory->source()) : BufferPool());
    serving::ServerOptions options{.listen = {.bind = endpoint}, .memory = memory};
    if (keys_) {
      options.listen.keys = keys_->first;
      options.listen.allowed = {keys_->second.public_key};
    }
    serving::BatchServer server(
        [&](const serving::Stream&, WakeUp wake) {
          return std::make_unique<Ready>(batches, load_.made, std::move(wake));
        },
        {}, 1000, options);
    server.run([] { return true; });
  }

  const Load load_;
  // keys of a server and of a consumer
  std::optional<std::pair<serving::KeyPair, serving::KeyPair>> keys_;
  std::vector<std::string> endpoints_;
  std::vector<ServingProcess> servers_;
};

}  // namespace

std::unique_ptr<Transport> open_data_servers(const Load& load) {
  return std::make_unique<DataServers>(load);
}

}  // namespace millrace::bench
