// Which server is asked for which batch. Pure bookkeeping; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace millrace::serving {

/// Spreads the numbers head, head + 1, ... over servers: each goes to the server that is expected
/// to answer first. What was asked of a server that leaves is asked of another, lowest number
/// first. If the head is overdue, a second server is asked as well.
class Assignment {
 public:
  using Clock = std::chrono::steady_clock;

  /// Maximum asked of one server at once.
  static constexpr std::size_t kCredit = 16;
  /// The same, before its first answer.
  static constexpr std::size_t kFirstCredit = 2;
  /// When an unanswered number is overdue.
  static constexpr std::chrono::seconds kOverdue{10};

  void join(int server);
  void leave(int server);

  struct Task {
    int server = 0;
    std::int64_t number = 0;
  };
  /// The next to ask, among `window` numbers from the head on; nullopt if all of them are asked for
  /// or arrived, or no server may be asked. Call until it is nullopt.
  std::optional<Task> next(std::int64_t window, Clock::time_point now);

  /// Records an answer. Returns whether it is the first to a number that is wanted.
  bool arrived(int server, std::int64_t number, Clock::time_point now);

  /// An ask of this server, or its answer, was lost: the number is asked for again.
  void lost(int server, std::int64_t number);

  /// The consumer has taken the head's batch.
  void advance();
  std::int64_t head() const { return head_; }

  /// Asked of a server and not answered.
  std::size_t asked(int server) const;
  bool has_servers() const { return !servers_.empty(); }
  /// The same of all servers, and since when.
  std::map<std::int64_t, Clock::time_point> waiting() const;

 private:
  struct Server {
    std::map<std::int64_t, Clock::time_point> asked;
    Clock::time_point answered;
    double mean_s = 0;  // between answers, while there is something to answer; 0: unknown

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
  std::int64_t fresh_ = 0;        // never asked of anyone from here on
  std::set<std::int64_t> again_;  // below `fresh_`: asked of servers that have left
  std::set<std::int64_t> there_;  // arrived, not taken
};

}  // namespace millrace::serving
