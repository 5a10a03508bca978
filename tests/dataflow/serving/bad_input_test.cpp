// How data servers and consumers handle invalid and unauthorised peers.
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <fstream>
#include <zmq.hpp>

#include "millrace/base/random.h"
#include "millrace/dataflow/store/batch_codec.h"
#include "tests/dataflow/serving/servers.h"
#include "tests/support/thrown.h"

namespace millrace::testing {
namespace {

using namespace ::testing;
using namespace std::chrono_literals;

void send_frames(zmq::socket_t& socket, const std::vector<std::string>& frames) {
  for (const auto& frame : frames)
    socket.send(zmq::buffer(frame),
                &frame == &frames.back() ? zmq::send_flags::none : zmq::send_flags::sndmore);
}

class ServingBadInput : public ::testing::Test {
 protected:
  /// Opens a plain TCP connection to the endpoint's port on 127.0.0.1; returns -1 if it fails.
  static int connect_plainly(const std::string& endpoint) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(
        static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.find_last_of(':') + 1))));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return fd;
    ::close(fd);
    return -1;
  }
  static void write_all(int fd, std::string_view bytes) {
    [[maybe_unused]] const auto written = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  /// Returns true if the peer closes the connection within ten seconds.
  static bool is_closed(int fd) {
    timeval most{10, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
    char bytes[4096];
    while (true) {
      const auto read = ::recv(fd, bytes, sizeof(bytes), 0);
      if (read > 0) continue;
      return read == 0 || errno == ECONNRESET;
    }
  }
  /// Sends frames from a DEALER socket and returns the server's answer.
  static std::string answer(const std::string& endpoint, std::vector<std::string> frames) {
    zmq::context_t context;
    zmq::socket_t socket(context, zmq::socket_type::dealer);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::rcvtimeo, 10'000);
    socket.connect(endpoint);
    send_frames(socket, frames);
    zmq::message_t reply;
    if (!socket.recv(reply)) return "no answer";
    const auto message = decode(reply.to_string_view(), "reply");
    if (const auto* refusal = std::get_if<Refusal>(&message)) return refusal->why;
    return "message " + std::to_string(message.index());
  }
  /// Expects the server to serve batches.
  static void expect_served(const std::string& endpoint) {
    EXPECT_EQ(next_digests(*connect({endpoint}), 10), expected_digests({}, 10));
  }

  // ZMTP 3.1: signature, version and mechanism in 64 bytes, then a command of 28 bytes.
  inline static const std::string kGreeting =
      std::string("\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL", 16) + std::string(48, '\0');
  static constexpr std::string_view kReady{
      "\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06"
      "DEALER",
      30};
};

TEST_F(ServingBadInput, SurvivesRandomBytes) {
  const ThreadServer server;
  Rng rng{1};
  for (int i = 0; i < 50; ++i) {
    const auto fd = connect_plainly(server.endpoint());
    ASSERT_GE(fd, 0);
    std::string bytes(1 + rng.below(5000), ' ');
    for (auto& byte : bytes) byte = static_cast<char>(rng());
    write_all(fd, bytes);
    ::close(fd);
  }
  const auto http = connect_plainly(server.endpoint());
  write_all(http, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(is_closed(http));
  ::close(http);
  expect_served(server.endpoint());
}

TEST_F(ServingBadInput, RejectsFrameOfTwoGigabytes) {
  const ThreadServer server;
  const auto fd = connect_plainly(server.endpoint());
  write_all(fd, kGreeting);
  write_all(fd, kReady);
  write_all(fd, std::string_view("\x02\0\0\0\0\x80\0\0\0", 9));  // a long frame and its length
  EXPECT_TRUE(is_closed(fd));
  ::close(fd);
  expect_served(server.endpoint());
}

TEST_F(ServingBadInput, RejectsInvalidMessages) {
  const ThreadServer server;
  auto newer = encode(Ping{});
  newer[10] = 9;
  auto changed = encode(Ask{{1}});
  changed.back() ^= 1;
  const auto stranger = "message " + std::to_string(serving::Message(Stranger{}).index());
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{encode(Ask{{1}})}, stranger},  // before the hello
      {{encode(Ping{})}, stranger},
      {{newer}, "version"},
      {{changed}, "checksum"},
      {{"hello"}, "not a valid message"},
      {{""}, "not a valid message"},
      {{encode(Ping{}), "more", "and more"}, "one frame"},
      {{encode(Pong{})}, "does not send this"}};
  for (const auto& [frames, why] : cases)
    EXPECT_THAT(answer(server.endpoint(), frames), HasSubstr(why));
  expect_served(server.endpoint());
}

TEST_F(ServingBadInput, SurvivesThousandConnections) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto before = limit;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 4096);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 2200) GTEST_SKIP() << "the limit of open files is below 2,200";
  {
    const ThreadServer server;
    const auto consumer = connect({server.endpoint()});
    next_digests(*consumer, 5);
    std::vector<int> idle;
    for (int i = 0; i < 1000; ++i) idle.push_back(connect_plainly(server.endpoint()));
    EXPECT_EQ(std::ranges::count(idle, -1), 0);
    EXPECT_EQ(next_digests(*consumer, 50).size(), 50U);
    expect_served(server.endpoint());
    for (const auto fd : idle) ::close(fd);
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
}

/// A server that answers each batch request with the frames that `batch` returns.
class FakeServer {
 public:
  explicit FakeServer(std::function<std::vector<std::string>(std::int64_t number)> batch)
      : socket_(context_, zmq::socket_type::router), batch_(std::move(batch)) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, 50);
    socket_.bind("tcp://127.0.0.1:*");
    endpoint_ = socket_.get(zmq::sockopt::last_endpoint);
    thread_ = std::thread([this] { run(); });
  }
  ~FakeServer() {
    stop_ = true;
    thread_.join();
  }
  const std::string& endpoint() const { return endpoint_; }

 private:
  void run() {
    while (!stop_) {
      zmq::message_t id, part;
      if (!socket_.recv(id) || !socket_.recv(part)) continue;
      const auto message = decode(part.to_string_view(), "message");
      if (std::holds_alternative<Hello>(message)) send(id, {encode(Welcome{{}, 100, {}})});
      if (const auto* ask = std::get_if<Ask>(&message)) send(id, batch_(ask->numbers.at(0)));
    }
  }
  void send(const zmq::message_t& id, const std::vector<std::string>& frames) {
    socket_.send(zmq::const_buffer(id.data(), id.size()), zmq::send_flags::sndmore);
    send_frames(socket_, frames);
  }

  zmq::context_t context_;
  zmq::socket_t socket_;
  std::function<std::vector<std::string>(std::int64_t)> batch_;
  std::string endpoint_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST_F(ServingBadInput, ReportsServerOfDamagedBatches) {
  const auto torn = [](std::int64_t number) -> std::vector<std::string> {
    const auto item = *made_batch({}, number).item;
    const auto header = encode_header(item.value);
    std::string pixels(reinterpret_cast<const char*>(item.value.pixels.get()), item.value.bytes());
    pixels[5] ^= 1;
    return {encode(BatchHead{number, item.cursor, 0, 0, {}, {header.begin(), header.end()}, {}}),
            pixels};
  };
  const std::function<std::vector<std::string>(std::int64_t)> kinds[] = {
      torn, [](std::int64_t) { return std::vector<std::string>{"nonsense"}; },
      [&](std::int64_t number) { return std::vector<std::string>{torn(number)[0]}; },
      [](std::int64_t) { return std::vector<std::string>{encode(Ask{{1}})}; }};
  for (const auto& kind : kinds) {
    const FakeServer fake(kind);
    const auto alone = connect({fake.endpoint()});
    EXPECT_THAT([&] { alone->next(); }, ThrowsMessage<Error>(AllOf(HasSubstr("unreadable message"),
                                                                   HasSubstr(fake.endpoint()))));
    const ThreadServer honest;
    EXPECT_EQ(next_digests(*connect({fake.endpoint(), honest.endpoint()}), 50),
              expected_digests({}, 50));
  }
}

TEST_F(ServingBadInput, RejectsOversizedHeads) {
  std::string list("\xdd\x04\x10\0\0", 5);  // a list of 65 Mi elements, each 24 bytes in memory
  list.append(65 << 20, '\xc0');
  const FakeServer fake([&](std::int64_t) { return std::vector<std::string>{list}; });
  EXPECT_THAT([&] { connect({fake.endpoint()})->next(); },
              ThrowsMessage<Error>(AllOf(HasSubstr(fake.endpoint()),
                                         HasSubstr(std::to_string(list.size()) + " bytes"))));
}

class ServingKeys : public ServingBadInput {
 protected:
  ServingKeys() {
    for (const auto* name : {"server", "friend", "foe"}) make_keys(sockets_.file(name));
  }
  std::filesystem::path file(const std::string& name) const { return sockets_.file(name); }
  ServerOptions options() const {
    return {.listen = {.bind = "tcp://127.0.0.1:*",
                       .keys = read_secret_key(file("server.key")),
                       .allowed = {read_public_key(file("friend.pub"))}}};
  }
  std::unique_ptr<DataFlow<Batch>> come_as(const std::string& who, const std::string& endpoint,
                                           const std::string& server = "server") const {
    return connect_flow({.servers = {endpoint},
                         .keys = LinkKeys{read_public_key(file(server + ".pub")),
                                          read_secret_key(file(who + ".key"))},
                         .facts = made_facts(),
                         .timeout = 2s});
  }
  std::string failure(DataFlow<Batch>& flow) const {
    return message_of([&] { flow.next(); });
  }

 private:
  Sockets sockets_;
};

TEST_F(ServingKeys, AdmitOnlyAllowedKeys) {
  const ThreadServer server({}, options());
  const auto allowed = come_as("friend", server.endpoint());
  EXPECT_EQ(next_digests(*allowed, 10), expected_digests({}, 10));
  EXPECT_THAT(failure(*come_as("foe", server.endpoint())), HasSubstr("does not allow"));
  EXPECT_THAT(failure(*come_as("friend", server.endpoint(), "foe")),
              HasSubstr("data.source_server_key"));
  EXPECT_NE(failure(*connect({server.endpoint()}, {}, made_facts(), 2s)), "");
  EXPECT_EQ(next_digests(*allowed, 10).size(), 10U);
}

TEST_F(ServingKeys, AreReadableByOwnerOnly) {
  struct stat state {};
  ASSERT_EQ(::stat(file("server.key").c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0600U);
  EXPECT_THROW(make_keys(file("server")), Error) << "keys are not overwritten";
  std::filesystem::permissions(file("server.key"), std::filesystem::perms(0644));
  EXPECT_THROW(read_secret_key(file("server.key")), ConfigError);
  EXPECT_THROW(read_public_key(file("nothing")), ConfigError);
  std::ofstream(file("bad.pub")) << "not forty characters\n";
  EXPECT_THROW(read_public_key(file("bad.pub")), ConfigError);
}

TEST_F(ServingBadInput, RejectsInvalidEndpoints) {
  EXPECT_THROW(ThreadServer({}, {.listen = {.bind = "localhost:5555"}}), ConfigError);
  EXPECT_THROW(ThreadServer({}, {.listen = {.bind = "tcp://nowhere.invalid:5555"}}), Error);
  const ThreadServer server;
  EXPECT_THROW(ThreadServer({}, {.listen = {.bind = server.endpoint()}}), Error)
      << "the endpoint is in use";
  EXPECT_THROW(connect({"nonsense"}), ConfigError);
  const ThreadServer by_name({}, {.listen = {.bind = "tcp://localhost:*"}});
  EXPECT_TRUE(by_name.endpoint().starts_with("tcp://127.0.0.1:")) << by_name.endpoint();
  EXPECT_TRUE(is_local("tcp://127.0.0.1:5") && is_local("tcp://localhost:5") &&
              is_local("ipc:///tmp/x") && is_local("tcp://[::1]:5"));
  EXPECT_FALSE(is_local("tcp://*:5") || is_local("tcp://0.0.0.0:5") || is_local("tcp://eth0:5"));
}

}  // namespace
}  // namespace millrace::testing
