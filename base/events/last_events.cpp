#include "millrace/base/events/last_events.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>

#include "millrace/base/clock.h"
#include "millrace/base/disk/private_folder.h"
#include "millrace/base/events/event_text.h"

namespace millrace {
namespace {

struct Deadly {
  int signal;
  std::string_view name;
};
constexpr std::array<Deadly, 5> kDeadly{{{SIGSEGV, "SIGSEGV"},
                                         {SIGBUS, "SIGBUS"},
                                         {SIGABRT, "SIGABRT"},
                                         {SIGFPE, "SIGFPE"},
                                         {SIGILL, "SIGILL"}}};
constexpr double kNewEnoughS = 10;  // a SIGTERM this soon after an error is a consequence of it

struct Where {
  LastEventsOptions options;
  std::string file, folder;  // absolute
  std::string name, part;    // names within the folder
  EventsOwner owner;
};

// Set before the handlers that read it are installed; kept after that because a handler may still
// run.
std::unique_ptr<Where> where;
std::atomic<const Where*> the_place = nullptr;
std::atomic<bool> is_being_written = false;
std::atomic<Clock::rep> written_at = 0;  // 0 = never
std::array<struct sigaction, kDeadly.size()> before;

void write_all(int fd, const char* text, std::size_t size) {
  while (size > 0) {
    const auto written = ::write(fd, text, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // such as a full disk; the part written so far remains
    text += written;
    size -= static_cast<std::size_t>(written);
  }
}

void say(std::string_view text) { write_all(STDERR_FILENO, text.data(), text.size()); }

void say_line(std::initializer_list<std::string_view> parts) {
  for (const auto part : parts) say(part);
  say("\n");
}

/// Opens the folder and creates it if it is missing.
UniqueFd open_folder(const Where& place) {
  const auto* folder = place.folder.c_str();
  if (place.options.is_private) {
    auto fd = open_private_folder(folder);
    if (!fd)
      say_line({place.options.name, ": cannot save the last events: ", place.folder,
                " is not a private folder of this user"});
    return fd;
  }
  ::mkdir(folder, 0777);
  return UniqueFd(::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/// The signal stack of the thread that creates it.
class SignalStack {
 public:
  SignalStack() {
    stack_t present{};
    if (::sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
    memory_ = std::make_unique_for_overwrite<std::byte[]>(kBytes);
    stack_t own{};
    own.ss_sp = memory_.get();
    own.ss_size = kBytes;
    ::sigaltstack(&own, nullptr);
  }
  ~SignalStack() {
    if (!memory_) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
  }
  SignalStack(const SignalStack&) = delete;

 private:
  static constexpr std::size_t kBytes = 64 << 10;  // the processor's registers take up to 12 KiB

  std::unique_ptr<std::byte[]> memory_;
};

extern "C" void write_and_die(int signal, siginfo_t* info, void*) {
  const int error = errno;
  for (std::size_t i = 0; i < kDeadly.size(); ++i) {
    if (kDeadly[i].signal != signal) continue;
    write_last_events(kDeadly[i].name);
    ::sigaction(signal, &before[i], nullptr);
  }
  // A faulting instruction is executed again and faults again, but a signal sent by a process must
  // be raised again.
  if (info->si_code <= 0) ::raise(signal);
  errno = error;
}

}  // namespace

void give_signal_stack() { thread_local const SignalStack stack; }

std::filesystem::path events_file_in(const std::filesystem::path& run, std::int64_t rank) {
  return run / "events" / fmt::format("rank-{:04}.json", rank);
}

LastEvents::LastEvents(LastEventsOptions options) {
  where = std::make_unique<Where>();
  where->options = std::move(options);
  const auto& mine = where->options;
  where->file = mine.file.string();
  where->name = mine.file.filename().string();
  where->part = where->name + ".part";
  where->folder = mine.file.parent_path().string();
  where->owner = {mine.rank, ::getpid(), mine.name, mine.host};
  written_at = 0;
  the_place = where.get();
  give_signal_stack();
  struct sigaction action {};
  action.sa_sigaction = write_and_die;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kDeadly.size(); ++i)
    ::sigaction(kDeadly[i].signal, &action, &before[i]);
}

LastEvents::~LastEvents() {
  for (std::size_t i = 0; i < kDeadly.size(); ++i)
    ::sigaction(kDeadly[i].signal, &before[i], nullptr);
  the_place = nullptr;
  while (is_being_written) ::usleep(1000);
}

bool write_last_events(std::string_view why) {
  if (is_being_written.exchange(true)) return false;
  const auto* place = the_place.load();
  int fd = -1;
  const auto folder = place ? open_folder(*place) : UniqueFd();
  if (folder)
    fd = ::openat(folder.get(), place->part.c_str(),
                  O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  bool done = false;
  if (fd >= 0) {
    write_events(
        place->owner, why,
        [](void* to, const char* text, std::size_t size) {
          write_all(*static_cast<int*>(to), text, size);
        },
        &fd);
    ::close(fd);
    done = ::renameat(folder.get(), place->part.c_str(), folder.get(), place->name.c_str()) == 0;
  }
  if (done) written_at = Clock::now().time_since_epoch().count();
  if (done && place->options.is_private)
    say_line({place->options.name, ": ", why, ": last events saved to ", place->file});
  is_being_written = false;
  return done;
}

void write_last_events_at(int signal, std::string_view name) {
  const int error = errno;
  const auto* place = the_place.load();
  const Clock::time_point last{Clock::duration(written_at.load())};
  const bool is_new = written_at != 0 && seconds_since(last) < kNewEnoughS;
  if (place && place->options.at_sigterm && signal == SIGTERM && !is_new) write_last_events(name);
  errno = error;
}

std::string last_events_file() {
  const auto* place = the_place.load();
  return place ? place->file : "";
}

}  // namespace millrace
