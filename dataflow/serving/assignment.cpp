#include "millrace/dataflow/serving/assignment.h"

#include <algorithm>
#include <cmath>

namespace millrace::serving {

void Assignment::join(int server) { servers_.try_emplace(server); }

void Assignment::leave(int server) {
  const auto left = servers_.extract(server);
  if (left.empty()) return;
  for (const auto& [number, when] : left.mapped().asked) ask_again(number);
}

void Assignment::lost(int server, std::int64_t number) {
  const auto found = servers_.find(server);
  if (found != servers_.end() && found->second.asked.erase(number) > 0) ask_again(number);
}

void Assignment::ask_again(std::int64_t number) {
  if (number >= head_ && !arrived_.contains(number) && askers(number).empty())
    retry_.insert(number);
}

/// Returns the expected time until it answers one more request. The mean halves with each idle
/// second, so that a server that was slow once is tried again.
double Assignment::Server::expected_s(Clock::time_point now) const {
  if (!asked.empty()) return static_cast<double>(asked.size() + 1) * mean_s;
  return mean_s * std::exp2(-std::chrono::duration<double>(now - answered).count());
}

std::optional<int> Assignment::soonest(std::int64_t not_asked, Clock::time_point now) const {
  std::optional<int> best;
  double least = 0;
  for (const auto& [name, server] : servers_) {
    if (server.asked.size() >= server.credit() || server.asked.contains(not_asked)) continue;
    const auto expected = server.expected_s(now);
    if (best && expected >= least) continue;
    best = name;
    least = expected;
  }
  return best;
}

std::optional<std::int64_t> Assignment::wanted(std::int64_t window) const {
  if (!retry_.empty()) return *retry_.begin();
  if (next_new_ < head_ + window) return next_new_;
  return std::nullopt;
}

bool Assignment::is_overdue(Clock::time_point now) const {
  if (arrived_.contains(head_)) return false;
  const auto of = askers(head_);
  return of.size() == 1 && now - servers_.at(of.front()).asked.at(head_) > kOverdue;
}

std::optional<Assignment::Task> Assignment::next(std::int64_t window, Clock::time_point now) {
  const auto number = is_overdue(now) && soonest(head_, now) ? head_ : wanted(window);
  if (!number) return std::nullopt;
  const auto server = soonest(*number, now);
  if (!server) return std::nullopt;
  retry_.erase(*number);
  next_new_ = std::max(next_new_, *number + 1);
  servers_.at(*server).asked.emplace(*number, now);
  return Task{*server, *number};
}

bool Assignment::arrived(int name, std::int64_t number, Clock::time_point now) {
  if (const auto found = servers_.find(name); found != servers_.end()) {
    auto& server = found->second;
    if (const auto asked = server.asked.find(number); asked != server.asked.end()) {
      const std::chrono::duration<double> took = now - std::max(server.answered, asked->second);
      server.mean_s = std::max(
          1e-6, server.mean_s == 0 ? took.count() : 0.8 * server.mean_s + 0.2 * took.count());
      server.answered = now;
      server.asked.erase(asked);
    }
  }
  if (number < head_ || number >= next_new_) return false;
  retry_.erase(number);
  return arrived_.insert(number).second;
}

void Assignment::advance() { arrived_.erase(head_++); }

std::size_t Assignment::asked(int server) const {
  const auto found = servers_.find(server);
  return found == servers_.end() ? 0 : found->second.asked.size();
}

std::map<std::int64_t, Assignment::Clock::time_point> Assignment::waiting() const {
  std::map<std::int64_t, Clock::time_point> result;
  for (const auto& [name, server] : servers_)
    for (const auto& [number, when] : server.asked) {
      const auto [place, is_new] = result.emplace(number, when);
      if (!is_new) place->second = std::min(place->second, when);
    }
  return result;
}

/// Returns the servers with an open request for a number.
std::vector<int> Assignment::askers(std::int64_t number) const {
  std::vector<int> result;
  for (const auto& [name, server] : servers_)
    if (server.asked.contains(number)) result.push_back(name);
  return result;
}

}  // namespace millrace::serving
