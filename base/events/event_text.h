// The events of this process as text for people, `trainer status` and trace viewers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

/// The process that recorded the events. Plain bytes, so that a signal handler may read it.
struct EventsOwner {
  std::int64_t rank = 0;
  std::int64_t process = 0;
  std::string_view name;  // such as "rank 3 (b)"; the text must outlive this object, as must `host`
  std::string_view host;
};

/// Writes all events of EventRing::own(), one per line, in the object format of Chrome traces
/// (ui.perfetto.dev, chrome://tracing). The first line contains `why`, the reason for writing.
/// Times are microseconds since 1970. `put` receives the text in pieces. Takes no lock and
/// allocates no memory; async-signal-safe.
void write_events(const EventsOwner& owner, std::string_view why,
                  void (*put)(void* to, const char* text, std::size_t size), void* to);

std::string events_text(const EventsOwner& owner, std::string_view why);

}  // namespace millrace
