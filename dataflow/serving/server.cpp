#include "millrace/dataflow/serving/server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/serving/facts.h"
#include "millrace/dataflow/serving/status.h"
#include "millrace/dataflow/store/batch_codec.h"

namespace millrace::serving {
namespace {

constexpr std::chrono::milliseconds kTick{200};
constexpr std::chrono::seconds kForgetAfter{10};  // timeout for a silent consumer
constexpr std::chrono::seconds kProgressEvery{10};
constexpr int kMostMessages = 100;  // messages received before ready batches are sent
// Maximum batches of a consumer in its socket; the digest of the next batch is computed just before
// it is sent, so that its bytes are in the CPU cache.
constexpr int kMostSending = 2;

/// Returns the pixels as a frame. `count` includes it until libzmq has sent it; then `over` is
/// signalled.
zmq::message_t frame_of(const Batch& batch, const std::shared_ptr<std::atomic<int>>& count,
                        const WakeUpCall& over) {
  struct Sending {
    ~Sending() {
      --*count;
      over.ring();
    }
    std::shared_ptr<std::uint8_t[]> pixels;
    std::shared_ptr<std::atomic<int>> count;
    const WakeUpCall& over;
  };
  ++*count;
  const auto let_go = [](void*, void* hint) { delete static_cast<Sending*>(hint); };
  return {batch.pixels.get(), batch.bytes(), let_go, new Sending{batch.pixels, count, over}};
}

/// Disables pacing on a TCP connection: on one host, congestion control that paces (BBR) would only
/// add delay.
void send_unpaced(std::int32_t connection) {
  constexpr std::string_view kUnpaced = "reno";  // available on every Linux
  // Has no effect on other or closed connections.
  static_cast<void>(::setsockopt(connection, IPPROTO_TCP, TCP_CONGESTION, kUnpaced.data(),
                                 static_cast<socklen_t>(kUnpaced.size())));
}

Failure failure_of(std::int64_t number, const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const DataError& problem) {
    return {number, Failure::kData, problem.what()};
  } catch (const ConfigError& problem) {
    return {number, Failure::kConfig, problem.what()};
  } catch (const std::exception& problem) {
    return {number, Failure::kError, problem.what()};
  }
}

}  // namespace

BatchServer::BatchServer(StartStream start, Facts facts, std::int64_t epoch_size,
                         const ServerOptions& options)
    : start_(std::move(start)),
      facts_(std::move(facts)),
      epoch_size_(epoch_size),
      most_consumers_(options.most_consumers),
      memory_(options.memory),
      socket_(context_, options.listen) {}

ServerReport BatchServer::report() const {
  auto report = done_;
  report.consumers = consumers_.size();
  for (const auto& [id, consumer] : consumers_) report.asked += std::ssize(consumer.owed);
  return report;
}

void BatchServer::run(const std::function<bool()>& go_on) {
  logged_at_ = Clock::now();
  images_.add(0);
  while (go_on()) {
    socket_.wait(ready_.descriptor(), kTick);
    socket_.handle_events([this](std::int32_t connection) {
      forget_if("closed its connection", [connection](const Consumer& consumer) {
        return consumer.connection == connection;
      });
    });
    const ServerSocket::OnMessage on_message = [this](const auto&... said) {
      handle_message(said...);
    };
    for (int i = 0; i < kMostMessages && socket_.receive(on_message); ++i) continue;
    if (ready_.answer()) send_ready();
    const auto now = Clock::now();
    forget_if("silent for too long",
              [now](const Consumer& consumer) { return now - consumer.heard > kForgetAfter; });
    take_back_loans();
    if (now - logged_at_ > kProgressEvery) log_progress(now);
  }
}

template <class Which>
void BatchServer::forget_if(const char* why, Which which) {
  std::erase_if(consumers_, [&](const auto& entry) {
    if (!which(entry.second)) return false;
    log_info("dropped consumer {}: {}", entry.second.name, why);
    return true;
  });
}

void BatchServer::greet(const std::string& from, std::int32_t connection, const Hello& hello) {
  forget_if("reconnected",
            [&](const Consumer& consumer) { return consumer.name == hello.consumer; });
  consumers_.erase(from);
  if (const auto differs = difference(hello.facts, facts_); !differs.empty())
    return socket_.reject(from, "other data", hello.consumer,
                          {"this server has other data: " + differs, true});
  if (consumers_.size() >= most_consumers_)
    return socket_.reject(
        from, "too many consumers", hello.consumer,
        {fmt::format("this server already has {} consumers (trainer serve --consumers)",
                     consumers_.size())});
  reclaim_loans_except(hello.consumer, hello.held);
  Consumer consumer{hello.consumer, connection, hello.stream, nullptr, {}, Clock::now()};
  try {
    consumer.flow = start_(hello.stream, [this] { ready_.ring(); });
  } catch (const Error& problem) {
    return socket_.reject(from, "invalid stream", hello.consumer, {problem.what(), true});
  }
  const auto& [rank, ranks] = hello.stream.share;
  log_info("consumer {}: rank {} of {}, seed {}, starting at position {}", hello.consumer, rank,
           ranks, hello.stream.seed, hello.stream.start.next);
  consumers_.emplace(from, std::move(consumer));
  if (is_local(socket_.endpoint())) send_unpaced(connection);
  socket_.send(from, Welcome{facts_, epoch_size_, memory_ ? memory_->probe() : std::nullopt});
}

void BatchServer::handle_message(const std::string& from, std::int32_t connection,
                                 const Message& message) {
  if (const auto* hello = std::get_if<Hello>(&message)) return greet(from, connection, *hello);
  if (const auto* asked = std::get_if<AskStatus>(&message)) {
    socket_.send(from, Status{asked->number, status()});
    return;
  }
  const auto* ask = std::get_if<Ask>(&message);
  const auto* release = std::get_if<Release>(&message);
  const auto* bye = std::get_if<Bye>(&message);
  const auto* ping = std::get_if<Ping>(&message);
  if (!ask && !release && !bye && !ping)
    throw DataError("message", "a consumer does not send this");
  auto* consumer = known(from);
  if (!consumer) return;
  if (release) {
    for (const auto piece : release->pieces) loans_[consumer->name].pieces.erase(piece);
  } else if (bye) {
    reclaim_loans_except(consumer->name, bye->held);
    log_info("consumer {} finished", consumer->name);
    consumers_.erase(from);
  } else if (ping) {
    socket_.send(from, Pong{ping->number, {consumer->owed.begin(), consumer->owed.end()}});
  } else if (consumer->owed.size() + ask->numbers.size() > kMostCredit) {
    const auto name = consumer->name;
    consumers_.erase(from);
    socket_.reject(from, "too many requests", name,
                   {fmt::format("more than {} batches were requested at once", kMostCredit)});
  } else {
    consumer->process = ask->shared_with;
    for (const auto number : ask->numbers)
      if (consumer->owed.insert(number).second) consumer->flow->ask(number);
  }
}

/// Returns the consumer and records its sign of life; if it is unknown, requests a hello and
/// returns nullptr.
BatchServer::Consumer* BatchServer::known(const std::string& id) {
  const auto found = consumers_.find(id);
  if (found == consumers_.end()) {
    socket_.send(id, Stranger{});
    return nullptr;
  }
  found->second.heard = Clock::now();
  return &found->second;
}

/// Returns the status of a data server (docs/runs.md).
std::string BatchServer::status() const {
  auto json = process_status();
  const auto report = this->report();
  json["images_per_s"] = images_.per_second();
  json["batches"] = report.batches;
  json["sent_bytes"] = report.bytes;
  json["asked"] = report.asked;
  json["consumers"] = nlohmann::ordered_json::array();
  const auto now = Clock::now();
  for (const auto& [id, consumer] : consumers_)
    json["consumers"].push_back(
        {{"consumer", consumer.name},
         {"rank", consumer.stream.share.rank},
         {"ranks", consumer.stream.share.ranks},
         {"asked", consumer.owed.size()},
         {"sign_of_life_s", std::chrono::duration<double>(now - consumer.heard).count()},
         {"work", work_status(consumer.flow->report())}});
  return status_text(json);
}

void BatchServer::send_ready() {
  for (auto entry = consumers_.begin(); entry != consumers_.end();) {
    auto& [id, consumer] = *entry;
    bool is_there = true;
    while (is_there && *consumer.sending < kMostSending) {
      auto made = consumer.flow->take();
      if (!made) break;
      consumer.owed.erase(made->number);
      is_there = made->item ? send(id, consumer, *made)
                            : socket_.send(id, failure_of(made->number, made->failure));
    }
    entry = is_there ? std::next(entry) : consumers_.erase(entry);
  }
}

/// Lends the pixels to a consumer on this host, if possible.
std::optional<SharedPiece> BatchServer::lend(const Consumer& consumer, const Batch& batch) {
  if (!memory_ || consumer.process <= 0) return std::nullopt;
  auto& loan = loans_[consumer.name];
  loan.process = consumer.process;
  if (loan.pieces.size() >= kMostCredit) return std::nullopt;
  const auto piece = memory_->find(batch.pixels.get(), batch.bytes(), ++pieces_);
  if (piece) loan.pieces.emplace(piece->piece, batch.pixels);
  return piece;
}

/// Takes back pieces that a consumer no longer holds.
void BatchServer::reclaim_loans_except(const std::string& consumer,
                                       const std::vector<std::int64_t>& held) {
  std::erase_if(loans_[consumer].pieces,
                [&](const auto& loan) { return !std::ranges::count(held, loan.first); });
}

/// Takes back pieces lent to processes that have exited; silent processes may still read theirs.
void BatchServer::take_back_loans() {
  std::erase_if(loans_, [this](const auto& entry) {
    const auto& [name, loan] = entry;
    const bool is_here =
        std::ranges::any_of(consumers_, [of = name](const auto& c) { return c.second.name == of; });
    return !is_here && (loan.pieces.empty() || !is_running(loan.process));
  });
}

bool BatchServer::send(const std::string& to, const Consumer& consumer, const Made<Batch>& made) {
  const auto& [batch, cursor, epoch, progress, number] = *made.item;
  const auto header = encode_header(batch);
  const auto piece = lend(consumer, batch);
  const BatchHead head{
      number, cursor, epoch, progress, made.skipped, {header.begin(), header.end()}, piece};
  if (!socket_.send(to, head, piece ? zmq::send_flags::none : zmq::send_flags::sndmore)) {
    if (piece) loans_[consumer.name].pieces.erase(piece->piece);
    return false;
  }
  if (!piece)
    socket_.socket().send(frame_of(batch, consumer.sending, ready_), zmq::send_flags::none);
  ++done_.batches;
  images_.add(static_cast<double>(batch.size()));
  done_.bytes += static_cast<std::int64_t>(batch.bytes());
  return true;
}

void BatchServer::log_progress(Clock::time_point now) {
  const auto seconds = std::chrono::duration<double>(now - std::exchange(logged_at_, now)).count();
  const auto report = this->report();
  const auto rate = [seconds](std::int64_t is, std::int64_t was) {
    return static_cast<double>(is - was) / seconds;
  };
  log_info("{}, {:.1f} batches/s, {}/s, {} requested",
           counted(static_cast<long long>(report.consumers), "consumer"),
           rate(report.batches, logged_.batches), byte_text(rate(report.bytes, logged_.bytes)),
           report.asked);
  if (const auto refusals = socket_.take_refusals(); !refusals.empty())
    log_warning("refused so far: {}", refusals);
  logged_ = report;
}

}  // namespace millrace::serving
