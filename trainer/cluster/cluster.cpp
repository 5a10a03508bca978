#include "millrace/trainer/cluster/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "millrace/base/clock.h"
#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/process/exit_codes.h"
#include "millrace/trainer/cluster/mpi_world.h"

namespace millrace {
Cluster::Cluster() = default;

Cluster::Cluster(std::unique_ptr<MpiWorld> world)
    : world_(std::move(world)),
      rank_(world_->rank()),
      size_(world_->size()),
      local_rank_(world_->local_rank()),
      local_size_(world_->local_size()) {}

Cluster::~Cluster() = default;

const Cluster& Cluster::alone() {
  static const Cluster alone;
  return alone;
}

int Cluster::run(const std::function<int(const Cluster&)>& work) {
  return MpiWorld::is_mpi_process() ? run_with_world(work) : work(alone());
}

int Cluster::run_with_world(const std::function<int(const Cluster&)>& work) {
  const Cluster cluster(std::make_unique<MpiWorld>());
  set_process_name(cluster.name(), cluster.is_chief());
  const auto fail = [&](const char* what, int exit_code) {
    // An invalid configuration is invalid on every rank; give rank 0 time to report it alone.
    if (exit_code == kWrongUse && !cluster.is_chief())
      std::this_thread::sleep_for(std::chrono::seconds(1));
    log_error("{}", what);
    cluster.world_->abort(exit_code);
  };
  try {
    const auto codes = cluster.gather("end", std::to_string(work(cluster)));
    int highest = 0;
    for (const auto& code : codes) highest = std::max(highest, std::stoi(code));
    return highest;
  } catch (const ConfigError& problem) {
    fail(problem.what(), kWrongUse);
  } catch (const std::exception& problem) {
    fail(problem.what(), kFailed);
  } catch (...) {
    fail("an exception was thrown that is not a std::exception", kFailed);
  }
  return kFailed;
}

std::string Cluster::name(std::int64_t rank) const {
  return world_ ? world_->name(static_cast<int>(rank)) : "the only rank";
}

std::vector<std::string> Cluster::gather(std::string_view what, std::string_view mine) const {
  ++exchanges_;
  if (!world_) return {std::string(mine)};
  const auto began = Clock::now();
  auto all = world_->gather(what, mine);
  waited_s_ += seconds_since(began);
  return all;
}

std::string Cluster::broadcast(std::string_view what, std::string_view mine) const {
  return gather(what, is_chief() ? mine : std::string_view()).front();
}

std::vector<double> Cluster::numbers(std::string_view what, std::span<const double> mine) const {
  if (!world_) {
    ++exchanges_;
    return {mine.begin(), mine.end()};
  }
  const std::string_view bytes(reinterpret_cast<const char*>(mine.data()), mine.size_bytes());
  std::vector<double> numbers;
  for (const auto& theirs : gather(what, bytes)) {
    if (theirs.size() != bytes.size())
      throw Error(fmt::format("{} sent {} numbers in '{}', {} sent {}", name(), mine.size(), what,
                              name(static_cast<std::int64_t>(numbers.size() / mine.size())),
                              theirs.size() / sizeof(double)));
    numbers.resize(numbers.size() + mine.size());
    std::memcpy(numbers.data() + numbers.size() - mine.size(), theirs.data(), theirs.size());
  }
  return numbers;
}

void Cluster::set_timeout(double seconds) const {
  if (world_) world_->set_timeout(seconds);
}

void Cluster::set_ending() const {
  if (world_) world_->set_ending();
}

void Cluster::set_place(std::string place) const {
  if (world_) world_->set_place(std::move(place));
}

}  // namespace millrace
