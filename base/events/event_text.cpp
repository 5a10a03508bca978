#include "millrace/base/events/event_text.h"

#include <time.h>

#include <array>
#include <charconv>
#include <cstdint>

#include "millrace/base/events/event_ring.h"

namespace millrace {
namespace {

std::int64_t nanoseconds_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// How many bytes the UTF-8 character that begins here has; 0: it is none.
std::size_t length_of_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  const auto second = length > 2 ? static_cast<unsigned char>(text[1]) : 0;
  const bool is_no_character = (first == 0xE0 && second < 0xA0) ||  // too long, a surrogate
                               (first == 0xED && second > 0x9F) ||
                               (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return is_no_character ? 0 : length;
}

/// Collects text in a buffer of its own.
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
  /// Nanoseconds as microseconds.
  Writer& microseconds(std::int64_t ns) {
    *this << ns / 1000 << ".";
    const auto rest = ns % 1000;
    if (rest < 100) *this << "0";
    if (rest < 10) *this << "0";
    return *this << rest;
  }
  /// As a string of JSON. What is not UTF-8, as names of files may be, is replaced.
  Writer& quoted(std::string_view text) {
    *this << "\"";
    while (!text.empty()) {
      const auto length = length_of_character(text);
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
  const auto now_ns = nanoseconds_of(CLOCK_MONOTONIC);
  const auto since_1970_ns = nanoseconds_of(CLOCK_REALTIME) - now_ns;
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
