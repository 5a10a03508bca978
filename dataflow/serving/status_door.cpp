#include "millrace/dataflow/serving/status_door.h"

#include <fmt/format.h>

#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"

namespace millrace::serving {
namespace {

constexpr std::chrono::milliseconds kWakeEvery{10'000};  // if nothing wakes it

}  // namespace

StatusDoor::StatusDoor(const DoorOptions& door, std::string name,
                       std::function<std::string()> status, std::function<std::string()> events)
    : name_(std::move(name)),
      status_(std::move(status)),
      events_(std::move(events)),
      door_(context_, door),
      endpoint_(door_.endpoint()),
      thread_([this] { run(); }) {}

StatusDoor::~StatusDoor() {
  stop_ = true;
  ended_.ring();
  thread_.join();
}

void StatusDoor::run() try {
  const Door::Hear hear = [this](const std::string& from, std::int32_t, const Message& message) {
    this->hear(from, message);
  };
  while (!stop_) {
    door_.wait(ended_.descriptor(), kWakeEvery);
    door_.look([](std::int32_t) {});
    while (!stop_ && door_.receive(hear)) continue;
  }
} catch (const std::exception& problem) {  // an observer's failure ends no training
  spdlog::warn("`trainer status` gets no answer here any more: {}", problem.what());
}

void StatusDoor::hear(const std::string& from, const Message& message) {
  const auto* asked = std::get_if<AskStatus>(&message);
  if (!asked) throw DataError("message", "this process tells its status and nothing else");
  if (!asked->of.empty() && asked->of != name_)
    door_.send(from, Refusal{fmt::format("this is {}", name_), true});
  else
    door_.send(from, Status{asked->number, asked->events ? events_() : status_()});
}

}  // namespace millrace::serving
