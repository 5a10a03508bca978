#include "millrace/dataflow/serving/remote_flow.h"

#include <fmt/format.h>

#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "millrace/base/clock.h"
#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/engine/skip_ledger.h"
#include "millrace/dataflow/serving/assignment.h"
#include "millrace/dataflow/serving/facts.h"
#include "millrace/dataflow/serving/link.h"
#include "millrace/dataflow/serving/polling.h"
#include "millrace/dataflow/serving/status.h"

namespace millrace::serving {
namespace {

constexpr std::chrono::milliseconds kPollEvery{200};
constexpr std::chrono::seconds kLogEvery{10};

/// Returns a random name that no other consumer has.
std::string new_name() {
  std::random_device random;
  return hex(std::uint64_t{random()} << 32 | random());
}

[[noreturn]] void raise(const Failure& failure) {
  if (failure.kind == Failure::kData) throw DataError(failure.why);
  if (failure.kind == Failure::kConfig) throw ConfigError(failure.why);
  throw Error(failure.why);
}

class RemoteFlow final : public ServedFlow {
 public:
  explicit RemoteFlow(ConnectOptions options) : options_(std::move(options)) {
    // Each link has its own name, since two endpoints may be one server.
    for (const auto& server : options_.servers)
      links_.push_back(std::make_unique<Link>(context_, server, options_.keys,
                                              Hello{new_name(), options_.stream, options_.facts}));
    ages_.resize(links_.size());
    received_.resize(links_.size());
    thread_ = std::thread([this] { run(); });
  }

  ~RemoteFlow() override {
    stop_ = true;
    call_.ring();
    thread_.join();
  }

  std::optional<Delivery<Batch>> next() override {
    std::unique_lock lock(mutex_);
    if (ended_) return std::nullopt;
    wait(lock, std::nullopt);
    if (!is_head_there()) {
      ended_ = true;
      std::rethrow_exception(failure_);
    }
    auto answer = std::move(ready_.extract(ready_.begin()).mapped());
    assignment_.advance();
    lock.unlock();
    call_.ring();
    try {
      if (answer.failure) raise(*answer.failure);
      for (const auto& skipped : answer.skipped) ledger().record(skipped);
    } catch (...) {
      lock.lock();
      ended_ = true;
      throw;
    }
    return std::move(answer.batch);
  }

  bool is_ready(std::chrono::milliseconds most) override {
    std::unique_lock lock(mutex_);
    wait(lock, most);
    return ended_ || failure_ || is_head_there();
  }

  std::int64_t epoch_size() const override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return epoch_size_ || failure_; });
    if (!epoch_size_) std::rethrow_exception(failure_);
    return *epoch_size_;
  }

  std::optional<Facts> facts() const override {
    const std::lock_guard lock(mutex_);
    return facts_;
  }

  FlowReport report() const override {
    const std::lock_guard lock(mutex_);
    FlowReport report;
    const auto now = Clock::now();
    for (std::size_t i = 0; i < links_.size(); ++i)
      report.stages.push_back({links_[i]->endpoint(), received_[i], 0,
                               static_cast<std::int64_t>(assignment_.asked(static_cast<int>(i)))});
    report.wait_s = std::chrono::duration<double>(waited_).count();
    for (const auto& [number, since] : assignment_.waiting())
      report.in_work.push_back({"data server", fmt::format("batch {}", number),
                                std::chrono::duration<double>(now - since).count()});
    if (ledger_) ledger_->report(report);
    return report;
  }

 private:
  bool is_head_there() const {
    return !ready_.empty() && ready_.begin()->first == assignment_.head();
  }

  void wait(std::unique_lock<std::mutex>& lock, std::optional<std::chrono::milliseconds> most) {
    const auto start = Clock::now();
    const auto is_over = [this] { return ended_ || failure_ || is_head_there(); };
    if (most)
      changed_.wait_for(lock, *most, is_over);
    else
      changed_.wait(lock, is_over);
    waited_ += Clock::now() - start;
  }

  /// Returns the ledger, which is created with the first batch, when the epoch's size is known.
  SkipLedger& ledger() {
    const std::lock_guard lock(mutex_);
    if (!ledger_) {
      const auto share =
          static_cast<double>(*epoch_size_) / static_cast<double>(options_.stream.share.ranks);
      ledger_.emplace(static_cast<std::int64_t>(std::ceil(options_.max_skipped * share)));
    }
    return *ledger_;
  }

  // Functions of the thread.

  void run() {
    try {
      answered_at_ = logged_at_ = Clock::now();
      while (!stop_) {
        poll();
        const auto now = Clock::now();
        for (std::size_t i = 0; i < links_.size(); ++i) poll_server(static_cast<int>(i), now);
        ask(now);
        check_servers(now);
      }
      {
        const std::lock_guard lock(mutex_);
        ready_.clear();
      }
      for (const auto& link : links_) link->leave();
    } catch (...) {
      end_with(std::current_exception());
    }
  }

  void poll() {
    std::vector<zmq::pollitem_t> items = {{nullptr, call_.descriptor(), ZMQ_POLLIN, 0}};
    for (const auto& link : links_) {
      items.push_back({link->socket().handle(), 0, ZMQ_POLLIN, 0});
      items.push_back({link->events().handle(), 0, ZMQ_POLLIN, 0});
    }
    zmq_poll(items.data(), static_cast<int>(items.size()), kPollEvery.count());
    call_.answer();
  }

  void poll_server(int server, Clock::time_point now) {
    auto& link = *links_[static_cast<std::size_t>(server)];
    link.poll(now, [&](Link::Answer answer) { keep_answer(server, std::move(answer), now); });
    const std::lock_guard lock(mutex_);
    for (const auto number : link.take_lost()) assignment_.lost(server, number);
    if (link.is_live()) agree(link);
    auto& age = ages_[static_cast<std::size_t>(server)];
    const auto is = link.is_live() ? link.age() : 0;
    if (age == is) return;
    age = is;
    assignment_.leave(server);
    if (!link.is_live()) return;
    assignment_.join(server);
    if (!epoch_size_) {
      epoch_size_ = link.epoch_size();
      changed_.notify_all();
    }
  }

  /// If the consumer does not have the data, requires all servers to have the facts of the first.
  void agree(Link& link) {
    if (!facts_) facts_ = link.facts();
    if (options_.facts.contains("samples") || link.facts() == *facts_) return;
    const auto what = difference(*facts_, link.facts());
    link.refuse("serves other data than the server that answered first: " +
                (what.empty() ? "it reports more facts" : what));
  }

  void keep_answer(int server, Link::Answer answer, Clock::time_point now) {
    {
      const std::lock_guard lock(mutex_);
      if (!assignment_.arrived(server, answer.number, now)) return;
      ++received_[static_cast<std::size_t>(server)];
      if (answer.batch) {
        const auto bytes = static_cast<std::int64_t>(answer.batch->value.bytes());
        largest_ = std::max(largest_, bytes);
        count_received(bytes);
      }
      const auto number = answer.number;
      ready_.emplace(number, std::move(answer));
    }
    changed_.notify_all();
  }

  void ask(Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    while (const auto task = assignment_.next(window(), now))
      links_[static_cast<std::size_t>(task->server)]->ask(task->number);
  }

  /// Returns the count of numbers from the head that may be requested or waiting.
  std::int64_t window() const {
    const auto most = static_cast<std::int64_t>(Assignment::kCredit * links_.size());
    return largest_ == 0 || options_.memory == 0
               ? most
               : std::clamp<std::int64_t>(options_.memory / largest_, 1, most);
  }

  /// Warns while no server is available, and ends the flow after the timeout.
  void check_servers(Clock::time_point now) {
    if (assignment_.has_servers()) {
      answered_at_ = logged_at_ = now;
      return;
    }
    std::vector<std::string> texts;
    for (const auto& link : links_) texts.push_back(link->text());
    const auto heard = joined(texts, "; ");
    if (std::ranges::all_of(links_, [](const auto& link) { return link->is_refused_for_good(); }))
      return end_with(std::make_exception_ptr(Error("all data servers refused: " + heard)));
    const auto without = now - answered_at_;
    if (without > options_.timeout)
      return end_with(std::make_exception_ptr(Error(
          fmt::format("no data server for {} (data.source_timeout): {}",
                      duration_text(std::chrono::duration<double>(without).count()), heard))));
    if (now - logged_at_ < kLogEvery) return;
    logged_at_ = now;
    log_warning("waiting up to {} more for a data server: {}",
                duration_text(std::chrono::duration<double>(options_.timeout - without).count()),
                heard);
  }

  void end_with(std::exception_ptr failure) {
    {
      const std::lock_guard lock(mutex_);
      failure_ = std::move(failure);
    }
    stop_ = true;
    changed_.notify_all();
  }

  const ConnectOptions options_;
  const WakeUpCall call_;
  std::atomic<bool> stop_ = false;

  // used only by the thread
  zmq::context_t context_ = new_context();
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::int64_t> ages_;  // 0 = not live
  Clock::time_point answered_at_, logged_at_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Assignment assignment_;
  std::map<std::int64_t, Link::Answer> ready_;
  std::vector<std::int64_t> received_;
  std::int64_t largest_ = 0;  // bytes of the largest batch
  std::optional<std::int64_t> epoch_size_;
  std::optional<Facts> facts_;  // of the first server that answered
  std::exception_ptr failure_;
  std::optional<SkipLedger> ledger_;
  Clock::duration waited_{};
  bool ended_ = false;

  std::thread thread_;
};

}  // namespace

std::unique_ptr<ServedFlow> connect_flow(ConnectOptions options) {
  return std::make_unique<RemoteFlow>(std::move(options));
}

}  // namespace millrace::serving
