// Assigns batches to servers. Pure bookkeeping; for one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace millrace::serving {

/// Distributes the numbers head, head + 1, ... over servers: each number is requested from the
/// server with the earliest expected answer. Requests to a server that leaves are sent to another,
/// lowest number first. If the head is overdue, a second server is asked too.
class Assignment {
 public:
  using Clock = std::chrono::steady_clock;

  /// Maximum open requests to one server.
  static constexpr std::size_t kCredit = 16;
  /// Maximum open requests to one server before its first answer.
  static constexpr std::size_t kFirstCredit = 2;
  /// Time after which an unanswered number is overdue.
  static constexpr std::chrono::seconds kOverdue{10};

  void join(int server);
  void leave(int server);

  struct Task {
    int server = 0;
    std::int64_t number = 0;
  };
  /// Returns the next request, among `window` numbers from the head; nullopt if all of them are
  /// requested or arrived, or no server has credit. Must be called until it returns nullopt.
  std::optional<Task> next(std::int64_t window, Clock::time_point now);

  /// Records an answer. Returns true if it is the first for a number that is needed.
  bool arrived(int server, std::int64_t number, Clock::time_point now);

  /// Records that a request to this server, or its answer, was lost; the number is requested again.
  void lost(int server, std::int64_t number);

  /// Records that the consumer has taken the head's batch.
  void advance();
  std::int64_t head() const { return head_; }

  /// Returns the number of open requests to a server.
  std::size_t asked(int server) const;
  bool has_servers() const { return !servers_.empty(); }
  /// Returns the open requests to all servers, with their times.
  std::map<std::int64_t, Clock::time_point> waiting() const;

 private:
  struct Server {
    std::map<std::int64_t, Clock::time_point> asked;
    Clock::time_point answered;
    double mean_s = 0;  // between answers while requests are open; 0 = unknown

    std::size_t credit() const { return mean_s > 0 ? kCredit : kFirstCredit; }
    double expected_s(Clock::time_point now) const;
  };

  void ask_again(std::int64_t number);
  std::vector<int> askers(std::int64_t number) const;
  std::optional<int> soonest(std::int64_t not_asked, Clock::time_point now) const;
  std::optional<std::int64_t> wanted(std::int64_t window) const;
  bool is_overdue(Clock::time_point now) const;

  std::map<int, Server> servers_;
  std::int64_t head_ = 0;
  std::int64_t next_new_ = 0;       // first number never requested
  std::set<std::int64_t> retry_;    // below `next_new_`: requested from servers that left
  std::set<std::int64_t> arrived_;  // arrived, not taken
};

}  // namespace millrace::serving
