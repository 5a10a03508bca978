#include "millrace/base/events/event_text.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>

#include "millrace/base/clock.h"
#include "millrace/base/events/event_ring.h"
#include "millrace/base/word_wrap.h"

namespace millrace {
namespace {

/// Buffers text without allocating memory.
class Writer {
 public:
  Writer(void (*put)(void*, const char*, std::size_t), void* to) : put_(put), to_(to) {}
  ~Writer() { flush(); }
  Writer(const Writer&) = delete;

  Writer& operator<<(std::string_view text) {
    for (const char c : text) {
      if (used_ == buffer_.size()) flush();
      buffer_[used_++] = c;
    }
    return *this;
  }
  Writer& operator<<(std::int64_t number) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return *this << std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data()));
  }
  /// Writes nanoseconds as microseconds.
  Writer& microseconds(std::int64_t ns) {
    *this << ns / 1000 << ".";
    const auto rest = ns % 1000;
    if (rest < 100) *this << "0";
    if (rest < 10) *this << "0";
    return *this << rest;
  }
  /// Writes a JSON string. Invalid UTF-8, possible in file names, is replaced by "?".
  Writer& quoted(std::string_view text) {
    *this << "\"";
    while (!text.empty()) {
      const auto length = utf8_length(text);
      const auto character = text.substr(0, length == 0 ? 1 : length);
      text.remove_prefix(character.size());
      if (length == 0 || static_cast<unsigned char>(character[0]) < ' ')
        *this << "?";
      else
        *this << (character == "\"" || character == "\\" ? "\\" : "") << character;
    }
    return *this << "\"";
  }

 private:
  void flush() {
    put_(to_, buffer_.data(), used_);
    used_ = 0;
  }

  void (*const put_)(void*, const char*, std::size_t);
  void* const to_;
  std::array<char, 4096> buffer_;
  std::size_t used_ = 0;
};

void write_event(Writer& out, const EventsOwner& owner, const EventRecord& event,
                 std::int64_t now_ns, std::int64_t since_1970_ns) {
  const bool goes_on = event.duration_ns < 0;
  out << ",\n{\"ph\":" << (goes_on ? "\"B\"" : "\"X\"") << ",\"cat\":";
  out.quoted(name_of(event.kind)) << ",\"name\":";
  out.quoted(event.name.data()) << ",\"pid\":" << owner.rank
                                << ",\"tid\":" << std::int64_t{event.thread};
  out << ",\"ts\":";
  out.microseconds(event.start_ns + since_1970_ns);
  if (!goes_on) (out << ",\"dur\":").microseconds(event.duration_ns);
  out << ",\"args\":{\"detail\":";
  out.quoted(event.detail.data());
  if (event.number >= 0) out << ",\"number\":" << event.number;
  if (event.bytes > 0) out << ",\"bytes\":" << event.bytes;
  if (goes_on) (out << ",\"goes_on_us\":").microseconds(now_ns - event.start_ns);
  out << "}}";
}

}  // namespace

void write_events(const EventsOwner& owner, std::string_view why,
                  void (*put)(void* to, const char* text, std::size_t size), void* to) {
  const auto nanoseconds = [](auto time) {
    return std::chrono::nanoseconds(time.time_since_epoch()).count();
  };
  const auto now_ns = nanoseconds(Clock::now());
  const auto since_1970_ns = nanoseconds(std::chrono::system_clock::now()) - now_ns;
  Writer out(put, to);
  out << "{\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" << owner.rank
      << ",\"args\":{\"name\":";
  out.quoted(owner.name) << ",\"host\":";
  out.quoted(owner.host) << ",\"process\":" << owner.process << ",\"why\":";
  out.quoted(why) << ",\"written\":";
  out.microseconds(now_ns + since_1970_ns) << "}}";
  EventRing::own().each(
      [&](const EventRecord& event) { write_event(out, owner, event, now_ns, since_1970_ns); });
  out << "\n]}\n";
}

std::string events_text(const EventsOwner& owner, std::string_view why) {
  std::string text;
  write_events(
      owner, why,
      [](void* to, const char* part, std::size_t size) {
        static_cast<std::string*>(to)->append(part, size);
      },
      &text);
  return text;
}

}  // namespace millrace
