// The events of this process as text that people, `trainer status` and trace viewers read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

/// Who has done them. Plain bytes, so that a signal handler may read it.
struct EventsOwner {
  std::int64_t rank = 0;
  std::int64_t process = 0;
  std::string_view name;  // "rank 3 (b)"; as `host`, it must live as long as this
  std::string_view host;
};

/// Writes all events of EventRing::own(): an event a line, in the object format of Chrome's traces
/// (ui.perfetto.dev, chrome://tracing). `why` it is written stands in the first. Times are
/// microseconds since 1970. Takes no lock and no memory, so that a signal handler may call it;
/// `put` gets the text in pieces.
void write_events(const EventsOwner& owner, std::string_view why,
                  void (*put)(void* to, const char* text, std::size_t size), void* to);

std::string events_text(const EventsOwner& owner, std::string_view why);

}  // namespace millrace
