#include "millrace/trainer/cluster/mpi_world.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <thread>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/events/last_events.h"
#include "millrace/base/log.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/base/text.h"

namespace millrace {
namespace {

constexpr int kQueryTag = 1;          // MPI tag
constexpr double kQueryTimeoutS = 1;  // timeout for answers
constexpr double kShownWaitS = 0.1;   // seconds; a longer wait is shown to other threads
// Seconds from a signal to the warning; mpirun kills a second after the signal.
constexpr double kNoticeAfterSignalS = 0.3;
// Timeout in seconds, enough for work that only one rank does.
constexpr double kTimeoutAfterSignalS = 120;
constexpr std::size_t kAnswer = 512;  // bytes per answer

/// A message of the first exchange of a gather, which also contains a short text.
struct Slot {
  std::uint64_t bytes = 0;
  std::array<char, 32> what{};  // name of the call
  std::array<char, 216> text{};
};

/// Yields at first; later sleeps for a time that grows with the wait.
void pause(double waited_s) {
  if (waited_s < 200e-6)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(waited_s / 10, 500e-6)));
}

}  // namespace

void check_mpi(int code, std::string_view what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error(fmt::format("{}: MPI reported: {}", what, std::string_view(text.data(), length)));
}

bool MpiWorld::is_mpi_process() {
  const auto started = environment("OMPI_COMM_WORLD_SIZE");
  if (!started.empty()) return started != "1";
  const auto tasks = environment("SLURM_STEP_NUM_TASKS");  // set by srun; unset in a batch script
  if (tasks.empty() || tasks == "1") return !environment("PMIX_RANK").empty();
  if (environment("PMIX_RANK").empty())
    throw ConfigError(
        fmt::format("srun started {} tasks without PMIx, so they cannot connect to each other; "
                    "start them with srun --mpi=pmix",
                    tasks));
  return true;
}

MpiWorld::MpiWorld() {
  int level = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "starting MPI");
  if (level < MPI_THREAD_MULTIPLE) throw Error("this MPI does not support MPI_THREAD_MULTIPLE");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);

  MPI_Comm host = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host),
            "finding the ranks of this host");
  MPI_Comm_rank(host, &local_rank_);
  MPI_Comm_size(host, &local_size_);
  MPI_Comm_free(&host);

  std::array<char, 64> mine{};
  ::gethostname(mine.data(), mine.size() - 1);
  std::vector<char> all(mine.size() * static_cast<std::size_t>(size_));
  check_mpi(MPI_Allgather(mine.data(), mine.size(), MPI_CHAR, all.data(), mine.size(), MPI_CHAR,
                          MPI_COMM_WORLD),
            "exchanging the hosts' names");
  for (std::size_t i = 0; i < all.size(); i += mine.size()) hosts_.emplace_back(all.data() + i);
  agreements_ = communicator();
  queries_ = communicator();
}

MpiWorld::~MpiWorld() {
  for (auto& communicator : communicators_) MPI_Comm_free(&communicator);
  MPI_Finalize();
}

MPI_Comm MpiWorld::communicator() {
  MPI_Comm made = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &made), "creating a communicator");
  communicators_.push_back(made);
  return made;
}

std::string MpiWorld::name(int rank) const {
  return fmt::format("rank {} ({})", rank, hosts_[static_cast<std::size_t>(rank)]);
}

void MpiWorld::set_place(std::string place) {
  const std::lock_guard lock(mutex_);
  place_ = std::move(place);
}

std::string MpiWorld::place() {
  const std::lock_guard lock(mutex_);
  return place_or_start();
}

std::vector<std::string> MpiWorld::gather(std::string_view what, std::string_view mine) {
  const Exchange exchange(*this, what);
  const auto in_slot = std::min(mine.size(), sizeof(Slot::text));
  Slot own{.bytes = mine.size()};
  what.copy(own.what.data(), own.what.size() - 1);
  mine.copy(own.text.data(), in_slot);
  std::vector<Slot> slots(hosts_.size());
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallgather(&own, sizeof(Slot), MPI_BYTE, slots.data(), sizeof(Slot), MPI_BYTE,
                           agreements_, &request),
            what);
  wait({&request, 1}, what);
  const auto others = static_cast<std::int64_t>(size_ - 1);
  count(others * static_cast<std::int64_t>(sizeof(Slot)),
        others * static_cast<std::int64_t>(sizeof(Slot)));

  std::vector<std::string> texts;
  std::vector<int> counts, starts;
  std::size_t total = 0;
  for (const auto& [bytes, call, text] : slots) {
    if (call != own.what)
      throw Error(fmt::format("{} is in '{}', {} in '{}'; all ranks must make the same calls",
                              name(rank_), what, name(static_cast<int>(texts.size())),
                              call.data()));
    texts.emplace_back(text.data(), std::min<std::size_t>(bytes, text.size()));
    starts.push_back(static_cast<int>(total));
    counts.push_back(static_cast<int>(bytes - texts.back().size()));
    total += bytes - texts.back().size();
    if (total > std::numeric_limits<int>::max())
      throw Error(fmt::format("{}: cannot gather more than 2 GiB", what));
  }
  if (total == 0) return texts;
  std::string rest(total, '\0');
  const auto left = mine.substr(in_slot);
  check_mpi(MPI_Iallgatherv(left.data(), static_cast<int>(left.size()), MPI_BYTE, rest.data(),
                            counts.data(), starts.data(), MPI_BYTE, agreements_, &request),
            what);
  wait({&request, 1}, what);
  count(others * static_cast<std::int64_t>(left.size()),
        static_cast<std::int64_t>(total - left.size()));
  for (std::size_t i = 0; i < texts.size(); ++i)
    texts[i].append(rest, static_cast<std::size_t>(starts[i]), static_cast<std::size_t>(counts[i]));
  return texts;
}

MpiWorld::Exchange::Exchange(MpiWorld& world, std::string_view what)
    : world_(world), received_(world.received_) {
  std::int64_t number = 0;
  std::string place;
  {
    const std::lock_guard lock(world_.mutex_);
    place = world_.place_or_start();
    const auto found = world_.exchanges_.find(what);
    if (found == world_.exchanges_.end())
      world_.exchanges_.emplace(what, 1);
    else
      number = found->second++;
  }
  event_.emplace(EventKind::exchange, what, place, number);
}

MpiWorld::Exchange::~Exchange() { event_->set_bytes(world_.received_ - received_); }

/// Makes a wait visible to other threads during its lifetime.
class MpiWorld::Wait {
 public:
  Wait(MpiWorld& world, std::string_view what, Clock::time_point since) : world_(world) {
    const std::lock_guard lock(world_.mutex_);
    at_ = world_.waitings_.insert(world_.waitings_.end(),
                                  Waiting{std::string(what), world_.place_or_start(), since});
  }
  ~Wait() {
    const std::lock_guard lock(world_.mutex_);
    world_.waitings_.erase(at_);
  }
  Wait(const Wait&) = delete;

 private:
  MpiWorld& world_;
  std::list<Waiting>::iterator at_;
};

std::optional<MpiWorld::Waiting> MpiWorld::waiting() {
  const std::lock_guard lock(mutex_);
  const auto longest = std::ranges::min_element(waitings_, {}, &Waiting::since);
  if (longest == waitings_.end()) return std::nullopt;
  return *longest;
}

void MpiWorld::wait(std::span<MPI_Request> requests, std::string_view what) {
  const auto since = Clock::now();
  std::optional<Wait> seen;
  bool noticed = false;
  for (;;) {
    int done = 0;
    check_mpi(
        MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
        what);
    if (done) return;
    const auto waited = seconds_since(since);
    if (!seen && waited > kShownWaitS) seen.emplace(*this, what, since);
    if (waited > timeout_s_) abort_wait(what, fmt::format("after {}", duration_text(waited)));
    if (const auto signal = StopSignals::received(); !signal.empty() && !is_ending_) {
      const auto after = std::min(waited, StopSignals::seconds_ago());
      if (after > kNoticeAfterSignalS && !std::exchange(noticed, true))
        log_warning("received {} while waiting for the other ranks in '{}' of {}", signal, what,
                    place());
      if (after > kTimeoutAfterSignalS)
        abort_wait(what, fmt::format("{} after {}", duration_text(after), signal));
    }
    pause(waited);
  }
}

/// Returns what each waiting rank waits for.
std::map<int, std::string> MpiWorld::query_waiting_ranks(const std::string& here) {
  std::array<char, kAnswer> mine{};
  here.copy(mine.data(), mine.size() - 1);
  std::vector<MPI_Request> sent(static_cast<std::size_t>(size_), MPI_REQUEST_NULL);
  for (int to = 0; to < size_; ++to)
    if (to != rank_)
      MPI_Isend(mine.data(), mine.size(), MPI_CHAR, to, kQueryTag, queries_,
                &sent[static_cast<std::size_t>(to)]);
  std::map<int, std::string> answers = {{rank_, here}};
  const auto since = Clock::now();
  while (std::ssize(answers) < size_ && seconds_since(since) < kQueryTimeoutS) {
    int is_there = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, kQueryTag, queries_, &is_there, &status);
    if (!is_there) {
      pause(seconds_since(since));
      continue;
    }
    std::array<char, kAnswer> answer{};
    MPI_Recv(answer.data(), answer.size(), MPI_CHAR, status.MPI_SOURCE, kQueryTag, queries_,
             MPI_STATUS_IGNORE);
    answers[status.MPI_SOURCE] = answer.data();
  }
  return answers;
}

void MpiWorld::abort_wait(std::string_view what, const std::string& why) {
  const std::lock_guard lock(aborting_);  // only the first of several threads reports
  const auto here = fmt::format("'{}' of {}", what, place());
  write_last_events(fmt::format("gave up waiting in {} {}", here, why));
  const auto answers = query_waiting_ranks(here);
  std::vector<std::string> missing, elsewhere;
  for (int other = 0; other < size_; ++other) {
    const auto answer = answers.find(other);
    if (answer == answers.end())
      missing.push_back(name(other));
    else if (answer->second != here)
      elsewhere.push_back(fmt::format("{} is in {}", name(other), answer->second));
  }
  // The first of the waiting ranks reports for all.
  if (answers.begin()->first == rank_) {
    auto text = fmt::format("gave up waiting in {} {}", here, why);
    if (!missing.empty()) text += fmt::format("; no answer from: {}", fmt::join(missing, ", "));
    if (!elsewhere.empty()) text += fmt::format("; {}", fmt::join(elsewhere, ", "));
    if (missing.empty() && elsewhere.empty()) text += "; all ranks are waiting in it";
    log_error("{}; ending all ranks. Raise train.rank_timeout to allow slower steps", text);
  } else {
    // The reporting rank also ends this process.
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
  abort(1);
}

void MpiWorld::abort(int exit_code) {
  // Suppresses Open MPI's ten lines about MPI_Abort, since the cause has already been logged.
  // Setting its option orte_execute_quiet from the start would also hide why MPI_Init fails.
  if (auto* quiet = static_cast<bool*>(::dlsym(RTLD_DEFAULT, "orte_execute_quiet"))) *quiet = true;
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  ::_exit(exit_code);
}

}  // namespace millrace
