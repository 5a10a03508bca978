// Asks many processes for their status at the same time.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "millrace/dataflow/serving/context.h"
#include "millrace/dataflow/serving/keys.h"
#include "millrace/dataflow/serving/messages.h"
#include "millrace/dataflow/serving/polling.h"

namespace millrace::serving {

/// A data server, or a rank of a training.
struct StatusSource {
  std::string name;                    // of the process that must answer; empty: whoever is there
  std::vector<std::string> endpoints;  // of that process: the first answer counts
  std::optional<LinkKeys> keys;
};

struct StatusAnswer {
  enum class Kind {
    answered,
    silent,   // somebody may be there
    gone,     // nobody listens there
    refused,  // somebody else is there, or does not want to tell
  };
  Kind kind = Kind::silent;
  std::string why = "no answer";  // unless it answered
  nlohmann::ordered_json status;  // if it answered: what it was asked for
};

enum class Question { status, events };

/// Connections, kept from one call to the next. For one thread.
class StatusLinks {
 public:
  /// Throws ConfigError for a bad endpoint.
  explicit StatusLinks(std::vector<StatusSource> sources, Question question = Question::status);

  /// Asks all and returns when all have answered or have gone, at most after `most`, or when
  /// `stop` is requested. In the order of the sources.
  std::vector<StatusAnswer> ask(std::chrono::milliseconds most, const std::stop_token& stop = {});

 private:
  using Kind = StatusAnswer::Kind;
  /// A connection to one endpoint of a source.
  struct Line {
    Line(zmq::context_t& context, std::size_t source, const std::string& endpoint,
         const std::optional<LinkKeys>& keys);

    const std::size_t source;
    zmq::socket_t socket;
    SocketEvents events;    // after the socket: destroyed before it
    bool is_asked = false;  // since `ask` was called
    StatusAnswer answer;
  };

  static void see(Line& line);
  void send(Line& line);
  void receive(Line& line);
  /// Whether nothing more is to be had from a source.
  bool is_settled(std::size_t source) const;

  const std::vector<StatusSource> sources_;
  const Question question_;
  std::int64_t number_ = 0;
  zmq::context_t context_ = new_context();
  std::list<Line> lines_;
};

}  // namespace millrace::serving
